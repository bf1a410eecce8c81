"""Markup: read wiki pages from the text notations that people use, and write them as text.

A text may have a block of metadata. The rest is the body. There are three notations for metadata:

- YAML between two lines of `---` at the top;
- a JSON object in `<nowiki>`;
- a wiki table at the top that has two columns, for names and values, and at least one known name.
  Any other table is part of the body.

`#REDIRECT [[Target]]` is a block of its own. Links have the form `[[Target#part|label]]`. Prose is
the part of a body that is not code, and only prose contains links.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from evennia_ai.engine.errors import EvenniaAIError, FormatError
from evennia_ai.engine.foreign.documents import parse_json, read_yaml, write_yaml
from evennia_ai.engine.knowledge.pages.page import (
    KNOWN_FIELDS,
    LIST_FIELDS,
    MetaError,
    Page,
    PageName,
    TitleError,
    meta_values,
    page_name,
    parse_locks,
    parse_meta,
)

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


def prose_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each part of a text that is not code, in order.

    An opening code mark that is never closed is ordinary text. A backtick must be closed on its
    line.
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


def blank_code(text: str) -> str:
    """Replace the code in a text by blanks. All other characters keep their positions."""
    if not _OPENING.search(text):
        return text
    made: list[str] = []
    at = 0
    for start, stop in prose_spans(text):
        made.append("".join("\n" if sign == "\n" else " " for sign in text[at:start]))
        made.append(text[start:stop])
        at = stop
    return "".join(made)


# Lower-cases only ASCII letters. `str.lower` may change the length of a text, which would shift
# positions.
_SMALL: Final = {big: big + 32 for big in range(ord("A"), ord("Z") + 1)}


MAX_ROWS: Final = 200

# The names of the metadata fields that instruction pages and sources use.
_FIELDS: Final = KNOWN_FIELDS | {
    *("id", "type", "subtype", "status", "priority", "canonical", "include_by_default"),
    *("applies_to", "task_type", "reliability", "bias"),
}
_HEADERS: Final = frozenset({"field", "key", "name", "property"})
_LINKED: Final = re.compile(r"\[\[([^\[\]|#\n]{1,600})[^\[\]\n]{0,600}\]\]")
_BREAK: Final = re.compile(r"<br ?/?>|\n|,", re.I)
_WORDS: Final = {"true": True, "yes": True, "false": False, "no": False}


def parse_info_table(source: str) -> dict[str, Any] | None:
    """Parse a wiki table from `{|` to `|}` as metadata; None if it is another kind of table."""
    rows = [row for row in _rows(source) if row]
    if rows and len(rows[0]) == 2 and _field_name(rows[0][0]) in _HEADERS:
        rows = rows[1:]
    if not 0 < len(rows) <= MAX_ROWS or any(len(row) != 2 for row in rows):
        return None
    named = {_field_name(name): value for name, value in rows}
    if len(named) < len(rows) or not _FIELDS & named.keys():
        return None
    return {name: _value(name, value) for name, value in named.items()}


def _rows(source: str) -> Iterator[list[str]]:
    """Yield the cells of each row of a wiki table as they are written."""
    row: list[str] = []
    for line in source.split("\n")[1:]:
        text = line.strip()
        if text.startswith(("|-", "|}")):
            yield row
            row = []
        elif text.startswith(("|", "!")) and not text.startswith("|+"):
            row += re.split(r"\|\||!!", text[1:])
        elif row:
            row[-1] += f"\n{text}"


def _field_name(name: str) -> str:
    return "_".join(_plain(name).lower().replace("-", " ").replace(":", "").split())


def _value(field: str, cell: str) -> Any:
    text = _plain(cell)
    if field in LIST_FIELDS:
        return _items(text)
    if field == "redirect" and (link := _LINKED.search(text)):
        return link[1].strip()
    return _WORDS.get(text.lower(), _number_or_list(text)) if field not in KNOWN_FIELDS else text


def _items(text: str) -> list[Any]:
    """Return the items of a list that was written as text in metadata.

    If the text has links, the linked titles are the items. Otherwise commas and line breaks
    separate the items.
    """
    listed = _number_or_list(text)
    if isinstance(listed, list):
        return listed
    links = [link[1].strip() for link in _LINKED.finditer(text)]
    parts = links or [part.strip().lstrip("*").strip() for part in _BREAK.split(text)]
    return [part for part in parts if part]


def _number_or_list(text: str) -> Any:
    if text.isascii() and text.isdecimal() and len(text) <= 15:
        return int(text)
    if not text.startswith("["):
        return text
    try:
        listed = json.loads(text)
    except ValueError:  # not a list, but for example a link: `[[a link]]`
        return text
    plain = isinstance(listed, list) and all(isinstance(one, str) for one in listed)
    return listed if plain else text


def _plain(cell: str) -> str:
    """Return the text in a cell of a wiki table, without formatting."""
    text = cell.strip()
    before, bar, after = text.partition("|")
    # the cell begins with attributes, as in `style="..." | value`
    if bar and "[[" not in before and "=" in before:
        text = after.strip()
    return text.replace("'''", "").replace("''", "").strip()


MAX_META: Final = 40_000
"""How many characters the metadata of a wiki page may have at most."""

_FENCE: Final = re.compile(r"---[ \t]*\r?\n")
_CLOSING_FENCE: Final = re.compile(r"^---[ \t]*(?:\r?\n|\Z)(?:\r?\n)?", re.MULTILINE)
_REDIRECT: Final = re.compile(
    r"\s{0,100}#redirect:?[ \t]{0,100}\[\[([^\[\]|#\n]{1,600})[^\[\]\n]{0,600}\]\][^\n]*\n?", re.I
)
_JSON: Final = re.compile(r'<nowiki>\s{0,1000}(?=\{\s{0,1000}["}])', re.I)
_JSON_END: Final = re.compile(r"</nowiki>[ \t]{0,100}\n?", re.I)
_TABLE: Final = re.compile(r"\s{0,1000}(?:=+[ \t]*metadata[ \t]*=+\s{1,1000})?(?=\{\|)", re.I)
_TABLE_END: Final = re.compile(r"^[ \t]{0,100}\|\}[^\n]*\n?", re.MULTILINE)
_META_HEADING: Final = re.compile(r"=+[ \t]*metadata[ \t]*=+", re.I)


class MarkupError(EvenniaAIError):
    """The error for a text that is no valid page. `line` is None if `problem` names the line."""

    def __init__(self, problem: str, *, line: int | None = None) -> None:
        self.problem = problem
        self.line = line
        super().__init__(problem if line is None else f"line {line}: {problem}")


class MetadataBlock(NamedTuple):
    """The metadata in a page's text: source, first line and values; and the body without them."""

    source: str
    line: int
    values: Mapping[str, Any]
    body: str

    def line_of(self, field: str) -> int:
        """Return the number of the line that sets a metadata field."""
        found = re.search(rf"^\W*{re.escape(field)}\b", self.source, re.I | re.MULTILINE)
        return self.line + (self.source.count("\n", 0, found.start()) if found else 0)


