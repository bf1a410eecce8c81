"""How much NPCs may write: letters and books that players can carry away.

A game sets single ones of these in one dictionary; what it leaves out is as it is by default.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, Final

from evennia_ai.prompt.components import is_plain_int
from evennia_ai.prompt.given_settings import refuse_wrong

MOST_CHARACTERS: Final = 8000
"""More than this is not taken from a model, whatever a game sets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WritingLimits:
    """What one NPC may write."""

    characters: int = 2000
    """How long one writing may be."""
    most: int = 20
    """How many writings of it there may be in the game at one time; 0: it writes nothing."""
    a_day: int = 5
    """How many it may begin in 24 hours, those that are gone since among them."""


_KNOWN: Final = tuple(field.name for field in fields(WritingLimits))
# Name -> the least and the greatest it can be.
_NUMBERS: Final[Mapping[str, tuple[int, int]]] = MappingProxyType(
    {"characters": (1, MOST_CHARACTERS), "most": (0, 10**6), "a_day": (0, 10**4)}
)


def read_writing_limits(given: Any, *, where: str) -> WritingLimits:
    """The limits in the dictionary `given`; FormatError names the first that cannot be."""
    refuse_wrong(given, _KNOWN, _wanted, where=where)
    return WritingLimits(**given)


def _wanted(name: str, value: Any) -> str:
    """What a value of this name must be, "" where it is that."""
    low, high = _NUMBERS[name]
    fits = is_plain_int(value) and low <= value <= high
    return "" if fits else f"a whole number from {low} to {high}"
