"""What is being said or done this very moment, so that who perceives it gets more than its frame.

A message reaches its listeners rendered: `Anna says, "hello"`, in the words of whatever game this
is. While a speaker's message is delivered, its raw text stands here; listeners look it up. While an
NPC acts, the line and the replies in a row that led to it stand here. All of it happens on the
reactor's thread, inside one call.
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
    """One thing being said or done; `hops` counts the NPC replies in a row, itself among them.

    `language` and `volume` are words of the game, "" where it tells none. `by_rote` is what an NPC
    says that no model chose: a line for want of a reply, or a quotation.
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
    """Have the mind of an NPC remember what it says or does; one without a mind answered nobody."""
    mind = vars(npc).get(MIND)
    if mind is not None:
        mind.spoke(text, hops=hops, line=line)


@contextmanager
def uttered(said: Utterance) -> Iterator[None]:
    """Let listeners of the speaker look up what is said; an outer utterance of theirs stays."""
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
    """What `speaker` is saying this moment, if it is known."""
    utterance = _now.get()
    return utterance if utterance is not None and utterance.speaker is speaker else None


@contextmanager
def acting(npc: NPC, *, hops: int) -> Iterator[None]:
    """While it lasts, what others see `npc` do follows from `hops` NPC replies in a row."""
    token = _acting.set((npc, hops))
    try:
        yield
    finally:
        _acting.reset(token)


def hops_of(actor: Any) -> int:
    """How many NPC replies in a row led to what `actor` does now.

    0 for a person or nobody, 1 for an NPC that a script or a builder makes act.
    """
    acted = _acting.get()
    if acted is not None and acted[0] == actor:
        return acted[1]
    return 1 if actor is not None and is_npc(actor) else 0


@contextmanager
def because_of(event: Event) -> Iterator[None]:
    """While it lasts, what an NPC says or does belongs to the line that led to `event`."""
    token = _line.set(event.line)
    try:
        yield
    finally:
        _line.reset(token)


def line_of(hops: int) -> Line | None:
    """The line that what is said or done now belongs to, where an NPC says or does it."""
    return _line.get() if hops else None


_EMOTED: Final = re.compile(r'/me\s+\w+,?\s+"(.*)"', re.IGNORECASE | re.DOTALL)


def spoken_words(text: str) -> str:
    """What is said, without the emote that `at_pre_say` of `rpsystem` makes of it.

    It gives `/Me says, "..."` to every caller, and only its own command reads that as an emote
    (evennia#3071).
    """
    emote = _EMOTED.fullmatch(text.strip())
    return emote[1] if emote else text