def parse_metadata_block(text: str) -> MetadataBlock | None:
    """Return the block of metadata in the text of a page; None if there is none.

    Raises:
        MarkupError: The block is invalid.
    """
    return _front_matter(text) or _redirect(text) or _json(text) or _table(text)


def may_have_metadata(text: str) -> bool:
    """True if `read_page` could take a part of this text for metadata."""
    starts = (_FENCE, _REDIRECT, _TABLE)
    return bool(_JSON.search(text)) or any(start.match(text) for start in starts)


def _front_matter(text: str) -> MetadataBlock | None:
    opening = _FENCE.match(text)
    if opening is None:
        return None
    closing = _CLOSING_FENCE.search(text, opening.end())
    if closing is None:
        wanted = "close it with a second line of ---, or begin the page with a blank line"
        raise MarkupError(f"the front matter is never closed; {wanted}", line=1)
    source = _sized(text[opening.end() : closing.start()], line=1)
    try:
        values = read_yaml(f"\n{source}", kind="page", where="front matter")
    except FormatError as error:
        raise MarkupError(error.message) from error
    return MetadataBlock(source, 2, _object(values, line=2), text[closing.end() :])


def _redirect(text: str) -> MetadataBlock | None:
    found = _REDIRECT.match(text)
    if found is None:
        return None
    line = 1 + text.count("\n", 0, found.start(1))
    return MetadataBlock("redirect", line, {"redirect": found[1].strip()}, text[found.end() :])


def _json(text: str) -> MetadataBlock | None:
    opening = _JSON.search(text)
    if opening is None:
        return None
    line = 1 + text.count("\n", 0, opening.end())
    closing = _JSON_END.search(text, opening.end())
    if closing is None:
        raise MarkupError("<nowiki> with metadata is never closed by </nowiki>", line=line)
    source = _sized(text[opening.end() : closing.start()], line=line)
    try:
        values, twice = parse_json("\n" * (line - 1) + source, kind="page", where="metadata")
    except FormatError as error:
        raise MarkupError(error.message) from error
    if twice:
        raise MarkupError(f"{twice[0].partition(';')[0]}; remove one of the two", line=line)
    body = _without_heading(text[: opening.start()]) + text[closing.end() :]
    return MetadataBlock(source, line, _object(values, line=line), body)


