"""The utterance that is being delivered at this moment, and what led to it.

Listeners receive a rendered message in the words of the game: `Anna says, "hello"`. While it is
delivered, they can look up the raw text here. While an NPC acts, they can look up the line and the
number of NPC replies in a row that led to the act. All of this happens in the reactor's thread and
within one call.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final

from evennia_ai.npc.senses.events import Event, Kind, Line
from evennia_ai.npc.senses.presence import MIND, NPC, is_npc


@dataclass(frozen=True, slots=True, kw_only=True)
class Utterance:
    """Something that a character is saying or doing.

    `hops` counts the NPC replies in a row, including this one. `language` and `volume` are words of
    the game, "" for none. `by_rote` is true if an NPC speaks and no model chose the words: a
    fallback line or a quotation.
    """

    speaker: Any
    text: str
    kind: Kind
    to_ref: str = ""
    hops: int = 0
    language: str = ""
    volume: str = ""
    by_rote: bool = False
    heard_by: set[str] = field(default_factory=set)


_now: Final[ContextVar[Utterance | None]] = ContextVar("evennia_ai_utterance", default=None)
_acting: Final[ContextVar[tuple[Any, int] | None]] = ContextVar("evennia_ai_acting", default=None)
_line: Final[ContextVar[Line | None]] = ContextVar("evennia_ai_line", default=None)


def remember_spoken(npc: NPC, text: str, *, hops: int, line: Line | None) -> None:
    """Tell the NPC's mind what the NPC says or does, if the mind exists already."""
    mind = vars(npc).get(MIND)
    if mind is not None:
        mind.spoke(text, hops=hops, line=line)


@contextmanager
def uttering(said: Utterance) -> Iterator[None]:
    """Let listeners look up `said` in this context.

    If the speaker already has an utterance in this context, listeners find that one.
    """
    if utterance_of(said.speaker) is not None:
        yield
        return
    if is_npc(said.speaker):
        remember_spoken(said.speaker, said.text, hops=max(1, said.hops), line=_line.get())
    token = _now.set(said)
    try:
        yield
    finally:
        _now.reset(token)


def utterance_of(speaker: Any) -> Utterance | None:
    """Return what `speaker` is saying at this moment, None if that is unknown."""
    utterance = _now.get()
    return utterance if utterance is not None and utterance.speaker is speaker else None


@contextmanager
def acting_npc(npc: NPC, *, hops: int) -> Iterator[None]:
    """In this context, let acts of `npc` count as led to by `hops` NPC replies in a row."""
    token = _acting.set((npc, hops))
    try:
        yield
    finally:
        _acting.reset(token)


def hops_of(actor: Any) -> int:
    """Return how many NPC replies in a row led to what `actor` does now.

    It is 0 for a player or nobody, and 1 for an NPC that a script or a builder makes act.
    """
    acted = _acting.get()
    if acted is not None and acted[0] == actor:
        return acted[1]
    return 1 if actor is not None and is_npc(actor) else 0


@contextmanager
def because_of(event: Event) -> Iterator[None]:
    """In this context, let what an NPC says or does belong to the line of `event`."""
    token = _line.set(event.line)
    try:
        yield
    finally:
        _line.reset(token)


def line_of(hops: int) -> Line | None:
    """Return the line to which words or acts of an NPC belong now. None if `hops` is 0."""
    return _line.get() if hops else None


_EMOTED: Final = re.compile(r'/me\s+\w+,?\s+"(.*)"', re.IGNORECASE | re.DOTALL)


def spoken_words(text: str) -> str:
    """Remove the emote that `at_pre_say` of `rpsystem` puts around spoken words.

    The hook returns `/Me says, "..."` to every caller, but only rpsystem's own command reads that
    as an emote (evennia#3071).
    """
    emote = _EMOTED.fullmatch(text.strip())
    return emote[1] if emote else text
