"""Metadata of pages: where a block of it stands in a text, what it says as values, and back.

There are three notations: YAML between two lines of `---` at the top, a JSON object in `<nowiki>`,
a wiki table of two columns at the top, every row a name and a value, one of the names known; any
other table is a part of the page. `#REDIRECT [[Target]]` is a block of its own. What the engine
knows is checked here, everything else is kept as it is. Required titles are of the encyclopedia
where they name no namespace; on an instruction page they are of the instructions.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from evennia_ai.errors import EvenniaAIError, FormatError
from evennia_ai.foreign.documents import parse_json, yaml_values
from evennia_ai.knowledge.pages.page import Namespace, PageMeta, PageName, TitleError, page_name

MAX_ITEMS: Final = 200
"""Of one list: requires, aliases, topics or tags."""

LISTS: Final = ("topics", "aliases", "tags", "requires")
KNOWN: Final = frozenset({"summary", "redirect", "locks", *LISTS})


class MetaError(EvenniaAIError):
    """A field of a page's metadata has a value it cannot have."""

    def __init__(self, field: str, problem: str) -> None:
        self.field = field
        self.problem = problem
        super().__init__(f"{field} {problem}")


def meta_of(values: Mapping[str, Any], name: PageName) -> PageMeta:
    """What a block of metadata says about the page of this name; `locks` is left aside.

    MetaError: a field that is known has a value it cannot have.
    """
    required = (_named(one, "requires", _home(name)) for one in _texts(values, "requires"))
    redirect = _text(values, "redirect")
    meta = PageMeta(
        summary=_text(values, "summary"),
        topics=_texts(values, "topics"),
        aliases=_texts(values, "aliases"),
        tags=_texts(values, "tags"),
        requires=tuple(dict.fromkeys(required)),
        redirect=_named(redirect, "redirect", "Main") if redirect else None,
        fields={key: value for key, value in values.items() if key not in KNOWN},
    )
    alias_names(meta, name)
    return meta


def locks_of(values: Mapping[str, Any]) -> str:
    """The lock string in a block of metadata, "" where there is none."""
    return _text(values, "locks")


def values_of(meta: PageMeta, name: PageName, *, locks: str = "") -> dict[str, Any]:
    """The block that says this: `meta_of` of it is `meta` again. Nothing empty is in it."""
    said = {
        "summary": meta.summary,
        "redirect": meta.redirect.full if meta.redirect else "",
        "topics": list(meta.topics),
        "aliases": list(meta.aliases),
        "tags": list(meta.tags),
        "requires": [_written(one, name) for one in meta.requires],
        "locks": locks,
    }
    return {key: value for key, value in said.items() if value} | dict(meta.fields)


def alias_names(meta: PageMeta, name: PageName) -> tuple[PageName, ...]:
    """The other names of a page; those that name no namespace are in its own.

    MetaError: one is no title.
    """
    named = (_named(alias, "aliases", name.namespace) for alias in meta.aliases)
    return tuple(dict.fromkeys(named))


def _named(text: str, field: str, default: Namespace) -> PageName:
    try:
        return page_name(text, default=default)
    except TitleError as error:
        raise MetaError(field, f"names no page: {error}") from error


def _home(name: PageName) -> Namespace:
    """The namespace of required titles that name none, in the metadata of this page."""
    return "Instructions" if name.namespace == "Instructions" else "Main"


def _written(target: PageName, name: PageName) -> str:
    """A title as the metadata of the page `name` has it."""
    if target.namespace == "Main" and _home(name) != "Main":
        return f"Main:{target.title}"
    return target.full


def _text(values: Mapping[str, Any], field: str) -> str:
    value = values.get(field)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise MetaError(field, f"must be text, not {_kind(value)}; put it in quotes")
    return value.strip()


def _texts(values: Mapping[str, Any], field: str) -> tuple[str, ...]:
    """The texts of a list, each once; one text alone is a list of it."""
    value = values.get(field)
    listed: Sequence[Any] = [value] if isinstance(value, str) else value or []
    if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
        raise MetaError(field, "must be a list of texts; put numbers and dates in quotes")
    if len(listed) > MAX_ITEMS:
        raise MetaError(field, f"has {len(listed)} items and the limit is {MAX_ITEMS}")
    return tuple(dict.fromkeys(text for one in listed if (text := one.strip())))


def _kind(value: object) -> str:
    kinds = {bool: "true or false", int: "a number", float: "a number", list: "a list"}
    return kinds.get(type(value), "a block")


MAX_ROWS: Final = 200

# Of metadata as the pages of instructions and sources have it.
_FIELDS: Final = KNOWN | {
    *("id", "type", "subtype", "status", "priority", "canonical", "include_by_default"),
    *("applies_to", "task_type", "reliability", "bias"),
}
_HEADERS: Final = frozenset({"field", "key", "name", "property"})
_LINK: Final = re.compile(r"\[\[([^\[\]|#\n]{1,600})[^\[\]\n]{0,600}\]\]")
_BREAK: Final = re.compile(r"<br ?/?>|\n|,", re.I)
_WORDS: Final = {"true": True, "yes": True, "false": False, "no": False}


