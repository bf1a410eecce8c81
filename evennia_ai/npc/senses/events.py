"""Events: what an NPC perceived, as values.

An event carries everything that a turn needs to know about the moment in which it was heard. A
later speaker therefore cannot change the event that is being answered.

Each event belongs to the line of the player that led to it. Everything that NPCs say because of
that line belongs to it too. `Lines` limits how many NPCs may answer one line and how many calls of
models it may cause. NPCs that hear the same line share its count.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from evennia_ai.engine.text.words import split_words

Kind = str
"""The kind of an event: one of the words below, or a word of the game."""

SPOKEN: Final = frozenset({"say", "whisper", "talk"})
HEARD: Final = SPOKEN | {"pose"}
"""Kinds in the speaker's own words. All other kinds happened, in the words of the game."""

ARRIVE: Final = "arrive"
TICK: Final = "tick"
ERRAND: Final = "errand"
NOBODYS: Final = frozenset({TICK, ERRAND})
"""Kinds of events without an actor."""


@dataclass(slots=True, kw_only=True, eq=False)
class Line:
    """A line of a player and the count of what it caused."""

    player_ref: str = ""
    """The player who typed the line, "" if there was none."""
    calls: int = 0
    """How many calls of models it caused."""
    npcs: set[str] = field(default_factory=set)
    """References of the NPCs that answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that an NPC perceived. Without an actor, the speaker fields are ""."""

    kind: Kind
    speaker_ref: str
    speaker_name: str
    speaker_rank: str = "Player"
    """The speaker's permission in words, "NPC" for one of ours."""
    text: str
    """What was said (without markup and without `says, "..."`) or what happened, on one line."""
    room_ref: str
    to_ref: str = ""
    """The person it was said or done to, "" for nobody in particular."""
    private: bool = False
    """True if it belongs to the private conversation with its speaker."""
    alone: bool = False
    """True if the speaker and the NPC were alone."""
    hops: int = 0
    """How many NPC replies in a row led to it; 0 for the words of a person."""
    known_ref: str = ""
    """The speaker as the NPC knows them: the person, or the guise that they wear."""
    unplayed: bool = field(default=False, compare=False)
    """True for a thing or a scripted character: no player plays it and it has no mind."""
    language: str = ""
    volume: str = ""
    """Words of the game, "" if it named none."""
    item: str = ""
    """The name of the thing it is about."""
    data: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """More facts that the game reported, as JSON values."""
    wants_answer: bool = False
    """True if the game wants the NPC to answer what happened."""
    by_rote: bool = False
    """True if an NPC said it without a model, for example its fallback line."""
    client: str = field(default="", compare=False)
    """The client of the player who said or posed it, "" otherwise."""
    line: Line | None = field(default=None, compare=False, repr=False)
    """The line that it is, or that led to it through replies of NPCs; None if unknown."""

    def __post_init__(self) -> None:
        if not self.known_ref:
            object.__setattr__(self, "known_ref", self.speaker_ref)

    @property
    def is_without_person(self) -> bool:
        """True if it is said or done by an NPC, a thing or a character that nobody plays."""
        return self.hops > 0 or (self.unplayed and self.kind != ARRIVE)

    @property
    def is_happening(self) -> bool:
        """True if it happened. False if it was said or posed."""
        return self.kind not in HEARD


def utterance_key(event: Event) -> tuple[str, ...]:
    """Return a key that all events of one utterance share.

    Listeners may get the words garbled, so the language replaces the text where there is one.
    """
    said = event.language or event.text
    return (event.room_ref, event.speaker_ref, event.kind, said)


def payer_of(event: Event) -> str:
    """Return the reference of the player whose limits an answer counts against.

    That is the player who said or did it, or whose line led to it. "" if nobody did, or an NPC
    acted by itself.
    """
    if event.hops:
        return event.line.player_ref if event.line is not None else ""
    return "" if event.speaker_rank in ("", "NPC") else event.speaker_ref


def began_by(event: Event) -> str:
    """Return who is named in the log of calls: a player as in `payer_of`, or an NPC."""
    return payer_of(event) if event.hops else event.speaker_ref


def asks_for_answer(event: Event, react_to: Collection[str]) -> str | None:
    """Return why the NPC should answer something that happened, None if it should not.

    Speech and poses return None, because addressing decides about them.

    Args:
        react_to: Kinds that the NPC answers even if they are not addressed to it.
    """
    if not event.is_happening:
        return None
    if event.wants_answer:
        return f"meant for it: {event.kind}"
    return f"reacts to {event.kind}" if event.kind in react_to else None


SAME_SECONDS: Final = 5.0
"""Within these seconds, equal words of one speaker count as the same line."""

MOST_KNOWN: Final = 1024


@dataclass(frozen=True, slots=True)
class _Known:
    """A recent line and the NPCs that heard it."""

    line: Line
    at: float
    heard_by: set[str] = field(default_factory=set)


