"""Steps 7 to 11 of context assembly: encyclopedia, source and talk pages, and Wikipedia."""

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from evennia_ai.engine.knowledge.assembly.config import AssemblyRules
from evennia_ai.engine.knowledge.assembly.packages import PackedPage, pack_page
from evennia_ai.engine.knowledge.assembly.planning import TaskPlan
from evennia_ai.engine.knowledge.assembly.requests import (
    Article,
    Failed,
    Hidden,
    Introduction,
    Links,
    LoreTask,
    PageSearch,
    Step,
    Trace,
    distinct_pages,
    fetch_pages,
    missing_page_warning,
    page_names,
)
from evennia_ai.engine.knowledge.pages.markup import blank_code
from evennia_ai.engine.knowledge.pages.page import PageName, TitleError, page_name

_HASH_HEADING: Final = re.compile(r"(#{1,6})[ \t]+([^\n]*)")
_LINK: Final = re.compile(r"\[\[([^\[\]{}|<>#\n]{1,600})")


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkSource:
    """A wiki page, with the pages to which it links.

    `links` has each linked page once. `mentions` has a page once for each link to it.
    """

    name: PageName
    links: Sequence[PageName]
    mentions: Sequence[PageName] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedPage:
    """A wiki page to which chosen pages link: the number of these pages, and of their links."""

    name: PageName
    seeds: int
    links: int


def rank_linked_pages(seeds: Sequence[LinkSource]) -> tuple[LinkedPage, ...]:
    """Return the encyclopedia pages to which the given pages link, best first.

    The given pages themselves are left out. A page to which more of them link comes first. Then the
    number of links decides, then the title.
    """
    linking = Counter[PageName]()
    links = Counter[PageName]()
    for seed in seeds:
        targets = set(seed.links)
        linking.update(targets)
        mentioned = Counter(seed.mentions)
        links.update({name: max(1, mentioned[name]) for name in targets})
    own = {seed.name for seed in seeds}
    found = [
        LinkedPage(name=name, seeds=count, links=links[name])
        for name, count in linking.items()
        if name.namespace == "Main" and name not in own
    ]
    return tuple(sorted(found, key=lambda one: (-one.seeds, -one.links, one.name.title)))


def linked_names(body: str) -> tuple[PageName, ...]:
    """Return the names of all pages to which a wiki text links, including repetitions."""
    found: list[PageName] = []
    for link in _LINK.finditer(blank_code(body)):
        with suppress(TitleError):  # a link with an invalid title is plain text
            found.append(page_name(link[1]))
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading of a wiki page, with the text up to the next heading.

    The text before the first heading has level 0.
    """

    level: int
    heading: str
    text: str


def split_sections(body: str) -> tuple[Section, ...]:
    """Split a wiki text at its headings, in order.

    If the text has headings of MediaWiki (`== ==`), lines that begin with `#` are items of lists.
    Otherwise such lines are headings of Markdown.
    """
    lines = body.split("\n")
    # Headings inside code do not count. But blanking the code may also turn other text into a
    # heading. So a line must be a heading with and without its code.
    prose = blank_code(body).split("\n")
    heading_of = _wiki_heading if any(map(_wiki_heading, prose)) else _hash_heading
    both = enumerate(zip(prose, lines, strict=True))
    starts = [at for at, (line, whole) in both if heading_of(line) and heading_of(whole)]
    first = "\n".join(lines[: starts[0] if starts else None]).strip()
    made = [Section(level=0, heading="", text=first)]
    for start, stop in zip(starts, [*starts[1:], len(lines)], strict=False):
        level, heading = heading_of(lines[start]) or (0, "")
        text = "\n".join(lines[start + 1 : stop]).strip()
        made.append(Section(level=level, heading=heading, text=text))
    return tuple(one for one in made if one.level or one.text)


def _wiki_heading(line: str) -> tuple[int, str] | None:
    text = line.strip()
    if len(text) < 3 or text[0] != "=" or text[-1] != "=":
        return None
    level = min(len(text) - len(text.lstrip("=")), len(text) - len(text.rstrip("=")), 6)
    heading = text[level:-level].strip()
    return (level, heading) if heading.strip("=") else None


def _hash_heading(line: str) -> tuple[int, str] | None:
    found = _HASH_HEADING.fullmatch(line.rstrip())
    if found is None:
        return None
    heading = found[2].rstrip("#").strip()
    return (len(found[1]), heading) if heading else None


MOST_CHARACTERS: Final = 100_000
"""How many characters of a talk page are read at most."""


def extract_talk_sections(body: str, *, headings: Sequence[str]) -> str:
    """Return the sections of a wiki text that have these headings, in the order of `headings`.

    Their subsections are included. A section without text is left out.
    """
    found = split_sections(body[:MOST_CHARACTERS])
    wanted = [
        _with_subsections(heading, found[at:])
        for heading in headings
        for at, one in enumerate(found)
        if one.heading == heading
    ]
    return "\n".join(filter(None, wanted))


def _with_subsections(heading: str, found: Sequence[Section]) -> str:
    """Render the first section with its subsections; "" if they have no text."""
    first, *rest = found
    texts = [first.text]
    for one in rest:
        if one.level <= first.level:
            break
        texts.append(f"== {one.heading} ==\n{one.text}")
    text = "\n".join(filter(None, texts))
    return f"= {heading} =\n{text}" if text else ""


READ_FOR_EACH: Final = 4
"""How many linked pages are read for each linked page to choose.

