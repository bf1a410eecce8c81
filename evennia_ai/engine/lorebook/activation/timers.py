"""Timers of lore: the state of entries that lasts from turn to turn.

Sticky entries stay active for a while, and entries with a cooldown stay inactive for a while. The
state also records which entries with `@@keep_activate_after_match` or `@@dont_activate_after_match`
were active. A turn reads a `LoreState` and makes a new one. The caller stores the new state only if
the prompt of the turn was really sent.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from evennia_ai.engine.lorebook.entry import NO_GATES, NO_GROUPS, NO_TIMING, LoreEntry, Timing
from evennia_ai.engine.lorebook.rules import ActivationRules, ClockName


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """The time in a conversation, measured in turns, in messages and in seconds of the game.

    `turns` counts the NPC's own turns, including this one. `messages` counts the messages that the
    NPC perceived, including the event. `seconds` is the game time since the conversation began.
    """

    turns: int = 1
    messages: int = 0
    seconds: float = 0

    def read(self, name: ClockName) -> float:
        """Return the time on the clock with this name."""
        return {"turns": self.turns, "messages": self.messages, "seconds": self.seconds}[name]


@dataclass(frozen=True, slots=True)
class Spell:
    """A period in which a timer of an entry runs: from `start` up to `end`, on one clock.

    `settled` is True for a cooldown that followed a sticky period. Such a cooldown is not undone
    when the chat goes back to an earlier message.
    """

    start: float
    end: float
    settled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LoreState:
    """The timers of lore in one conversation: of entries by identity, of groups by name.

    The identity of an entry is its label (`book#uid`), or a longer name if another book could have
    an entry with that label (`lorebook.book`).
    """

    sticky: Mapping[str, Spell] = field(default_factory=dict)
    cooldown: Mapping[str, Spell] = field(default_factory=dict)
    groups: Mapping[str, Spell] = field(default_factory=dict)
    matched: frozenset[str] = frozenset()

    def to_plain(self) -> dict[str, Any]:
        """Return the state of the timers as JSON values, which `state_from` reads."""
        spells = {
            name: {
                identity: [spell.start, spell.end, spell.settled]
                for identity, spell in sorted(getattr(self, name).items())
            }
            for name in ("sticky", "cooldown", "groups")
        }
        return {**spells, "matched": sorted(self.matched)}


def state_from(plain: Mapping[str, Any]) -> LoreState:
    """Return the state of the timers from JSON values that `to_plain` returned."""
    spells = {
        name: {identity: Spell(*values) for identity, values in plain.get(name, {}).items()}
        for name in ("sticky", "cooldown", "groups")
    }
    return LoreState(**spells, matched=frozenset(plain.get("matched", ())))


NO_STATE: Final = LoreState()


def is_remembered(entry: LoreEntry) -> bool:
    """True if later turns must know that an entry was active."""
    timing, gates = entry.timing, entry.gates
    if timing is NO_TIMING and gates is NO_GATES and entry.grouping is NO_GROUPS:
        return False
    return bool(
        timing.sticky
        or timing.cooldown
        or entry.grouping.cooldown
        or gates.kept_after_match
        or gates.never_after_match
    )


class Timers:
    """The timers of lore that run in one turn, computed before the first activation pass.

    `sticky` and `resting` have the running sticky periods and cooldowns, by identity of the entry.
    `resting_groups` has the running cooldowns of inclusion groups, by name. The stored state is not
    changed.
    """

    __slots__ = ("_before", "_clock", "_rules", "_state", "resting", "resting_groups", "sticky")

    def __init__(
        self,
        state: LoreState,
        *,
        clock: Clock,
        rules: ActivationRules,
        entry_of: Callable[[str], LoreEntry | None],
    ) -> None:
        self._clock = clock
        self._rules = rules
        self._before = state
        sticky, over = self._running_spells("sticky", state.sticky, entry_of)
        cooldown = {**state.cooldown, **self._cooldowns_after_sticky(over, entry_of)}
        cooldown, _ = self._running_spells("cooldown", cooldown, entry_of)
        now = clock.read(rules.clock)
        groups = {name: spell for name, spell in state.groups.items() if now < spell.end}
        self._state = LoreState(
            sticky=sticky, cooldown=cooldown, groups=groups, matched=state.matched
        )
        self.sticky: Mapping[str, Spell] = _spells_of_books(sticky, entry_of)
        self.resting: Mapping[str, Spell] = _spells_of_books(cooldown, entry_of)
        self.resting_groups: Mapping[str, Spell] = groups

    def now(self, timing: Timing) -> float:
        """Return the time on the clock that these timer settings use."""
        return self._clock.read(timing.clock or self._rules.clock)

    def matched(self, identity: str) -> bool:
        """True if the state records that an entry was active in an earlier turn."""
        return identity in self._before.matched

    def after(self, active: Mapping[str, LoreEntry]) -> LoreState:
        """Return the state of the timers after a turn in which these entries were active.

        Returns the same object as before if nothing changed.
        """
        state = self._state
        sticky, cooldown = dict(state.sticky), dict(state.cooldown)
        groups, matched = dict(state.groups), set(state.matched)
        for identity, entry in active.items():
            timing, now = entry.timing, self.now(entry.timing)
            if timing.sticky:
                sticky.setdefault(identity, Spell(now, now + timing.sticky))
            if timing.cooldown:
                cooldown.setdefault(identity, Spell(now, now + timing.cooldown))
            if entry.grouping.cooldown:
                count = self._clock.read(self._rules.clock)
                spell = Spell(count, count + entry.grouping.cooldown)
                groups.update(dict.fromkeys(entry.grouping.names, spell))
            if entry.gates.kept_after_match or entry.gates.never_after_match:
                matched.add(identity)
        made = LoreState(
            sticky=sticky, cooldown=cooldown, groups=groups, matched=frozenset(matched)
        )
        return self._before if made == self._before else made

    def _running_spells(
        self,
        kind: Literal["sticky", "cooldown"],
        spells: Mapping[str, Spell],
        entry_of: Callable[[str], LoreEntry | None],
    ) -> tuple[dict[str, Spell], list[str]]:
        """Return the timer periods that still run, and the entries (identities) whose period ended.

        A period is in neither result if the chat went back to before its start. The same holds if
        its entry no longer has this kind of timer. The period of a missing entry keeps running,
        because its book may return.
        """
        going: dict[str, Spell] = {}
        over: list[str] = []
        for identity, spell in spells.items():
            entry = entry_of(identity)
            timing = entry.timing if entry else NO_TIMING
            now = self.now(timing)
            taken_back = self._rules.flags.rewinds and now <= spell.start and not spell.settled
            if taken_back or (entry is not None and not getattr(timing, kind)):
                continue
            if now < spell.end:
                going[identity] = spell
            elif entry is not None:
                over.append(identity)
        return going, over

    def _cooldowns_after_sticky(
        self, over: Iterable[str], entry_of: Callable[[str], LoreEntry | None]
    ) -> dict[str, Spell]:
        """Return the cooldowns that begin now for entries whose sticky time ended, by identity."""
        settled: dict[str, Spell] = {}
        for identity in over:
            entry = entry_of(identity)
            if entry is not None and entry.timing.cooldown:
                now = self.now(entry.timing)
                settled[identity] = Spell(now, now + entry.timing.cooldown, settled=True)
        return settled


def _spells_of_books(
    spells: Mapping[str, Spell], entry_of: Callable[[str], LoreEntry | None]
) -> dict[str, Spell]:
    """Return the timer periods of entries that the books of this turn contain."""
    return {identity: spell for identity, spell in spells.items() if entry_of(identity) is not None}