class Lines:
    """The recent lines of players, and the limits on what one line may cause."""

    def __init__(self, *, seconds: Callable[[], float], most_npcs: int, most_calls: int) -> None:
        self._seconds: Final = seconds
        self._most_npcs: Final = most_npcs
        self._most_calls: Final = most_calls
        self._known: OrderedDict[tuple[str, ...], _Known] = OrderedDict()

    def traced(self, event: Event, *, npc_ref: str) -> Event:
        """Return the event with its line: the line that it is, or that led to it."""
        if event.line is not None:
            return event
        if event.kind in NOBODYS or event.hops:
            return replace(event, line=Line(player_ref=payer_of(event)))
        key = utterance_key(event)
        now, known = self._seconds(), self._known.get(key)
        if known is None or npc_ref in known.heard_by or now - known.at > SAME_SECONDS:
            self._known.pop(key, None)
            known = self._known[key] = _Known(Line(player_ref=payer_of(event)), now)
            if len(self._known) > MOST_KNOWN:
                self._known.popitem(last=False)
        known.heard_by.add(npc_ref)
        return replace(event, line=known.line)

    def why_spent(self, event: Event) -> str:
        """Return why the line may cause no more calls of models, "" if it may."""
        line = event.line
        if line is None or line.calls < self._most_calls:
            return ""
        return f"one line set off {line.calls} calls of models already (EVENNIA_AI_LINE_CALLS)"

    def why_silent(self, event: Event, *, npc_ref: str) -> str:
        """Return why this NPC may not answer the line. If it may, count it and return ""."""
        line = event.line
        if line is None:
            return ""
        if npc_ref not in line.npcs and len(line.npcs) >= self._most_npcs:
            return f"{len(line.npcs)} NPCs answer one line already (EVENNIA_AI_LINE_NPCS)"
        spent = self.why_spent(event)
        if not spent:
            line.npcs.add(npc_ref)
        return spent


MOST_ROOMS: Final = 4096

MOMENT_SECONDS: Final = 5.0
"""An unplayed speaker that speaks within these seconds after an NPC continues its line."""

MOST_SPOKEN: Final = 64
"""How many recent lines of NPCs are compared with the words of unplayed speakers."""

_SHORTEST_ECHO: Final = 3
"""Shorter texts, in words, never count as a repetition."""


@dataclass(frozen=True, slots=True)
class _Spoken:
    """Recent words or an act of an NPC, or of an unplayed speaker that continued them."""

    at: float
    room_ref: str
    speaker_ref: str
    text: str
    hops: int
    line: Line | None

    def is_echoed_by(self, text: str) -> bool:
        """True if one of the two texts contains all words of the other in a row."""
        both = (split_words(self.text.casefold()), split_words(text.casefold()))
        longer, shorter = sorted(both, key=len, reverse=True)
        return (
            len(shorter) >= _SHORTEST_ECHO and f" {' '.join(shorter)} " in f" {' '.join(longer)} "
        )


@dataclass(frozen=True, slots=True)
class _Chain:
    began_at: float
    newest_at: float


class Chains:
    """The conversations that NPCs have among themselves, by room.

    In a room NPCs answer each other, and what nobody plays, for a while without a person saying
    anything. A person's word begins a new chain, and so does the first word after a long silence.

    Something that nobody plays may repeat what it hears, or answer by a script. If it speaks in a
    moment after an NPC, or repeats the words of one anywhere, it continues that NPC's line. So does
    another such speaker after it. Other words of it are answered while the chain of the room lasts:
    a town crier who calls after a long silence is answered each time.
    """

    def __init__(self, *, seconds: Callable[[], float], budget_seconds: float) -> None:
        self._seconds: Final = seconds
        self._budget_seconds: Final = budget_seconds
        self._of_room: OrderedDict[str, _Chain] = OrderedDict()
        self._spoken: deque[_Spoken] = deque(maxlen=MOST_SPOKEN)

    def spoke(
        self, room_ref: str, text: str, *, speaker_ref: str, hops: int, line: Line | None
    ) -> None:
        """Remember what an NPC says or does. Call before anybody perceives it."""
        said = _Spoken(self._seconds(), room_ref, speaker_ref, text, hops, line)
        if not self._spoken or self._spoken[-1] != said:  # each NPC of the room reports it
            self._spoken.append(said)

    def continued(self, event: Event) -> Event:
        """Return the event with the hops and the line that it continues, if it continues any."""
        if not event.unplayed or event.hops or event.kind == ARRIVE:
            return event
        now = self._seconds()
        for one in reversed(self._spoken):
            age = now - one.at
            if age > max(self._budget_seconds, MOMENT_SECONDS):
                break
            if one.speaker_ref == event.speaker_ref:
                continue
            is_next = one.room_ref == event.room_ref and age <= MOMENT_SECONDS
            if is_next or one.is_echoed_by(event.text):
                made = replace(event, hops=one.hops + 1, line=one.line)
                self.spoke(
                    event.room_ref,
                    event.text,
                    speaker_ref=event.speaker_ref,
                    hops=made.hops,
                    line=made.line,
                )
                return made
        return event

    def heard(self, event: Event) -> None:
        """Something was perceived in a room; however many NPCs perceived it."""
        is_of_thing = event.is_without_person and not event.hops
        if not is_of_thing and (event.private or event.kind not in HEARD):
            return
        now = self._seconds()
        known = self._of_room.pop(event.room_ref, None)
        is_soon = known is not None and now - known.newest_at <= self._budget_seconds
        goes_on = event.is_without_person and is_soon
        self._of_room[event.room_ref] = _Chain(known.began_at if goes_on and known else now, now)
        if len(self._of_room) > MOST_ROOMS:
            self._of_room.popitem(last=False)

    def is_over(self, room_ref: str) -> bool:
        """True if the NPCs of the room have talked long enough among themselves."""
        known = self._of_room.get(room_ref)
        return known is not None and self._seconds() - known.began_at > self._budget_seconds
