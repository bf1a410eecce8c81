"""Ticks: events after which an NPC may act on its own, at the interval `tick_seconds` of the NPC.

One timer serves the whole game. The intervals are read once at the start, and again for an NPC when
something reaches it. Nothing searches for NPCs later. Two ticks are never at the same time, and
those of NPCs with equal intervals are spread over the interval. An NPC does not tick if it cannot
act, if it is busy, or if no player would see what it does.

An NPC with habits does the next of them, and no model is asked. Without habits it gets an event
that its model answers. Without a model and without habits it does nothing.
"""

import heapq
from collections.abc import Iterable
from typing import Final
from zlib import crc32

from django.db import DatabaseError
from evennia.objects.models import ObjectDB
from evennia.utils import logger
from twisted.internet.base import DelayedCall

from evennia_ai.npc.model_calls.limits import why_halted
from evennia_ai.npc.npc_settings import ATTRIBUTE, settings_in
from evennia_ai.npc.senses.events import TICK, Event
from evennia_ai.npc.senses.presence import NPC, HasMind, bystanders, is_on, object_of, room_ref_of
from evennia_ai.services.llm.resilience import Clock

QUIET: Final = "Time passes; nobody spoke to you."
STIRRED: Final = "Time passes."
GAP_SECONDS: Final = 0.1
"""The least time between two ticks in the game."""


class Ticker:
    """Sends ticks to each NPC at the NPC's interval.

    With `ticks_alone`, NPCs also tick where no player is present.
    """

    def __init__(self, clock: Clock, *, ticks_alone: bool = False) -> None:
        self._clock: Final = clock
        self._ticks_alone: Final = ticks_alone
        self._seconds: dict[int, float] = {}
        self._due: dict[int, float] = {}
        self._queue: list[
            tuple[float, int]
        ] = []  # a heap whose entries may be stale; `_due` is always right
        self._stirred: set[int] = set()
        self._call: DelayedCall | None = None

    @property
    def count(self) -> int:
        """Return how many NPCs have an interval."""
        return len(self._seconds)

    def take_in(self, found: Iterable[tuple[int, float]]) -> None:
        """Set the intervals of NPCs, given as (id, seconds).

        An NPC with 0 seconds does not tick.
        """
        for npc_id, seconds in found:
            self._set(npc_id, seconds)

    def stirs(self, npc: NPC) -> None:
        """Note that something reached the NPC, and read the NPC's interval again."""
        self._set(npc.id, npc.ai.settings.tick_seconds)
        if npc.id in self._seconds:
            self._stirred.add(npc.id)

    def close(self) -> None:
        """Stop all ticks."""
        if self._call is not None and self._call.active():
            self._call.cancel()

    def _set(self, npc_id: int, seconds: float) -> None:
        if self._seconds.get(npc_id, 0.0) == seconds:
            return
        self._forget(npc_id)
        if seconds:
            self._seconds[npc_id] = seconds
            # The first delay depends only on the id, so it is the same after each start.
            self._plan(npc_id, seconds * (crc32(str(npc_id).encode()) % 1000 + 1) / 1000)

    def _forget(self, npc_id: int) -> None:
        self._seconds.pop(npc_id, None)
        self._due.pop(npc_id, None)
        self._stirred.discard(npc_id)

    def _plan(self, npc_id: int, delay_seconds: float) -> None:
        due = self._clock.seconds() + delay_seconds
        self._due[npc_id] = due
        heapq.heappush(self._queue, (due, npc_id))
        self._wake_at(due)

    def _wake_at(self, when: float) -> None:
        """Schedule a look for due NPCs, unless an earlier one is scheduled."""
        if self._call is not None and self._call.active():
            if self._call.getTime() <= when:
                return
            self._call.cancel()
        self._call = self._clock.callLater(max(0.0, when - self._clock.seconds()), self._wake)

    def _wake(self) -> None:
        npc_id = self._next_due()
        if npc_id is not None:
            self._plan(npc_id, self._seconds[npc_id])
            self._tick(npc_id)
        if self._queue:
            self._wake_at(max(self._queue[0][0], self._clock.seconds() + GAP_SECONDS))

    def _next_due(self) -> int | None:
        """Remove an NPC whose tick is due from the queue and return its id. None if none is due."""
        while self._queue and self._queue[0][0] <= self._clock.seconds():
            due, npc_id = heapq.heappop(self._queue)
            if self._due.get(npc_id) == due:
                return npc_id
        return None

    def _tick(self, npc_id: int) -> None:
        try:
            npc = object_of(str(npc_id))
            if issubclass(type(npc), HasMind):
                self._tick_npc(npc)
            else:
                self._forget(npc_id)
        except DatabaseError as error:
            logger.log_err(
                f"evennia_ai: NPC {npc_id} missed a tick, the database is unreadable: {error}"
            )

    def _tick_npc(self, npc: NPC) -> None:
        self._set(npc.id, npc.ai.settings.tick_seconds)
        if npc.id not in self._seconds or not self._may_tick(npc):
            return
        text = STIRRED if npc.id in self._stirred else QUIET
        self._stirred.discard(npc.id)
        if not npc.ai.follow_habit() and not npc.ai.is_offline:
            npc.ai.hear(tick_of(npc, text))

    def _may_tick(self, npc: NPC) -> bool:
        if not is_on(npc) or npc.ai.is_busy or npc.why_unable() or why_halted(npc.ai.ref):
            return False
        return self._ticks_alone or any(other.has_account for other in bystanders(npc))


def tick_of(npc: NPC, text: str) -> Event:
    """Return a tick event for `npc` with this text, which wants an answer."""
    return Event(
        kind=TICK,
        speaker_ref="",
        speaker_name="",
        speaker_rank="",
        text=text,
        room_ref=room_ref_of(npc),
        wants_answer=True,
    )


def stored_ticks() -> list[tuple[int, float]]:
    """Return id and interval of all NPCs that have an interval. Makes one query.

    Raises:
        DatabaseError: The database cannot be read.
    """
    stored = ObjectDB.objects.filter(db_attributes__db_key=ATTRIBUTE).values_list(
        "id", "db_attributes__db_value"
    )
    found = ((npc_id, settings_in(value)[0].tick_seconds) for npc_id, value in stored)
    return [(npc_id, seconds) for npc_id, seconds in found if seconds]
