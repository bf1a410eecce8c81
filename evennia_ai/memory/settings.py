"""Settings of memory: what is recalled, how much is kept, when something is learnt in idle time.

A game sets single ones of them in one dictionary; what it leaves out is as it is by default.
"""

from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field

from evennia_ai.foreign.fields import read_fields
from evennia_ai.memory.recalling import RecallRules


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySettings:
    """How NPCs of a game remember."""

    enabled: bool = True
    recall: RecallRules = field(default_factory=RecallRules)
    kept: Annotated[int, Field(ge=1, le=2000)] = 500
    """How many memories an NPC has at most."""
    after_messages: Annotated[int, Field(ge=0, le=10**6)] = 30
    """After so many new messages of a conversation a model is asked in idle time; 0: never."""
    most_observations: Annotated[int, Field(ge=1, le=20)] = 5
    """What it is asked for at most."""
    forget_days: Annotated[int, Field(ge=1, le=10**6)] = 30
    """Days of the game after which a memory may fade that was not recalled; none of a builder."""
    floor_percent: Annotated[int, Field(ge=0, le=100)] = 20
    """It fades where it counts less than this of what it could by recency and importance."""


def read_memory(given: Any, *, where: str) -> MemorySettings:
    """The settings in the dictionary `given`; FormatError names the first that cannot be."""
    return read_fields(MemorySettings, given, where=where)
