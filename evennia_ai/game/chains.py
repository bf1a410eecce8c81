"""Chains: how long NPCs have answered each other in a room without a person saying anything.

A person's word begins anew, and so does the first word after a long silence.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from evennia_ai.game.events import HEARD, Event

MOST_ROOMS: Final = 4096


@dataclass(frozen=True, slots=True)
class _Chain:
    began_at: float
    newest_at: float


class Chains:
    """The talk of NPCs in all rooms; `budget_seconds` is how long it goes on by itself."""

    def __init__(self, *, seconds: Callable[[], float], budget_seconds: float) -> None:
        self._seconds: Final = seconds
        self._budget_seconds: Final = budget_seconds
        self._of_room: OrderedDict[str, _Chain] = OrderedDict()

    def heard(self, event: Event) -> None:
        """Something was perceived in a room; however many NPCs perceived it."""
        if event.private or event.kind not in HEARD:
            return
        now = self._seconds()
        known = self._of_room.pop(event.room_ref, None)
        goes_on = event.hops and known and now - known.newest_at <= self._budget_seconds
        self._of_room[event.room_ref] = _Chain(known.began_at if goes_on and known else now, now)
        if len(self._of_room) > MOST_ROOMS:
            self._of_room.popitem(last=False)

    def is_over(self, room_ref: str) -> bool:
        """Whether the NPCs there have talked long enough by themselves."""
        known = self._of_room.get(room_ref)
        return known is not None and self._seconds() - known.began_at > self._budget_seconds
