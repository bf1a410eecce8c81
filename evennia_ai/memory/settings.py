"""Settings of memory: what is recalled, how much is kept, when something is learnt in idle time.

A game sets single ones of them in one dictionary; what it leaves out is as it is by default.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, Final

from evennia_ai.memory.recalling import RecallRules
from evennia_ai.prompt.components import is_plain_int
from evennia_ai.prompt.given_settings import refuse_wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySettings:
    """How NPCs of a game remember.

    `kept` is how many memories an NPC has at most. After `after_messages` new messages of a
    conversation a model is asked in idle time for at most `most_observations`; 0 is never. A memory
    that was not recalled for `forget_days` days of the game, and counts less than `floor_percent`
    of what it could by recency and importance, fades; a builder's own does not.
    """

    enabled: bool = True
    recall: RecallRules = field(default_factory=RecallRules)
    kept: int = 500
    after_messages: int = 30
    most_observations: int = 5
    forget_days: int = 30
    floor_percent: int = 20


_RECALL: Final = tuple(field.name for field in fields(RecallRules))
# Name -> the least and the greatest it can be.
_NUMBERS: Final[Mapping[str, tuple[int, int]]] = MappingProxyType(
    {
        "most": (0, 100),
        "share_percent": (0, 90),
        "scan_messages": (1, 50),
        "kept": (1, 2000),
        "after_messages": (0, 10**6),
        "most_observations": (1, 20),
        "forget_days": (1, 10**6),
        "floor_percent": (0, 100),
    }
)
_KNOWN: Final = ("enabled", *_NUMBERS)


def read_memory(given: Any, *, where: str) -> MemorySettings:
    """The settings in the dictionary `given`; FormatError names the first that cannot be."""
    refuse_wrong(given, _KNOWN, _wanted, where=where)
    recall = RecallRules(**{name: given[name] for name in _RECALL if name in given})
    others = {name: value for name, value in given.items() if name not in _RECALL}
    return MemorySettings(recall=recall, **others)


def _wanted(name: str, value: Any) -> str:
    """What a value of this name must be, "" where it is that."""
    if name == "enabled":
        return "" if isinstance(value, bool) else "True or False"
    low, high = _NUMBERS[name]
    fits = is_plain_int(value) and low <= value <= high
    return "" if fits else f"a whole number from {low} to {high}"
