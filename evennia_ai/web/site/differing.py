"""Differences of two texts as plain values for a page."""

from collections.abc import Iterable
from typing import Any, Final

from evennia_ai.engine.text.differences import diff_texts

_WIDTH: Final = 100
_HOW: Final = {"- ": "gone", "-": "gone", "+ ": "new", "+": "new", "  ": "same", "": "same"}
MOST_LINES: Final = 400


def text_differences(before: str, after: str) -> list[dict[str, Any]]:
    """Return removed and added lines, each with one line of context. Empty if nothing changed."""
    return difference_values(diff_texts(before, after, width=_WIDTH))


def difference_values(lines: Iterable[str]) -> list[dict[str, Any]]:
    """Return lines of a diff (`- `, `+ `, `  `), each marked as removed, added or the same.

    Any other line is marked as a heading for the lines below it.
    """
    told = [_value(line) for line in lines]
    if len(told) <= MOST_LINES:
        return told
    more = len(told) - MOST_LINES
    return [*told[:MOST_LINES], {"how": "same", "text": f"and {more} lines more"}]


def _value(line: str) -> dict[str, Any]:
    how = _HOW.get(line[:2])
    return {"how": "head", "text": line} if how is None else {"how": how, "text": line[2:]}
