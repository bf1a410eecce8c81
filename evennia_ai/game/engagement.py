"""Engagement: whom an NPC is in conversation with, so that what follows needs no name."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from evennia_ai.game.events import Event


@dataclass(frozen=True, slots=True)
class _Engaged:
    room_ref: str
    since: float
    until: float


class Engagement:
    """The conversations of one NPC; each ends after a while without a word, or when one leaves."""

    def __init__(self, *, seconds: Callable[[], float]) -> None:
        self._seconds: Final = seconds
        self._with: dict[str, _Engaged] = {}

    def begin(self, event: Event, *, lasts_seconds: float) -> None:
        """Be in conversation with the person who said this, here; NPCs and nobody are no partners.

        Where it was already, it begins anew.
        """
        now = self._seconds()
        self._with = {ref: one for ref, one in self._with.items() if one.until > now}
        if event.speaker_ref and not event.hops:
            self._with[event.speaker_ref] = _Engaged(event.room_ref, now, now + lasts_seconds)

    def since(self, event: Event) -> float | None:
        """When the speaker was last addressed or answered here; None: not in conversation."""
        known = self._with.get(event.speaker_ref)
        if known is None or known.room_ref != event.room_ref or self._seconds() >= known.until:
            return None
        return known.since

    def end(self, speaker_ref: str) -> None:
        """The speaker left."""
        self._with.pop(speaker_ref, None)

    def clear(self) -> None:
        """The NPC left."""
        self._with.clear()
