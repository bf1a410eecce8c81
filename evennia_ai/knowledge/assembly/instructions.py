"""Instructions: which pages of that namespace a task needs, by what they say of themselves.

A page with `include_by_default` belongs to every task, one whose `task_type` names the type of the
task to tasks of it. Where such a page has tags beside its own `type`, it is for tasks that name one
of them: a workflow with the tag "interview" is chosen for "an interview with the ferryman". Pages
of higher `priority` come first.
"""

from collections.abc import Iterable, Sequence

from evennia_ai.knowledge.assembly import written_values as written
from evennia_ai.knowledge.assembly.task_types import TaskType
from evennia_ai.knowledge.assembly.words import phrase_of
from evennia_ai.knowledge.pages import Page


def included_by_default(pages: Sequence[Page]) -> list[Page]:
    """The pages that belong to every task."""
    return _by_priority(one for one in pages if _says(one, "include_by_default"))


def of_task(pages: Sequence[Page], task: str, task_type: TaskType) -> list[Page]:
    """The pages that belong to this task by its type."""
    said = phrase_of(task)
    return _by_priority(
        one for one in pages if _is_of_type(one, task_type.key) and _is_meant(one, said)
    )


def _by_priority(pages: Iterable[Page]) -> list[Page]:
    return sorted(pages, key=lambda one: (-_priority(one), one.name.title))


def _priority(page: Page) -> int:
    try:
        return written.a_number(page.meta.fields.get("priority"), least=-(10**6), most=10**6)
    except written.WrittenValueError:  # without a priority that is one, it is like most pages
        return 0


def _says(page: Page, field: str) -> bool:
    try:
        return written.a_truth(page.meta.fields.get(field))
    except written.WrittenValueError:  # a page that says nothing clear does not say yes
        return False


def _is_of_type(page: Page, key: str) -> bool:
    try:
        return key in written.lines(page.meta.fields.get("task_type"))
    except written.WrittenValueError:  # it names no type
        return False


def _is_meant(page: Page, said: str) -> bool:
    kind = page.meta.fields.get("type")
    special = [tag for tag in page.meta.tags if tag != kind]
    return not special or any(phrase_of(tag) in said for tag in special)
