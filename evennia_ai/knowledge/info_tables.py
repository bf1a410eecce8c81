"""Info tables: metadata of a page as a wiki table of two columns.

A table is one where every row is a name and a value and at least one of the names is known; any
other table is a part of the page.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from evennia_ai.knowledge.page_meta import KNOWN, LISTS

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