Some links lead to missing pages or to the same page, so more pages are read than are chosen.
"""


def gather_encyclopedia(
    task: LoreTask, plan: TaskPlan, trace: Trace
) -> Step[tuple[PackedPage, ...]]:
    """Fetch the pages that the author of the task named, and the pages of the task's entities."""
    entities = [one for one in plan.entities if one.namespace == "Main"]
    names = [*task.custom_pages, *entities]
    found = yield from fetch_pages(names, trace)
    unknown = [name for name, page in zip(names, found, strict=True) if page is None]
    trace.warn(*map(missing_page_warning, unknown))
    asked_for = {page.name for page in found[: len(task.custom_pages)] if page}
    pages = distinct_pages(found)
    trace.log_step(7, page_names(pages))
    return tuple(
        replace(pack_page(one, "encyclopedia", why="asked for by name"), forced=True)
        if one.name in asked_for
        else pack_page(one, "encyclopedia", why="the task is about it")
        for one in pages
    )


def gather_linked(
    seeds: Sequence[PackedPage], rules: AssemblyRules, trace: Trace
) -> Step[tuple[PackedPage, ...]]:
    """Fetch the pages to which the chosen encyclopedia pages link most."""
    names = [one.name for one in seeds if one.name]
    links = (yield Links(tuple(names))) if names else ()
    candidates = rank_linked_pages(
        [
            LinkSource(name=name, links=targets, mentions=linked_names(seed.text))
            for name, targets, seed in zip(names, links, seeds if names else (), strict=True)
        ]
    )
    best = candidates[: rules.linked_pages * READ_FOR_EACH]
    found = yield from fetch_pages([one.name for one in best], trace)
    known = {one.name for one in seeds}
    pages: dict[PageName, PackedPage] = {}
    for one, page in zip(best, found, strict=True):
        if page is not None and page.name not in known and len(pages) < rules.linked_pages:
            why = f"linked from {one.seeds} of {len(seeds)} pages"
            pages.setdefault(page.name, pack_page(page, "encyclopedia", why=why))
    trace.log_step(8, ", ".join(one.heading for one in pages.values()) or "none")
    return tuple(pages.values())


def gather_sources(
    plan: TaskPlan, rules: AssemblyRules, trace: Trace
) -> Step[tuple[PackedPage, ...]]:
    """Fetch the source pages that the task names, and the best source pages for each entity."""
    named = [one for one in plan.entities if one.namespace == "Sources"]
    found = yield from fetch_pages(named, trace)
    for entity in plan.entities if rules.sources_per_entity else ():
        hits = yield PageSearch(entity.title, ("Sources",), rules.sources_per_entity)
        if hidden := sum(isinstance(one, Hidden) for one in hits):
            trace.warn(f"{hidden} of the sources for {entity.title} may not be read here")
        found += [one.page for one in hits if not isinstance(one, Hidden)]
    pages = [one for one in distinct_pages(found) if one.name.namespace == "Sources"]
    trace.log_step(9, page_names(pages))
    return tuple(
        pack_page(one, "sources", why="a source for an entity of the task") for one in pages
    )


def gather_talk(
    pages: Sequence[PackedPage], rules: AssemblyRules, trace: Trace
) -> Step[tuple[PackedPage, ...]]:
    """Fetch the talk pages of chosen pages, and keep only the sections that writers may read."""
    names = dict.fromkeys(one.name.talk for one in pages if one.name)
    found = distinct_pages((yield from fetch_pages(tuple(names), trace)))
    packed = [
        replace(
            pack_page(one, "talk", why="the talk page of a chosen page"),
            heading=f"Talk: {one.name.title}",
            text=extract_talk_sections(one.body, headings=rules.talk_sections),
        )
        for one in found
    ]
    with_text = tuple(one for one in packed if one.text)
    trace.log_step(10, ", ".join(one.heading for one in with_text) or "none")
    return with_text


def gather_wikipedia(
    plan: TaskPlan, rules: AssemblyRules, trace: Trace
) -> Step[tuple[PackedPage, ...]]:
    """Fetch the Wikipedia introduction of each entity, if the rules allow it."""
    found: list[PackedPage] = []
    for entity in plan.entities if rules.wikipedia else ():
        answer = yield Introduction(entity.title)
        if isinstance(answer, Failed):
            trace.warn(f"no Wikipedia introduction for {entity.title}: {answer.why}")
        elif answer is not None and answer.text.strip():
            found.append(_pack_article(entity, answer))
    names = ", ".join(one.article for one in found)
    trace.log_step(11, names or ("none" if rules.wikipedia else "off"))
    return tuple(found)


def _pack_article(entity: PageName, article: Article) -> PackedPage:
    return PackedPage(
        bucket="wikipedia",
        heading=entity.title,
        text=article.text,
        why="background from the real world",
        sha256=hashlib.sha256(article.text.encode("utf-8", "surrogatepass")).hexdigest(),
        article=article.title,
    )