def _table(text: str) -> MetadataBlock | None:
    opening = _TABLE.match(text)
    closing = _TABLE_END.search(text, opening.end()) if opening else None
    if opening is None or closing is None or closing.end() - opening.end() > MAX_META:
        return None
    source = text[opening.end() : closing.end()]
    values = parse_info_table(source)
    if values is None:
        return None
    line = 1 + text.count("\n", 0, opening.end())
    return MetadataBlock(source, line, values, text[closing.end() :].lstrip("\n"))


def _without_heading(text: str) -> str:
    """Return the text before a metadata block, without a heading "Metadata" at its end."""
    before, _, last = text.rstrip().rpartition("\n")
    return before if _META_HEADING.fullmatch(last.strip()) else text


def _sized(source: str, *, line: int) -> str:
    if len(source) > MAX_META:
        size = f"{len(source)} characters and the limit is {MAX_META}"
        raise MarkupError(f"the metadata has {size}", line=line)
    return source


def _object(values: Any, *, line: int) -> Mapping[str, Any]:
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise MarkupError("the metadata must be fields with values, as 'summary: ...'", line=line)
    return values


MAX_TEXT: Final = 400_000
"""How many characters the text of a wiki page may have at most."""

_LINK: Final = re.compile(r"\[\[([^\[\]{}|<>\n]{1,600})(?:\|([^\[\]\n]{0,600}))?\]\]")
# Prefixes of links that show a file or set a category. Such links lead to no page, so they are
# ignored.
_NO_PAGES: Final = frozenset({"file", "image", "media", "category"})
_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")


def read_page(name: PageName, text: str) -> Page:
    """Read a text with its metadata as the wiki page of this name.

    Raises:
        MarkupError: The text or its metadata is too long, or the metadata is invalid.
    """
    if len(text) > MAX_TEXT:
        raise MarkupError(f"the page has {len(text)} characters and the limit is {MAX_TEXT}")
    if found := _UNSTORABLE.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise MarkupError(
            "there is a null character or half of a surrogate pair; remove it", line=line
        )
    block = parse_metadata_block(text)
    if block is None:
        return Page(name=name, body=text, links=find_links(text))
    try:
        return build_page(name, block.values, block.body)
    except MetaError as error:
        raise MarkupError(str(error), line=block.line_of(error.field)) from error


def build_page(name: PageName, values: Mapping[str, Any], body: str) -> Page:
    """Make a wiki page from a text and the values of its metadata.

    Raises:
        MetaError: A metadata field is invalid.
    """
    meta = parse_meta(values, name)
    return Page(name=name, body=body, meta=meta, links=find_links(body), locks=parse_locks(values))


def write_page(page: Page) -> str:
    """Write a wiki page as text, with its metadata as YAML at the top.

    `read_page` reads the same page from this text.
    """
    values = meta_values(page.meta, page.name, locks=page.locks)
    if not values and not may_have_metadata(page.body):
        return page.body
    # Without metadata, write an empty block if `read_page` would otherwise take the beginning of
    # the body for metadata.
    metadata = write_yaml(values) if values else ""
    return f"---\n{metadata}---\n\n{page.body}"


def write_wikitext(page: Page) -> str:
    """Write a wiki page as wikitext for MediaWiki, with its metadata as JSON in `<nowiki>`.

    A page that only redirects becomes a redirect of MediaWiki.
    """
    values = meta_values(page.meta, page.name, locks=page.locks)
    if values.keys() == {"redirect"} and not page.body:
        return f"#REDIRECT [[{page.meta.redirect}]]\n"
    if not values and not may_have_metadata(page.body):
        return page.body
    # `<` is escaped, so that no value can close the tag <nowiki>.
    metadata = json.dumps(values, ensure_ascii=False, indent=1).replace("<", "\\u003c")
    return f"<nowiki>{metadata}</nowiki>\n{page.body}"


def find_links(body: str) -> tuple[PageName, ...]:
    """Return the pages to which a wiki text links, in order and without duplicates."""
    found: dict[PageName, None] = {}
    for link in _LINK.finditer(blank_code(body)):
        target = link[1].partition("#")[0].strip()
        prefix, colon, _ = target.partition(":")
        if not target or (colon and prefix.strip().lower() in _NO_PAGES):
            continue
        try:
            found[page_name(target.removeprefix(":"))] = None
        except TitleError:  # as in MediaWiki, a link to an invalid title is ordinary text
            continue
    return tuple(found)


def strip_links(text: str) -> str:
    """Return a wiki text as readers see it: each link becomes its label or else its title."""
    return _LINK.sub(lambda link: (link[2] or "").strip() or link[1].strip(), text)
