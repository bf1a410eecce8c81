"""Steps 7 to 11: what is known of the things that a task is about, talk about them included."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from evennia_ai.engine.knowledge.assembly.config import AssemblyRules
from evennia_ai.engine.knowledge.assembly.packages import PackedPage, packed
from evennia_ai.engine.knowledge.assembly.planning import Planned
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
    distinct,
    no_page,
    read,
    titles,
)
from evennia_ai.engine.knowledge.pages.markup import without_code
from evennia_ai.engine.knowledge.pages.page import Page, PageName, TitleError, page_name

_HASH_HEADING: Final = re.compile(r"(#{1,6})[ \t]+([^\n]*)")
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading and the text up to the next one; level 0 is what stands before the first."""

    level: int
    heading: str
    text: str


def sections(body: str) -> tuple[Section, ...]:
    """The sections of a text in their order.

    In a text with headings of MediaWiki a line that begins with `#` is an item of a list.
    """
    lines = body.split("\n")
    shown = without_code(body).split("\n")
    heading_of = _wiki_heading if any(map(_wiki_heading, shown)) else _hash_heading
    both = enumerate(zip(shown, lines, strict=True))
    starts = [at for at, (line, whole) in both if heading_of(line) and heading_of(whole)]
    made = [_section((0, ""), lines[: starts[0] if starts else None])]
    for start, stop in zip(starts, [*starts[1:], len(lines)], strict=False):
        made.append(_section(heading_of(lines[start]) or (0, ""), lines[start + 1 : stop]))
    return tuple(one for one in made if one.level or one.text)


def _section(heading: tuple[int, str], lines: list[str]) -> Section:
    return Section(level=heading[0], heading=heading[1], text="\n".join(lines).strip())


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
"""Of a talk page: what stands behind them is not looked through."""


def filtered(body: str, *, headings: Sequence[str]) -> str:
    """The sections with exactly these headings, in the order of `headings`; "" without any.

    What stands below a heading of a deeper level belongs to the section.
    """
    found = sections(body[:MOST_CHARACTERS])
    wanted = [
        _shown(heading, found[at:])
        for heading in headings
        for at, one in enumerate(found)
        if one.heading == heading
    ]
    return "\n".join(filter(None, wanted))


def _shown(heading: str, found: Sequence[Section]) -> str:
    """A section under its header, "" where nothing stands in it."""
    text = "\n".join(filter(None, _texts(found)))
    return f"= {heading} =\n{text}" if text else ""


def _texts(found: Sequence[Section]) -> Iterator[str]:
    first, *rest = found
    yield first.text
    for one in rest:
        if one.level <= first.level:
            return
        yield f"== {one.heading} ==\n{one.text}"


READ_FOR_EACH: Final = 4
"""Linked pages that are read for each that is shown: some links lead nowhere, some to one page."""


def encyclopedia(task: LoreTask, plan: Planned, trace: Trace) -> Step[tuple[PackedPage, ...]]:
    """Step 7: the pages that were asked for by name, then one for each entity."""
    entities = [one for one in plan.entities if one.namespace == "Main"]
    names = [*task.custom_pages, *entities]
    found = yield from read(names, trace)
    unknown = [name for name, page in zip(names, found, strict=True) if page is None]
    trace.warn(*map(no_page, unknown))
    asked_for = {page.name for page in found[: len(task.custom_pages)] if page}
    pages = distinct(found)
    trace.did(7, titles(pages))
    return tuple(_of_the_encyclopedia(one, forced=one.name in asked_for) for one in pages)


def linked(
    seeds: Sequence[PackedPage], rules: AssemblyRules, trace: Trace
) -> Step[tuple[PackedPage, ...]]:
    """Step 8: the pages that those of step 7 have in common, by their links."""
    candidates = yield from _linked_from(seeds)
    best = candidates[: rules.linked_pages * READ_FOR_EACH]
    found = yield from read([one.name for one in best], trace)
    known = {one.name for one in seeds}
    pages: dict[PageName, PackedPage] = {}
    for one, page in zip(best, found, strict=True):
        if page is not None and page.name not in known and len(pages) < rules.linked_pages:
            why = f"linked from {one.seeds} of {len(seeds)} pages"
            pages.setdefault(page.name, packed(page, "encyclopedia", why=why))
    trace.did(8, ", ".join(one.heading for one in pages.values()) or "none")
    return tuple(pages.values())


def sources(plan: Planned, rules: AssemblyRules, trace: Trace) -> Step[tuple[PackedPage, ...]]:
    """Step 9: the sources that the task names, then for each entity those that fit it best."""
    named = [one for one in plan.entities if one.namespace == "Sources"]
    found = yield from read(named, trace)
    for entity in plan.entities if rules.sources_per_entity else ():
        hits = yield PageSearch(entity.title, ("Sources",), rules.sources_per_entity)
        if hidden := sum(isinstance(one, Hidden) for one in hits):
            trace.warn(f"{hidden} of the sources for {entity.title} may not be read here")
        found += [one.page for one in hits if not isinstance(one, Hidden)]
    pages = [one for one in distinct(found) if one.name.namespace == "Sources"]
    trace.did(9, titles(pages))
    return tuple(packed(one, "sources", why="fits what the task is about") for one in pages)


def talk(
    pages: Sequence[PackedPage], rules: AssemblyRules, trace: Trace
) -> Step[tuple[PackedPage, ...]]:
    """Step 10: of the talk pages of these pages the sections that a writer may see."""
    names = dict.fromkeys(one.name.talk for one in pages if one.name)
    found = distinct((yield from read(tuple(names), trace)))
    shown = [_talk_page(one, filtered(one.body, headings=rules.talk_sections)) for one in found]
    with_text = tuple(one for one in shown if one.text)
    trace.did(10, ", ".join(one.heading for one in with_text) or "none")
    return with_text


def wikipedia(plan: Planned, rules: AssemblyRules, trace: Trace) -> Step[tuple[PackedPage, ...]]:
    """Step 11: what the real world knows of each entity, where the rules allow to ask."""
    found: list[PackedPage] = []
    for entity in plan.entities if rules.wikipedia else ():
        answer = yield Introduction(entity.title)
        if isinstance(answer, Failed):
            trace.warn(f"no word of Wikipedia on {entity.title}: {answer.why}")
        elif answer is not None and answer.text.strip():
            found.append(_article(entity, answer))
    trace.did(11, ", ".join(one.article for one in found) or ("none" if rules.wikipedia else "off"))
    return tuple(found)


def _of_the_encyclopedia(page: Page, *, forced: bool) -> PackedPage:
    why = "asked for by name" if forced else "the task is about it"
    return replace(packed(page, "encyclopedia", why=why), forced=forced)


def _linked_from(seeds: Sequence[PackedPage]) -> Step[tuple[Related, ...]]:
    names = [one.name for one in seeds if one.name]
    if not names:
        return ()
    links = yield Links(tuple(names))
    return related(
        [
            Seed(name=name, links=targets, mentions=mentions(seed.text))
            for name, targets, seed in zip(names, links, seeds, strict=True)
        ]
    )


def _talk_page(page: Page, text: str) -> PackedPage:
    whole = packed(page, "talk", why="talk about a chosen page")
    return replace(whole, heading=f"Talk: {page.name.title}", text=text)


def _article(entity: PageName, article: Article) -> PackedPage:
    return PackedPage(
        bucket="wikipedia",
        heading=entity.title,
        text=article.text,
        why="the real world",
        sha256=hashlib.sha256(article.text.encode("utf-8", "surrogatepass")).hexdigest(),
        article=article.title,
    )
