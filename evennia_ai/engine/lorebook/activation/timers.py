"""Timers: what lore remembers from turn to turn.

Sticky entries stay, resting ones (cooldown) are silent, and entries with `@@keep_activate...` or
`@@dont_activate_after_match` remember that they were active. All of it is one immutable value that
goes in with a turn and comes out changed; only a turn that was really sent keeps what came out.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from evennia_ai.engine.lorebook.entry import NO_GATES, NO_GROUPS, NO_TIMING, LoreEntry, Timing
from evennia_ai.engine.lorebook.rules import ActivationRules, ClockName


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
    """What lore remembers of a conversation; entries by identity, groups by name.

    An identity is the label (`book#uid`) where no other book can have it (`book`).
    """

    sticky: Mapping[str, Spell] = field(default_factory=dict)
    cooldown: Mapping[str, Spell] = field(default_factory=dict)
    groups: Mapping[str, Spell] = field(default_factory=dict)
    matched: frozenset[str] = frozenset()

    def to_plain(self) -> dict[str, Any]:
        """The state as JSON values, sorted, for `state_from`."""
        spells = {
            name: {
                identity: [spell.start, spell.end, spell.settled]
                for identity, spell in sorted(getattr(self, name).items())
            }
            for name in ("sticky", "cooldown", "groups")
        }
        return {**spells, "matched": sorted(self.matched)}


def state_from(plain: Mapping[str, Any]) -> LoreState:
    """The state that `to_plain` wrote."""
    spells = {
        name: {identity: Spell(*told) for identity, told in plain.get(name, {}).items()}
        for name in ("sticky", "cooldown", "groups")
    }
    return LoreState(**spells, matched=frozenset(plain.get("matched", ())))


NO_STATE: Final = LoreState()


def is_remembered(entry: LoreEntry) -> bool:
    """Whether that the entry was active matters to later turns."""
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
    """What of a state is running now: read once, before the first pass.

    `sticky` and `resting` are identities, `resting_groups` names of groups, with the count at which
    each is over. Nothing here changes the state it was made from.
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
        sticky, over = self._running("sticky", state.sticky, entry_of)
        cooldown = {**state.cooldown, **self._settled(over, entry_of)}
        cooldown, _ = self._running("cooldown", cooldown, entry_of)
        now = clock.read(rules.clock)
        groups = {name: spell for name, spell in state.groups.items() if now < spell.end}
        self._state = LoreState(
            sticky=sticky, cooldown=cooldown, groups=groups, matched=state.matched
        )
        self.sticky: Mapping[str, Spell] = _known(sticky, entry_of)
        self.resting: Mapping[str, Spell] = _known(cooldown, entry_of)
        self.resting_groups: Mapping[str, Spell] = groups

    def now(self, timing: Timing) -> float:
        """The count that a duration of this entry is measured in."""
        return self._clock.read(timing.clock or self._rules.clock)

    def matched(self, identity: str) -> bool:
        """Whether the entry was active before."""
        return identity in self._before.matched

    def after(self, active: Mapping[str, LoreEntry]) -> LoreState:
        """The state that a turn with these active entries leaves; the same object where equal."""
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

    def _running(
        self,
        kind: Literal["sticky", "cooldown"],
        spells: Mapping[str, Spell],
        entry_of: Callable[[str], LoreEntry | None],
    ) -> tuple[dict[str, Spell], list[str]]:
        """The spells that go on, and the labels of those that are over."""
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

    def _settled(
        self, over: Iterable[str], entry_of: Callable[[str], LoreEntry | None]
    ) -> dict[str, Spell]:
        """The rest that follows a sticky spell that is over, counted from now."""
        settled: dict[str, Spell] = {}
        for identity in over:
            entry = entry_of(identity)
            if entry is not None and entry.timing.cooldown:
                now = self.now(entry.timing)
                settled[identity] = Spell(now, now + entry.timing.cooldown, settled=True)
        return settled


def _known(
    spells: Mapping[str, Spell], entry_of: Callable[[str], LoreEntry | None]
) -> dict[str, Spell]:
    """The spells of entries that are there now."""
    return {identity: spell for identity, spell in spells.items() if entry_of(identity) is not None}
