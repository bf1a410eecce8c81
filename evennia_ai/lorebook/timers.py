"""Timers: what lore remembers from turn to turn.

Sticky entries stay, resting ones (cooldown) are silent, and entries with `@@keep_activate...` or
`@@dont_activate_after_match` remember that they were active. All of it is one immutable value that
goes in with a turn and comes out changed; only a turn that was really sent keeps what came out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from evennia_ai.lorebook.entries import ClockName

_NONE: Final[Mapping[str, "Spell"]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """What time it is in a conversation, in each of the three counts.

    `turns` are the NPC's own turns, this one among them; `messages` those it perceived, the event
    among them; `seconds` those of game time since the conversation began.
    """

    turns: int = 1
    messages: int = 0
    seconds: float = 0

    def read(self, name: ClockName) -> float:
        """The count of this name."""
        return {"turns": self.turns, "messages": self.messages, "seconds": self.seconds}[name]


@dataclass(frozen=True, slots=True)
class Spell:
    """A stretch of time on one clock: active from `start` on, over at `end`.

    A `settled` one followed a sticky spell and is not taken back when a chat is rewound.
    """

    start: float
    end: float
    settled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LoreState:
    """What lore remembers of a conversation; entries by label (`book#uid`), groups by name."""

    sticky: Mapping[str, Spell] = _NONE
    cooldown: Mapping[str, Spell] = _NONE
    groups: Mapping[str, Spell] = _NONE
    matched: frozenset[str] = frozenset()

    def to_plain(self) -> dict[str, Any]:
        """The state as JSON values, sorted, for `state_from`."""
        spells = {
            name: {
                label: [spell.start, spell.end, spell.settled]
                for label, spell in sorted(getattr(self, name).items())
            }
            for name in ("sticky", "cooldown", "groups")
        }
        return {**spells, "matched": sorted(self.matched)}


def state_from(plain: Mapping[str, Any]) -> LoreState:
    """The state that `to_plain` wrote."""
    spells = {
        name: {label: Spell(*told) for label, told in plain.get(name, {}).items()}
        for name in ("sticky", "cooldown", "groups")
    }
    return LoreState(**spells, matched=frozenset(plain.get("matched", ())))


NO_STATE: Final = LoreState()
