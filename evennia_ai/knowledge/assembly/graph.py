"""The graph of `requires`: which pages have to be read with those that were chosen.

Breadth first: all pages of one hop before those of the next, each page's in the order it declares
them. A page is taken once, at its least depth, so that circles end. It does no I/O: it yields what
it needs to read. Pages that name the same things belong together without saying so: co-occurrence.
"""

import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from evennia_ai.knowledge.assembly.requests import Fetch, Hidden, Step
from evennia_ai.knowledge.pages.markup import without_code
from evennia_ai.knowledge.pages.page import Page, PageName, TitleError, page_name

_LINK: Final = re.compile(r"\[\[([^\[\]{}|<>#\n]{1,600})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seed:
    """A page at hand: what it links to, and how often where a link stands more than once."""

    name: PageName
    links: Sequence[PageName]
    mentions: Sequence[PageName] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Related:
    """A page that seeds link to: how many of them, and with how many links."""

    name: PageName
    seeds: int
    links: int


def related(seeds: Sequence[Seed]) -> tuple[Related, ...]:
    """The pages of the encyclopedia that the seeds link to, without the seeds, best first."""
    linking = Counter[PageName]()
    links = Counter[PageName]()
    for seed in seeds:
        targets = set(seed.links)
        linking.update(targets)
        mentioned = Counter(seed.mentions)
        links.update({name: max(1, mentioned[name]) for name in targets})
    own = {seed.name for seed in seeds}
    found = [
        Related(name=name, seeds=count, links=links[name])
        for name, count in linking.items()
        if name.namespace == "Main" and name not in own
    ]
    return tuple(sorted(found, key=lambda one: (-one.seeds, -one.links, one.name.title)))


def mentions(body: str) -> tuple[PageName, ...]:
    """Every link in a text, as often as it stands there."""
    found: list[PageName] = []
    for link in _LINK.finditer(without_code(body)):
        with suppress(TitleError):  # what is no title is no link either
            found.append(page_name(link[1]))
    return tuple(found)


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
