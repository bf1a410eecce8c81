"""Addressing: whether an NPC is meant by what it heard, and why.

Pure. A person is answered when they name the NPC, speak to it alone, or go on with a conversation;
another NPC only when it names ours or speaks to it directly, and not endlessly.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from evennia_ai.game.events import Event, asks_for_answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """Who hears: its names, whether it is in conversation with the speaker, who else is there.

    `react_to` are the kinds of happenings it answers.
    """

    ref: str
    names: tuple[str, ...]
    other_names: tuple[str, ...] = ()
    is_engaged: bool = False
    hop_limit: int = 3
    react_to: tuple[str, ...] = ()


def why_addressed(event: Event, listener: Listener) -> str | None:
    """Why `listener` should answer the event, None where it should not."""
    if event.hops > listener.hop_limit:
        return None
    if event.is_happening:
        return asks_for_answer(event, listener.react_to)
    if event.to_ref:
        return "spoken to directly" if event.to_ref == listener.ref else None
    if event.private:
        return "whispered to"
    return None if event.kind == "pose" else _why_meant(event, listener)


def _why_meant(event: Event, listener: Listener) -> str | None:
    """The same for what is said aloud and to nobody in particular."""
    if mentions(event.text, listener.names):
        return "called by name"
    if event.hops or mentions(event.text, listener.other_names):
        return None
    if listener.is_engaged:
        return "in conversation"
    return "alone with the speaker" if event.alone else None


def mentions(text: str, names: Iterable[str]) -> bool:
    """Whether one of `names` stands in `text` as a word of its own, in whatever case."""
    pattern = _any_of(tuple(names))
    return pattern is not None and pattern.search(text) is not None


@lru_cache(maxsize=512)
def _any_of(names: tuple[str, ...]) -> re.Pattern[str] | None:
    words = sorted({name.strip() for name in names if name.strip()}, key=len, reverse=True)
    if not words:
        return None
    joined = "|".join(map(re.escape, words))
    return re.compile(rf"(?<!\w)(?:{joined})(?!\w)", re.IGNORECASE)
