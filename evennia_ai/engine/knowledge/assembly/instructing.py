"""Steps 4 to 6 of context assembly: instructions for writers, and the pages they require."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from evennia_ai.engine.knowledge.assembly import config as written
from evennia_ai.engine.knowledge.assembly.config import CONFIG_PAGE, AssemblyRules, TaskType
from evennia_ai.engine.knowledge.assembly.packages import PackedPage, pack_page
from evennia_ai.engine.knowledge.assembly.planning import TaskPlan
from evennia_ai.engine.knowledge.assembly.requests import (
    Fetch,
    Hidden,
    ListTitles,
    LoreTask,
    Step,
    Trace,
    distinct_pages,
    fetch_listed_pages,
    fetch_pages,
    missing_page_warning,
    page_names,
)
from evennia_ai.engine.knowledge.pages.page import Page, PageName
from evennia_ai.engine.text.words import make_phrase


def default_pages(pages: Sequence[Page]) -> list[Page]:
    """Return the instruction pages that every task needs, highest priority first."""
    return _by_priority(filter(_is_included_by_default, pages))


def pages_for_task(pages: Sequence[Page], task: str, task_type: TaskType) -> list[Page]:
    """Return the instruction pages that fit the type and the words of a task, best first."""
    said = make_phrase(task)
    return _by_priority(
        one for one in pages if _is_of_type(one, task_type.key) and _matches_tags(one, said)
    )


def _by_priority(pages: Iterable[Page]) -> list[Page]:
    return sorted(pages, key=lambda one: (-_priority(one), one.name.title))


def _priority(page: Page) -> int:
    try:
        return written.parse_int(page.meta.fields.get("priority"), least=-(10**6), most=10**6)
    except written.ConfigValueError:  # most pages have no priority, which counts as 0
        return 0


def _is_included_by_default(page: Page) -> bool:
    try:
        return written.parse_bool(page.meta.fields.get("include_by_default"))
    except written.ConfigValueError:  # a page without a valid value is not included by default
        return False


def _is_of_type(page: Page, key: str) -> bool:
    try:
        return key in written.parse_lines(page.meta.fields.get("task_type"))
    except written.ConfigValueError:  # a page without a valid type belongs to no task type
        return False


def _matches_tags(page: Page, said: str) -> bool:
    """True if the task contains one of the page's tags, or if the page has no such tags."""
    # Authors often tag a page with its own type. That tag says nothing about tasks, so ignore it.
    kind = page.meta.fields.get("type")
    special = [tag for tag in page.meta.tags if tag != kind]
    return not special or any(make_phrase(tag) in said for tag in special)


MOST_PAGES: Final = 200
"""How many wiki pages are read at most by following `requires` links."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequiredPage:
    """A wiki page that another page lists in its field `requires`.

    `depth` is the number of links from a chosen page, and `by` is the first page that requires it.
    """

    page: Page
    depth: int = 0
    by: PageName | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequiredPages:
    """Wiki pages with `requires` links, and after them the pages that these links name."""

    reached: tuple[RequiredPage, ...]
    warnings: tuple[str, ...] = ()


def resolve_requires(roots: Sequence[Page], *, max_depth: int | None) -> Step[RequiredPages]:
    """Follow the `requires` links of wiki pages level by level, and read each page once.

    Args:
        roots: The pages to start from.
        max_depth: How many links are followed one after another; None means no limit.
    """
    reached = [RequiredPage(page=page) for page in roots]
    warnings: list[str] = []
    level = reached
    depth = 0
    while level and (max_depth is None or depth < max_depth):
        depth += 1
        known = {one.page.name for one in reached}
        # The pages to read in this round, in the order in which they are listed. Each has the first
        # page that requires it.
        wanted: dict[PageName, PageName] = {}
        for one in level:
            for name in one.page.meta.requires:
                if name not in known:
                    wanted.setdefault(name, one.page.name)
        if len(reached) + len(wanted) > MOST_PAGES:
            warnings.append(f"more than {MOST_PAGES} pages are required; the others were left out")
            break
        answer = (yield Fetch(tuple(wanted))) if wanted else ()
        level = []
        for (name, by), page in zip(wanted.items(), answer, strict=True):
            if page is None:
                warnings.append(f"{by} requires {name}, and there is no such page")
            elif isinstance(page, Hidden):
                warnings.append(f"{by} requires {name}, which may not be read here")
            # two titles may lead to one page, which counts only once
            elif page.name not in known:
                known.add(page.name)
                level.append(RequiredPage(page=page, depth=depth, by=by))
        reached = [*reached, *level]
    return RequiredPages(reached=tuple(reached), warnings=tuple(warnings))


MOST_LOOKED_THROUGH: Final = 200
"""How many instruction pages of a wiki are read at most to look at their metadata."""


def gather_world_bible(rules: AssemblyRules, trace: Trace) -> Step[list[Page]]:
    """Fetch the wiki page that describes the world; an empty list if there is none."""
    pages = distinct_pages((yield from fetch_pages([rules.world_bible], trace)))
    if not pages:
        trace.warn(
            f"{rules.world_bible} is missing: the model gets no page that describes the world"
        )
    trace.log_step(4, page_names(pages))
    return pages


def gather_core_instructions(
    task: LoreTask, plan: TaskPlan, rules: AssemblyRules, trace: Trace
) -> Step[list[Page]]:
    """Fetch the instruction pages that every task needs, then those for this type of task."""
    core = yield from _fetch_required(rules.core_instructions, trace)
    by_type = yield from _fetch_required(plan.task_type.instructions, trace)
    others = yield from _other_instructions(rules, trace)
    for_all = [*core, *default_pages(others)]
    pages = distinct_pages([*for_all, *by_type, *pages_for_task(others, task.text, plan.task_type)])
    trace.log_step(5, page_names(pages))
    return pages


def gather_required(
    roots: Sequence[Page], rules: AssemblyRules, trace: Trace
) -> Step[tuple[PackedPage, ...]]:
    """Return the given pages and all pages that they require, directly or indirectly."""
    max_depth = None if rules.fully_resolve else rules.max_depth
    found = yield from resolve_requires(distinct_pages(roots), max_depth=max_depth)
    trace.warn(*found.warnings)
    new = [f"{one.page.name} at depth {one.depth}" for one in found.reached if one.depth]
    trace.log_step(6, ", ".join(new) or "nothing more")
    return tuple(
        pack_page(
            one.page,
            "instructions",
            why=f"required by {one.by}" if one.by else "chosen for the task",
            depth=one.depth,
        )
        for one in found.reached
    )


def _fetch_required(names: Sequence[PageName], trace: Trace) -> Step[list[Page]]:
    """Fetch wiki pages by name, with a warning about each missing one."""
    found = yield from fetch_pages(names, trace)
    missing = [name for name, page in zip(names, found, strict=True) if page is None]
    trace.warn(*map(missing_page_warning, missing))
    return distinct_pages(found)


def _other_instructions(rules: AssemblyRules, trace: Trace) -> Step[list[Page]]:
    """Fetch the instruction pages of the wiki that the rules do not name.

    Their metadata says which tasks need them.
    """
    names = yield ListTitles("Instructions")
    if len(names) > MOST_LOOKED_THROUGH:
        trace.warn(
            f"there are {len(names)} instruction pages, of which {MOST_LOOKED_THROUGH} are looked"
            " through; name the others in task_types on the config page"
        )
    known = {CONFIG_PAGE, rules.world_bible, *rules.core_instructions}
    wanted = [name for name in names if name not in known][:MOST_LOOKED_THROUGH]
    return (yield from fetch_listed_pages(wanted, trace))
