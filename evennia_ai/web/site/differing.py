"""What is different in two texts, as the values that a page shows."""

from collections.abc import Iterable
from typing import Any, Final

from evennia_ai.engine.text.differences import diff_texts

_WIDTH: Final = 100
_HOW: Final = {"- ": "gone", "-": "gone", "+ ": "new", "+": "new", "  ": "same", "": "same"}
MOST_LINES: Final = 400


def difference(before: str, after: str) -> list[dict[str, Any]]:
    """The lines that are gone and new, with one beside them; nothing where nothing changed."""
    return as_values(diff_texts(before, after, width=_WIDTH))


def as_values(lines: Iterable[str]) -> list[dict[str, Any]]:
    """Lines that begin with `- `, `+ ` or `  `, each with what became of it.

    Any other line says of what the lines below it are.
    """
    told = [_value(line) for line in lines]
    if len(told) <= MOST_LINES:
        return told
    more = len(told) - MOST_LINES
    return [*told[:MOST_LINES], {"how": "same", "text": f"and {more} lines more"}]


def _value(line: str) -> dict[str, Any]:
    how = _HOW.get(line[:2])
    return {"how": "head", "text": line} if how is None else {"how": how, "text": line[2:]}
