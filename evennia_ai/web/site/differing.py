"""What is different in two texts, as the values that a page shows."""

from collections.abc import Iterable
from typing import Any, Final

from evennia_ai.text.differences import differences

_WIDTH: Final = 100
_HOW: Final = {"-": "gone", "+": "new"}
MOST_LINES: Final = 400


def difference(before: str, after: str) -> list[dict[str, Any]]:
    """The lines that are gone and new, with one beside them; nothing where nothing changed."""
    return as_values(differences(before, after, width=_WIDTH))


def as_values(lines: Iterable[str]) -> list[dict[str, Any]]:
    """Lines that begin with `- `, `+ ` or `  `, each with what became of it."""
    told = [{"how": _HOW.get(line[:1], "same"), "text": line[2:]} for line in lines]
    if len(told) <= MOST_LINES:
        return told
    more = len(told) - MOST_LINES
    return [*told[:MOST_LINES], {"how": "same", "text": f"and {more} lines more"}]
