"""Markup: texts as people write them, read as pages, and pages written as such texts.

A text may have a block of metadata (`metadata.py`), the rest is the page's body. Headings are those
of MediaWiki or of Markdown, links are `[[Target#part|label]]`; neither is looked for in code. Prose
is what is left of a body for people to read.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from evennia_ai.foreign.documents import yaml_text
from evennia_ai.knowledge.pages.metadata import (
    MAX_META,
    Block,
    MarkupError,
    MetaError,
    locks_of,
    may_have_block,
    meta_of,
    metadata_block,
    values_of,
)
from evennia_ai.knowledge.pages.page import Page, PageName, TitleError, page_name

_CLOSED_BY: Final = {
    "<!--": "-->",
    "<nowiki>": "</nowiki>",
    "<pre>": "</pre>",
    "<code>": "</code>",
    "```": "```",
    "~~~": "~~~",
    "`": "`",
}
_OPENING: Final = re.compile(
    r"<!--|<nowiki>|<pre>|<code>|^```|^~~~|`", re.MULTILINE | re.IGNORECASE
)


def prose(text: str) -> Iterator[tuple[int, int]]:
    """The parts of `text` that are read as markup, as start and stop, in their order.

    A mark that is never closed is itself read as text; a backtick is closed on its own line.
    """
    lowered = text.translate(_SMALL)
    unclosed: set[str] = set()
    start = at = 0
    while found := _OPENING.search(text, at):
        mark = found[0].lower()
        stop = -1 if mark in unclosed else lowered.find(_CLOSED_BY[mark], found.end())
        if stop < 0:
            unclosed.add(mark)
        if stop < 0 or (mark == "`" and "\n" in lowered[found.end() : stop]):
            at = found.end()
            continue
        yield start, found.start()
        start = at = stop + len(_CLOSED_BY[mark])
    yield start, len(text)


def without_code(text: str) -> str:
    """`text` with blanks for everything that is no prose; every line stays where it is."""
    if not _OPENING.search(text):
        return text
    made: list[str] = []
    at = 0
    for start, stop in prose(text):
        made.append(_blanks(text[at:start]))
        made.append(text[start:stop])
        at = stop
    return "".join(made)


def _blanks(text: str) -> str:
    return "".join("\n" if sign == "\n" else " " for sign in text)


# ASCII letters alone: every character stays where it is.
_SMALL: Final = {big: big + 32 for big in range(ord("A"), ord("Z") + 1)}


__all__ = [
    "MAX_META",
    "MAX_TEXT",
    "MarkupError",
    "Section",
    "links_of",
    "page_of_values",
    "read_page",
    "sections",
    "write_page",
    "write_wikitext",
]

MAX_TEXT: Final = 400_000
"""Characters of a page."""

_LINK: Final = re.compile(r"\[\[([^\[\]{}|<>\n]{1,600})(?:\|([^\[\]\n]{0,600}))?\]\]")
_HASH_HEADING: Final = re.compile(r"(#{1,6})[ \t]+([^\n]*)")
# Links that show or sort something and lead to no page.
_NO_PAGES: Final = frozenset({"file", "image", "media", "category"})
_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading and the text up to the next one; level 0 is what stands before the first."""

    level: int
    heading: str
    text: str


def read_page(name: PageName, text: str) -> Page:
    """The page that `text` holds.

    MarkupError: the text or its metadata is too long, or the metadata is wrong.
    """
    if len(text) > MAX_TEXT:
        raise MarkupError(f"the page has {len(text)} characters and the limit is {MAX_TEXT}")
    if found := _UNSTORABLE.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise MarkupError("there is a null character or half a pair of one; take it out", line=line)
    block = metadata_block(text)
    if block is None:
        return Page(name=name, body=text, links=links_of(text))
    return _page(name, block)


def page_of_values(name: PageName, values: Mapping[str, Any], body: str) -> Page:
    """The page with this metadata and this text; MetaError where a field is wrong."""
    meta = meta_of(values, name)
    return Page(name=name, body=body, meta=meta, links=links_of(body), locks=locks_of(values))


def write_page(page: Page) -> str:
    """The page as a text with YAML front matter, which `read_page` reads as the same page."""
    values = values_of(page.meta, page.name, locks=page.locks)
    if not values and not may_have_block(page.body):
        return page.body
    told = yaml_text(values) if values else ""
    return f"---\n{told}---\n\n{page.body}"


def write_wikitext(page: Page) -> str:
    """The page as MediaWiki has it: its metadata as JSON in `<nowiki>`, a redirect as one."""
    values = values_of(page.meta, page.name, locks=page.locks)
    if values.keys() == {"redirect"} and not page.body:
        return f"#REDIRECT [[{page.meta.redirect}]]\n"
    if not values and not may_have_block(page.body):
        return page.body
    told = json.dumps(values, ensure_ascii=False, indent=1).replace("<", "\\u003c")
    return f"<nowiki>{told}</nowiki>\n{page.body}"


def links_of(body: str) -> tuple[PageName, ...]:
    """The pages that a text links to, each once, in the order of their first link."""
    found: dict[PageName, None] = {}
    for link in _LINK.finditer(without_code(body)):
        target = link[1].partition("#")[0].strip()
        prefix, colon, _ = target.partition(":")
        if not target or (colon and prefix.strip().lower() in _NO_PAGES):
            continue
        try:
            found[page_name(target.removeprefix(":"))] = None
        except TitleError:  # as in MediaWiki: what is no title stays text
            continue
    return tuple(found)


def without_links(text: str) -> str:
    """The text as its reader sees it: of each link the label, or the title where it has none."""
    return _LINK.sub(lambda link: (link[2] or "").strip() or link[1].strip(), text)


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


def _page(name: PageName, block: Block) -> Page:
    try:
        return page_of_values(name, block.values, block.body)
    except MetaError as error:
        raise MarkupError(str(error), line=block.line_of(error.field)) from error
