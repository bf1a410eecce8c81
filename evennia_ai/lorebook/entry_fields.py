"""One vocabulary for what the formats say about an entry, before decorators are applied."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from evennia_ai.lorebook.conditions import Condition
from evennia_ai.lorebook.entries import (
    NO_GROUPS,
    NO_RECURSION,
    NO_TIMING,
    Anchor,
    ClockName,
    Grouping,
    Logic,
    Mention,
    Patterns,
    Position,
    Recursion,
    SourceName,
    Timing,
)
from evennia_ai.prompt.messages import Role

# Injection depth of an entry that stands in the history and does not say where.
DEFAULT_DEPTH: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnFields:
    """What our own extension data says; None and empty are what it does not say."""

    clock: ClockName | None = None
    conditions: tuple[Condition, ...] = ()
    anchor: Anchor | None = None
    mention: Mention | None = None
    outlet: str = ""
    group_cooldown: int = 0
    patterns: Patterns | None = None
    priority: float | None = None
    sources: frozenset[SourceName] = frozenset()
    movement: bool | None = None


NO_OWN: Final = OwnFields()


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryFields:
    """An entry as its format says it; the names are those of `LoreEntry`.

    `plain` are attributes of it that all formats give as they are (`fields`).
    """

    uid: str
    name: str
    keys: tuple[str, ...]
    secondary_keys: tuple[str, ...]
    selective: bool
    logic: Logic
    patterns: Patterns
    enabled: bool
    constant: bool
    content: str
    position: Position
    depth: int | None
    role: Role
    outlet: str
    order: float
    priority: float
    case_sensitive: bool | None
    sources: frozenset[SourceName]
    recursion: Recursion = NO_RECURSION
    timing: Timing = NO_TIMING
    grouping: Grouping = NO_GROUPS
    chance: float = 100
    conditions: tuple[Condition, ...] = ()
    own: OwnFields = NO_OWN
    plain: Mapping[str, Any]
    notices: tuple[str, ...] = ()
