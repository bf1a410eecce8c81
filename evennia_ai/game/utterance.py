"""What is being said this very moment, so that a listener gets the words and not their frame.

A message reaches its listeners rendered: `Anna says, "hello"`, in the words of whatever game this
is. While a speaker's message is delivered, its raw text stands here; listeners look it up. All of
it happens on the reactor's thread, inside one call.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final

from evennia_ai.game.events import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Utterance:
    """One thing being said or done; `hops` counts the NPC replies in a row, itself among them."""

    speaker: Any
    text: str
    kind: Kind
    to_ref: str = ""
    hops: int = 0
    heard_by: set[str] = field(default_factory=set)


_now: Final[ContextVar[Utterance | None]] = ContextVar("evennia_ai_utterance", default=None)


@contextmanager
def uttered(
    speaker: Any, text: str, *, kind: Kind, to_ref: str = "", hops: int = 0
) -> Iterator[Utterance]:
    """While it lasts, listeners of `speaker` hear `text`; an outer one of this speaker stays."""
    utterance = utterance_of(speaker)
    if utterance is not None:
        yield utterance
        return
    made = Utterance(speaker=speaker, text=text, kind=kind, to_ref=to_ref, hops=hops)
    token = _now.set(made)
    try:
        yield made
    finally:
        _now.reset(token)


def utterance_of(speaker: Any) -> Utterance | None:
    """What `speaker` is saying this moment, if it is known."""
    utterance = _now.get()
    return utterance if utterance is not None and utterance.speaker is speaker else None