def info_table(source: str) -> dict[str, Any] | None:
    """What the table from `{|` to `|}` says as metadata; None where it is another table."""
    rows = [row for row in _rows(source) if row]
    if rows and len(rows[0]) == 2 and _field(rows[0][0]) in _HEADERS:
        rows = rows[1:]
    if not 0 < len(rows) <= MAX_ROWS or any(len(row) != 2 for row in rows):
        return None
    named = {_field(name): value for name, value in rows}
    if len(named) < len(rows) or not _FIELDS & named.keys():
        return None
    return {name: _value(name, value) for name, value in named.items()}


def _rows(source: str) -> Iterator[list[str]]:
    """The cells of each row, as they are written."""
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


def _field(name: str) -> str:
    return "_".join(_plain(name).lower().replace("-", " ").replace(":", "").split())


def _value(field: str, cell: str) -> Any:
    text = _plain(cell)
    if field in LISTS:
        return _items(text)
    if field == "redirect" and (link := _LINK.search(text)):
        return link[1].strip()
    return _WORDS.get(text.lower(), _number_or_list(text)) if field not in KNOWN else text


def _items(text: str) -> list[Any]:
    """The items of a list: its links where it has some, else what commas and lines part."""
    listed = _number_or_list(text)
    if isinstance(listed, list):
        return listed
    links = [link[1].strip() for link in _LINK.finditer(text)]
    parts = links or [part.strip().lstrip("*").strip() for part in _BREAK.split(text)]
    return [part for part in parts if part]


def _number_or_list(text: str) -> Any:
    if text.isascii() and text.isdecimal() and len(text) <= 15:
        return int(text)
    if not text.startswith("["):
        return text
    try:
        listed = json.loads(text)
    except ValueError:  # `[[a link]]`, or no list after all
        return text
    plain = isinstance(listed, list) and all(isinstance(one, str) for one in listed)
    return listed if plain else text


def _plain(cell: str) -> str:
    """A cell without what says how it looks."""
    text = cell.strip()
    before, bar, after = text.partition("|")
    if bar and "[[" not in before and "=" in before:  # `style="..." | value`
        text = after.strip()
    return text.replace("'''", "").replace("''", "").strip()


MAX_META: Final = 40_000
"""Characters of the metadata of a page."""

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
    """A text cannot be read as a page; `line` is where, None where the text says it."""

    def __init__(self, problem: str, *, line: int | None = None) -> None:
        self.problem = problem
        self.line = line
        super().__init__(problem if line is None else f"line {line}: {problem}")


class Block(NamedTuple):
    """A block of metadata: its source, the line it begins in, what it says, and the other text."""

    source: str
    line: int
    values: Mapping[str, Any]
    body: str

    def line_of(self, field: str) -> int:
        """The line of the page that says a field of this block."""
        found = re.search(rf"^\W*{re.escape(field)}\b", self.source, re.I | re.MULTILINE)
        return self.line + (self.source.count("\n", 0, found.start()) if found else 0)


def metadata_block(text: str) -> Block | None:
    """The block of metadata that a text has; MarkupError where it is wrong."""
    return _front_matter(text) or _redirect(text) or _json(text) or _table(text)


def may_have_block(text: str) -> bool:
    """Whether a text might be read as one with metadata."""
    starts = (_FENCE, _REDIRECT, _TABLE)
    return bool(_JSON.search(text)) or any(start.match(text) for start in starts)


def _front_matter(text: str) -> Block | None:
    opening = _FENCE.match(text)
    if opening is None:
        return None
    closing = _CLOSING_FENCE.search(text, opening.end())
    if closing is None:
        wanted = "close it with a second line of ---, or begin the page with a blank line"
        raise MarkupError(f"the front matter is never closed; {wanted}", line=1)
    source = _sized(text[opening.end() : closing.start()], line=1)
    try:
        values = yaml_values(f"\n{source}", kind="page", where="front matter")
    except FormatError as error:
        raise MarkupError(error.message) from error
    return Block(source, 2, _object(values, line=2), text[closing.end() :])


def _redirect(text: str) -> Block | None:
    found = _REDIRECT.match(text)
    if found is None:
        return None
    line = 1 + text.count("\n", 0, found.start(1))
    return Block("redirect", line, {"redirect": found[1].strip()}, text[found.end() :])


def _json(text: str) -> Block | None:
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
        raise MarkupError(f"{twice[0].partition(';')[0]}; leave one out", line=line)
    body = _without_heading(text[: opening.start()]) + text[closing.end() :]
    return Block(source, line, _object(values, line=line), body)


def _table(text: str) -> Block | None:
    opening = _TABLE.match(text)
    closing = _TABLE_END.search(text, opening.end()) if opening else None
    if opening is None or closing is None or closing.end() - opening.end() > MAX_META:
        return None
    source = text[opening.end() : closing.end()]
    values = info_table(source)
    if values is None:
        return None
    line = 1 + text.count("\n", 0, opening.end())
    return Block(source, line, values, text[closing.end() :].lstrip("\n"))


def _without_heading(text: str) -> str:
    """The text before a block, without the heading "Metadata" that may announce it."""
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
