"""Steps 4 to 6: the instructions of a package, and which page says them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from evennia_ai.engine.knowledge.assembly import config as written
from evennia_ai.engine.knowledge.assembly.config import CONFIG_PAGE, AssemblyRules, TaskType
from evennia_ai.engine.knowledge.assembly.packages import PackedPage, packed
from evennia_ai.engine.knowledge.assembly.planning import Planned
from evennia_ai.engine.knowledge.assembly.requests import (
    Fetch,
    Hidden,
    Listed,
    LoreTask,
    Step,
    Trace,
    distinct,
    no_page,
    read,
    read_listed,
    titles,
)
from evennia_ai.engine.knowledge.pages.page import Page, PageName
from evennia_ai.engine.text.words import phrase_of


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


MOST_PAGES: Final = 200
"""Pages of a graph that are read, however much of it there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """A page of the graph: how many hops away it is, and which page asked for it first."""

    page: Page
    depth: int = 0
    by: PageName | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """What a graph comes to; `reached` begins with the pages it was resolved from."""

    reached: tuple[Reached, ...]
    warnings: tuple[str, ...] = ()


def resolved(roots: Sequence[Page], *, max_depth: int | None) -> Step[Resolved]:
    """The pages that `roots` require, over at most so many hops, None for all there are."""
    reached = [Reached(page=page) for page in roots]
    warnings: list[str] = []
    level = reached
    depth = 0
    while level and (max_depth is None or depth < max_depth):
        depth += 1
        wanted = _wanted(level, reached)
        if len(reached) + len(wanted) > MOST_PAGES:
            warnings.append(f"the graph of requires has over {MOST_PAGES} pages; the rest is left")
            break
        answer = (yield Fetch(tuple(wanted))) if wanted else ()
        found = dict(zip(wanted, answer, strict=True))
        warnings += [_missing(name, wanted[name], page) for name, page in found.items()]
        level = _taken(found, wanted, reached, depth=depth)
        reached = [*reached, *level]
    return Resolved(reached=tuple(reached), warnings=tuple(filter(None, warnings)))


def _wanted(level: Sequence[Reached], reached: Sequence[Reached]) -> dict[PageName, PageName]:
    """The pages of the next hop in the order they are declared, and who asks for each first."""
    known = {one.page.name for one in reached}
    wanted: dict[PageName, PageName] = {}
    for one in level:
        for name in one.page.meta.requires:
            if name not in known:
                wanted.setdefault(name, one.page.name)
    return wanted


def _taken(
    found: dict[PageName, Page | Hidden | None],
    wanted: dict[PageName, PageName],
    reached: Sequence[Reached],
    *,
    depth: int,
) -> list[Reached]:
    """The pages of a hop that are new: another title may lead to one that is there already."""
    known = {one.page.name for one in reached}
    taken: list[Reached] = []
    for name, page in found.items():
        if isinstance(page, Page) and page.name not in known:
            known.add(page.name)
            taken.append(Reached(page=page, depth=depth, by=wanted[name]))
    return taken


def _missing(name: PageName, by: PageName, page: Page | Hidden | None) -> str:
    """A warning where a required page cannot be read, "" where it can."""
    if page is None:
        return f"{by} requires {name}, and there is no such page"
    if isinstance(page, Hidden):
        return f"{by} requires {name}, which may not be read here"
    return ""


MOST_LOOKED_THROUGH: Final = 200
"""Pages of the namespace that are looked through for those a task needs."""


def world_bible(rules: AssemblyRules, trace: Trace) -> Step[list[Page]]:
    """Step 4: the page that anchors all writing to the world, in a list, empty without one."""
    pages = distinct((yield from read([rules.world_bible], trace)))
    if not pages:
        trace.warn(f"{rules.world_bible} is missing: nothing anchors the writing to the world")
    trace.did(4, titles(pages))
    return pages


def core_instructions(
    task: LoreTask, plan: Planned, rules: AssemblyRules, trace: Trace
) -> Step[list[Page]]:
    """Step 5: the pages that every task needs, then those that this one needs by its type."""
    core = yield from _demanded(rules.core_instructions, trace)
    by_type = yield from _demanded(plan.task_type.instructions, trace)
    others = yield from _looked_through(rules, trace)
    for_all = [*core, *included_by_default(others)]
    pages = distinct([*for_all, *by_type, *of_task(others, task.text, plan.task_type)])
    trace.did(5, titles(pages))
    return pages


def required(
    roots: Sequence[Page], rules: AssemblyRules, trace: Trace
) -> Step[tuple[PackedPage, ...]]:
    """Step 6: the instructions that were chosen and whatever they require."""
    max_depth = None if rules.fully_resolve else rules.max_depth
    found = yield from resolved(distinct(roots), max_depth=max_depth)
    trace.warn(*found.warnings)
    new = [f"{one.page.name} at depth {one.depth}" for one in found.reached if one.depth]
    trace.did(6, ", ".join(new) or "nothing more")
    return tuple(
        packed(
            one.page,
            "instructions",
            why=f"required by {one.by}" if one.by else "chosen for the task",
            depth=one.depth,
        )
        for one in found.reached
    )


def _demanded(names: Sequence[PageName], trace: Trace) -> Step[list[Page]]:
    """The pages of these names, with a warning for each that is missing."""
    found = yield from read(names, trace)
    missing = [name for name, page in zip(names, found, strict=True) if page is None]
    trace.warn(*map(no_page, missing))
    return distinct(found)


def _looked_through(rules: AssemblyRules, trace: Trace) -> Step[list[Page]]:
    """The pages of the namespace, which may belong to the task by what they say of themselves."""
    names = yield Listed("Instructions")
    if len(names) > MOST_LOOKED_THROUGH:
        trace.warn(
            f"there are {len(names)} instruction pages, of which {MOST_LOOKED_THROUGH} are looked"
            " through; name the others in the config page's task_types"
        )
    known = {CONFIG_PAGE, rules.world_bible, *rules.core_instructions}
    wanted = [name for name in names if name not in known][:MOST_LOOKED_THROUGH]
    return (yield from read_listed(wanted, trace))
