"""Events: what an NPC perceived, as a value.

An event carries everything a turn needs to know of the moment it was heard, so that a second
speaker can never change the one that is being answered.

It belongs to the line that led to it. What an NPC says because of a line belongs to that line, and
so does what other NPCs answer; all of it counts against the line (`Lines`): the NPCs that answer,
and every call of a model. NPCs that hear the same line share its count.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from evennia_ai.engine.text.words import split_words

Kind = str
"""What sort of thing was perceived: one of the words below, or a game's own."""

SPOKEN: Final = frozenset({"say", "whisper", "talk"})
HEARD: Final = SPOKEN | {"pose"}
"""Said or posed by somebody, in their own words. Everything else happened, in the game's words."""

ARRIVE: Final = "arrive"
TICK: Final = "tick"
ERRAND: Final = "errand"
NOBODYS: Final = frozenset({TICK, ERRAND})
"""What nobody does, whoever the conversation is with."""


@dataclass(slots=True, kw_only=True, eq=False)
class Line:
    """Something a person said or did, with all that it set off; counted while it goes on."""

    player_ref: str = ""
    """Who began it, "" where that was nobody."""
    calls: int = 0
    """Of models."""
    npcs: set[str] = field(default_factory=set)
    """Those that answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something an NPC heard or saw. Where nobody did it, who did and their name are ""."""

    kind: Kind
    speaker_ref: str
    speaker_name: str
    speaker_rank: str = "Player"
    """The speaker's permission in words, "NPC" for one of ours."""
    text: str
    """What was said, without markup and without the frame around it, or what happened; one line."""
    room_ref: str
    to_ref: str = ""
    """Whom it was said or done to, "" where that was nobody in particular."""
    private: bool = False
    """True if it belongs to the conversation with its speaker alone."""
    alone: bool = False
    """True if nobody but the speaker was there to be meant."""
    hops: int = 0
    """The NPC replies in a row that led to it; 0 is a person."""
    known_ref: str = ""
    """The reference of whom the NPC takes the speaker for: what it knows is asked for by it."""
    unplayed: bool = field(default=False, compare=False)
    """True if nobody plays the speaker, and it is no NPC of ours: a thing, a scripted character."""
    language: str = ""
    volume: str = ""
    """As the game calls them, "" where it told none."""
    item: str = ""
    """The name of the thing it is about."""
    data: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Facts of the game's own, as JSON values."""
    wants_answer: bool = False
    """True if what happened is addressed to the NPC."""
    by_rote: bool = False
    """True if an NPC said what no model chose."""
    client: str = field(default="", compare=False)
    """The client at which who says or poses it types; "" for nobody, and for what happened."""
    line: Line | None = field(default=None, compare=False, repr=False)
    """What led to it, however many replies of NPCs ago; None where that is not known."""

    def __post_init__(self) -> None:
        if not self.known_ref:
            object.__setattr__(self, "known_ref", self.speaker_ref)

    @property
    def is_without_person(self) -> bool:
        """True if it is said or done by an NPC, a thing or a character that nobody plays."""
        return self.hops > 0 or (self.unplayed and self.kind != ARRIVE)

    @property
    def is_happening(self) -> bool:
        """True if it happened, rather than being said or posed."""
        return self.kind not in HEARD


def utterance_key(event: Event) -> tuple[str, ...]:
    """What events of one utterance have in common; words garbled for some count by language."""
    said = event.language or event.text
    return (event.room_ref, event.speaker_ref, event.kind, said)


def payer_of(event: Event) -> str:
    """The person who is charged for an answer: who said or did it, or began what led to it.

    "" where it was nobody or an NPC by itself.
    """
    if event.hops:
        return event.line.player_ref if event.line is not None else ""
    return "" if event.speaker_rank in ("", "NPC") else event.speaker_ref


def began_by(event: Event) -> str:
    """Who said or did it, or began what led to it, NPCs too: whom calls are written down for."""
    return payer_of(event) if event.hops else event.speaker_ref


def asks_for_answer(event: Event, react_to: Collection[str]) -> str | None:
    """Why something that happened should be answered, None where it should not.

    `react_to` are the kinds the NPC answers though they are not addressed to it. For speech and
    poses this is None: addressing decides about them.
    """
    if not event.is_happening:
        return None
    if event.wants_answer:
        return f"meant for it: {event.kind}"
    return f"reacts to {event.kind}" if event.kind in react_to else None


SAME_SECONDS: Final = 5.0
"""How long after a line somebody may hear it late: the recorder is slow, never that slow."""

MOST_KNOWN: Final = 1024


@dataclass(frozen=True, slots=True)
class _Known:
    """A line that was just heard, and by whom."""

    line: Line
    at: float
    heard_by: set[str] = field(default_factory=set)


class Lines:
    """The lines of this moment; `most_npcs` and `most_calls` are what one of them may set off."""

    def __init__(self, *, seconds: Callable[[], float], most_npcs: int, most_calls: int) -> None:
        self._seconds: Final = seconds
        self._most_npcs: Final = most_npcs
        self._most_calls: Final = most_calls
        self._known: OrderedDict[tuple[str, ...], _Known] = OrderedDict()

    def traced(self, event: Event, *, npc_ref: str) -> Event:
        """The event as this NPC perceives it, with the line that it is, or that led to it."""
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
        """Why no model is asked any more because of the line, "" while one may be."""
        line = event.line
        if line is None or line.calls < self._most_calls:
            return ""
        return f"one line set off {line.calls} calls of models already (EVENNIA_AI_LINE_CALLS)"

    def why_silent(self, event: Event, *, npc_ref: str) -> str:
        """Why this NPC does not answer what the line led to; "": it does, and counts."""
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
"""How soon after an NPC an unplayed speaker in the same room continues what the NPC said."""

MOST_SPOKEN: Final = 64
"""How many lines of NPCs are compared with what unplayed speakers say."""

_SHORTEST_ECHO: Final = 3
"""Words from which on a line is known for a repetition of another one."""


@dataclass(frozen=True, slots=True)
class _Spoken:
    """What an NPC said or did, or what continued it."""

    at: float
    room_ref: str
    speaker_ref: str
    text: str
    hops: int
    line: Line | None

    def is_echoed_by(self, text: str) -> bool:
        """True if one of both texts has all words of the other in a row."""
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
    """The conversations of NPCs in all rooms; `budget_seconds` is how long one goes on by itself.

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
        """Remember what an NPC says or does, before anybody perceives it."""
        said = _Spoken(self._seconds(), room_ref, speaker_ref, text, hops, line)
        if not self._spoken or self._spoken[-1] != said:  # all NPCs of a room perceive a line
            self._spoken.append(said)

    def continued(self, event: Event) -> Event:
        """Return the event with the replies and the line that it continues, if it continues any."""
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
        """True if the NPCs there have talked long enough by themselves."""
        known = self._of_room.get(room_ref)
        return known is not None and self._seconds() - known.began_at > self._budget_seconds
