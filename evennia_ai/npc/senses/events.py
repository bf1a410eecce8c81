"""Events: what an NPC perceived, as values.

An event has everything that a turn needs to know about the moment in which it was perceived. What
happens later cannot change the event that is being answered.

An event belongs to the line of the player that led to it, and so does everything that NPCs say
because of that line. `Lines` limits how many NPCs may answer one line, and how many calls of models
it may cause. NPCs that hear the same line share these counts.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from evennia_ai.engine.text.words import split_words

Kind = str
"""The kind of an event: one of the words in this module, or a word of the game."""

SPOKEN: Final = frozenset({"say", "whisper", "talk"})
HEARD: Final = SPOKEN | {"pose"}
"""Kinds of events that have the speaker's own words. All other kinds describe what happened."""

ARRIVE: Final = "arrive"
TICK: Final = "tick"
ERRAND: Final = "errand"
NOBODYS: Final = frozenset({TICK, ERRAND})
"""Kinds of events that nobody does."""


@dataclass(slots=True, kw_only=True, eq=False)
class Line:
    """A line that a player typed, with counts of what it caused."""

    player_ref: str = ""
    """The player who typed the line, "" if no player did."""
    calls: int = 0
    """How many calls of models it caused."""
    npcs: set[str] = field(default_factory=set)
    """References of the NPCs that answered the line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that an NPC perceived. If nobody did it, the fields about the speaker are ""."""

    kind: Kind
    speaker_ref: str
    speaker_name: str
    speaker_rank: str = "Player"
    """The speaker's permission as a word, "NPC" for an NPC with a mind."""
    text: str
    """What was said, without markup and without `says, "..."`; or what happened. One line."""
    room_ref: str
    to_ref: str = ""
    """The character to whom it was said or done, "" for nobody in particular."""
    private: bool = False
    """True if the event belongs to the NPC's private conversation with the speaker."""
    alone: bool = False
    """True if only the speaker and the NPC were in the room."""
    hops: int = 0
    """How many NPC replies in a row led to the event. 0 for the words of a person."""
    known_ref: str = ""
    """The reference by which the NPC knows the speaker: that of the person, or of their guise."""
    unplayed: bool = field(default=False, compare=False)
    """True if the speaker is a thing or scripted character: no player plays it and it has no
    mind."""
    language: str = ""
    """The language of the words, as the game names it. "" if the game named none."""
    volume: str = ""
    """How loud it was said, in a word of the game. "" if the game named none."""
    item: str = ""
    """The name of the thing that the event is about, "" for none."""
    data: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """More facts that the game reported, as JSON values."""
    wants_answer: bool = False
    """True if the game wants the NPC to answer this happening."""
    by_rote: bool = False
    """True if an NPC said it and no model chose the words, for example for a fallback line."""
    withheld: str = field(default="", compare=False)
    """Why the game's filter withheld the words, "" if it did not. Then nobody answers them."""
    client: str = field(default="", compare=False)
    """The client of the player who said or posed it, such as "telnet". "" if no player did."""
    line: Line | None = field(default=None, compare=False, repr=False)
    """The player's line that led to the event, perhaps through replies of NPCs. None if unknown."""

    def __post_init__(self) -> None:
        if not self.known_ref:
            object.__setattr__(self, "known_ref", self.speaker_ref)

    @property
    def is_without_person(self) -> bool:
        """True if an NPC, a thing or a scripted character said or did it."""
        return self.hops > 0 or (self.unplayed and self.kind != ARRIVE)

    @property
    def is_happening(self) -> bool:
        """True if the event is something that happened. False if it was said or posed."""
        return self.kind not in HEARD


def utterance_key(event: Event) -> tuple[str, ...]:
    """Return a key that the events of all listeners to one utterance share.

    The game may garble words in a language for each listener. The key of such an utterance has the
    language in place of the text.
    """
    said = event.language or event.text
    return (event.room_ref, event.speaker_ref, event.kind, said)


def payer_of(event: Event) -> str:
    """Return the reference of the player against whose limits an answer to the event counts.

    It is the player who said or did it, or whose line led to it. "" if there is no such player, for
    example when an NPC acted by itself.
    """
    if event.hops:
        return event.line.player_ref if event.line is not None else ""
    return "" if event.speaker_rank in ("", "NPC") else event.speaker_ref


def began_by(event: Event) -> str:
    """Return the reference of the player or NPC to whom the log of calls attributes the event."""
    return payer_of(event) if event.hops else event.speaker_ref


