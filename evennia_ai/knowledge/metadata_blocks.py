"""Blocks of metadata in texts of pages: where one stands, what it says, and the text without it.

Three notations: YAML between two lines of `---` at the top, a JSON object in `<nowiki>`, a wiki
table of two columns at the top. `#REDIRECT [[Target]]` is a block of its own.
"""

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from evennia_ai.errors import EvenniaAIError, FormatError
from evennia_ai.foreign.strict_json import parse_json
from evennia_ai.foreign.strict_yaml import yaml_values
from evennia_ai.knowledge.info_tables import info_table

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
