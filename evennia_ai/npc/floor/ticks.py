"""Ticks: now and then an NPC with `tick_seconds` is told that time passes, and may act on its own.

One timer serves the whole game. The NPCs are found once at the start and when they are sent
something, never looked for. Two ticks are never at once, and NPCs with the same interval are spread
over it. Nobody ticks who could not act, who is busy, or whom nobody would see.
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
"""Between two ticks of the game at least."""


class Ticker:
    """Tells NPCs that time passes, each at its own interval.

    `ticks_alone`: also where no player is with the NPC.
    """

    def __init__(self, clock: Clock, *, ticks_alone: bool = False) -> None:
        self._clock: Final = clock
        self._ticks_alone: Final = ticks_alone
        self._seconds: dict[int, float] = {}
        self._due: dict[int, float] = {}
        self._queue: list[tuple[float, int]] = []  # with entries that are not due any more
        self._stirred: set[int] = set()
        self._call: DelayedCall | None = None

    @property
    def count(self) -> int:
        """How many NPCs tick."""
        return len(self._seconds)

    def take_in(self, found: Iterable[tuple[int, float]]) -> None:
        """Have NPCs tick, by their ids and intervals; 0 seconds for those that shall not."""
        for npc_id, seconds in found:
            self._set(npc_id, seconds)

    def stirs(self, npc: NPC) -> None:
        """Something reached the NPC; whether it ticks may have changed as well."""
        self._set(npc.id, npc.ai.settings.tick_seconds)
        if npc.id in self._seconds:
            self._stirred.add(npc.id)

    def close(self) -> None:
        """Tick no more."""
        if self._call is not None and self._call.active():
            self._call.cancel()

    def _set(self, npc_id: int, seconds: float) -> None:
        if self._seconds.get(npc_id, 0.0) == seconds:
            return
        self._forget(npc_id)
        if seconds:
            self._seconds[npc_id] = seconds
            # Where in its interval an NPC ticks is the same after every start.
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
        """Look again then, or when it was planned, whichever is sooner."""
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
        """The NPC that is due, taken out of the queue, if one is."""
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
            logger.log_err(f"evennia_ai: NPC {npc_id}: no tick, nothing can be read: {error}")

    def _tick_npc(self, npc: NPC) -> None:
        self._set(npc.id, npc.ai.settings.tick_seconds)
        if npc.id not in self._seconds or not self._may_tick(npc):
            return
        text = STIRRED if npc.id in self._stirred else QUIET
        self._stirred.discard(npc.id)
        npc.ai.hear(tick_of(npc, text))

    def _may_tick(self, npc: NPC) -> bool:
        if not is_on(npc) or npc.ai.is_busy or npc.why_unable() or why_halted(npc.ai.ref):
            return False
        return self._ticks_alone or any(other.has_account for other in bystanders(npc))


def tick_of(npc: NPC, text: str) -> Event:
    """The event of time that passes."""
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
    """The NPCs that tick, by id and interval, asked of the database in one query.

    DatabaseError: it cannot be read.
    """
    stored = ObjectDB.objects.filter(db_attributes__db_key=ATTRIBUTE).values_list(
        "id", "db_attributes__db_value"
    )
    found = ((npc_id, settings_in(value)[0].tick_seconds) for npc_id, value in stored)
    return [(npc_id, seconds) for npc_id, seconds in found if seconds]