def asks_for_answer(event: Event, react_to: Collection[str]) -> str | None:
    """Return why the NPC should answer this happening, None if it should not.

    Return None for speech and poses too, because addressing decides about them.

    Args:
        react_to: Kinds of happenings that the NPC answers although the game does not ask for it.
    """
    if not event.is_happening:
        return None
    if event.wants_answer:
        return f"the game wants an answer to {event.kind}"
    return f"reacts to {event.kind}" if event.kind in react_to else None


SAME_SECONDS: Final = 5.0
"""Equal words of one speaker within these seconds count as the same line."""

MOST_KNOWN: Final = 1024


@dataclass(frozen=True, slots=True)
class _Known:
    """A recent line and the NPCs that heard it."""

    line: Line
    at: float
    heard_by: set[str] = field(default_factory=set)


class Lines:
    """The recent lines of players, with limits on what one line may cause."""

    def __init__(self, *, seconds: Callable[[], float], most_npcs: int, most_calls: int) -> None:
        self._seconds: Final = seconds
        self._most_npcs: Final = most_npcs
        self._most_calls: Final = most_calls
        self._known: OrderedDict[tuple[str, ...], _Known] = OrderedDict()

    def traced(self, event: Event, *, npc_ref: str) -> Event:
        """Return the event with the line that it is, or that led to it."""
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
        """Return why the event's line may cause no more calls of models, "" if it may."""
        line = event.line
        if line is None or line.calls < self._most_calls:
            return ""
        return f"this line has caused {line.calls} calls of models already (EVENNIA_AI_LINE_CALLS)"

    def why_silent(self, event: Event, *, npc_ref: str) -> str:
        """Return why this NPC may not answer the event's line.

        If it may, count it and return "".
        """
        line = event.line
        if line is None:
            return ""
        if npc_ref not in line.npcs and len(line.npcs) >= self._most_npcs:
            return f"{len(line.npcs)} NPCs answer this line already (EVENNIA_AI_LINE_NPCS)"
        spent = self.why_spent(event)
        if not spent:
            line.npcs.add(npc_ref)
        return spent


MOST_ROOMS: Final = 4096

MOMENT_SECONDS: Final = 5.0
"""A scripted speaker that speaks within these seconds after an NPC continues the NPC's line."""

MOST_SPOKEN: Final = 64
"""How many recent utterances of NPCs are compared with the words of scripted speakers."""

_SHORTEST_ECHO: Final = 3
"""A text with fewer words never counts as a repetition."""


@dataclass(frozen=True, slots=True)
class _Spoken:
    """Something that an NPC said or did recently, or a scripted speaker that continued its line."""

    at: float
    room_ref: str
    speaker_ref: str
    text: str
    hops: int
    line: Line | None

    def is_echoed_by(self, text: str) -> bool:
        """True if one of the two texts contains all words of the other, without gaps."""
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
    """The exchanges in which NPCs answer each other without a person, by room.

    In each room NPCs may answer each other and scripted speakers for a limited time. The words of a
    person begin a new chain. So do the first words after a long silence.

    A scripted speaker is a thing or character without a player and without a mind. It may repeat or
    answer what it hears. If it speaks within a moment after an NPC, or repeats an NPC's words
    anywhere, it continues that NPC's line. Another scripted speaker can continue the line after it.
    Its other words are answered while the chain of the room lasts. Therefore a town crier, who
    calls after long silences, is answered each time.
    """

    def __init__(self, *, seconds: Callable[[], float], budget_seconds: float) -> None:
        self._seconds: Final = seconds
        self._budget_seconds: Final = budget_seconds
        self._of_room: OrderedDict[str, _Chain] = OrderedDict()
        self._spoken: deque[_Spoken] = deque(maxlen=MOST_SPOKEN)

    def spoke(
        self, room_ref: str, text: str, *, speaker_ref: str, hops: int, line: Line | None
    ) -> None:
        """Remember what an NPC says or does. Call this before any NPC perceives it."""
        said = _Spoken(self._seconds(), room_ref, speaker_ref, text, hops, line)
        if not self._spoken or self._spoken[-1] != said:  # each NPC that hears it reports it
            self._spoken.append(said)

    def continued(self, event: Event) -> Event:
        """Return the event. If it continues an NPC's line, add its hops and that line."""
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
        """Update the chain of the room for an event.

        Call it for each NPC that perceived the event.
        """
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
        """True if the NPCs of the room have answered each other for the allowed time."""
        known = self._of_room.get(room_ref)
        return known is not None and self._seconds() - known.began_at > self._budget_seconds
