"""The recorder: what NPCs perceived is committed before anything is answered, a little at a time.

An event that cannot be committed is kept and tried again; what is more than may be kept is lost,
and that something was is itself recorded, once.

An NPC that opens a conversation speaks first in it, so its greeting is committed before the event
that made it speak, both or neither: records are never put in another order later. Who comes is
greeted when they have come.

One line that fifty people hear is fifty records. Written at once they would hold the whole game up,
and one by one they would be fifty transactions; so a few are written together, and then everything
else has its turn. They are written in the order in which they were perceived.
"""

from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from evennia.utils import logger
from twisted.internet.base import DelayedCall
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.python.failure import Failure

from evennia_ai.engine.errors import HistoryConflictError
from evennia_ai.engine.history.records import NewRecord, RecordKind
from evennia_ai.npc.recording.heard import (
    CommittedEvent,
    ConversationKey,
    event_record,
    key_of,
    minute_of,
    read,
    read_already,
)
from evennia_ai.npc.recording.retrying import DATABASE_ERRORS, RETRY_SECONDS
from evennia_ai.npc.recording.writer import Writer
from evennia_ai.npc.senses.events import ARRIVE, Event
from evennia_ai.services.llm.resilience import Clock
from evennia_ai.services.settings.kinds import TimeSuffix
from evennia_ai.store.core.snapshots import one_transaction
from evennia_ai.store.history import conversations
from evennia_ai.store.history.record_rows import ConversationRef
from evennia_ai.store.history.windows import windows

OVERFLOW: Final = "Too much was said at once; some of it will go unanswered."

Opening = Callable[[ConversationRef, Event], NewRecord | None]
"""The greeting an NPC opens a conversation with because of an event, None where it does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """An event, what is written down of it, and the greeting beside it: nothing more is read."""

    conversation: ConversationRef
    event: Event
    record: NewRecord
    greeting: NewRecord | None


def committed(ready: Prepared) -> CommittedEvent:
    """The event as what the NPC heard, in a transaction of its own or the current one."""
    if ready.greeting is None:
        return _appended(ready)
    with one_transaction(f"opening {ready.conversation} with a greeting"):
        if ready.event.kind == ARRIVE:
            heard = _appended(ready, greeting=ready.greeting.body)
            conversations.append_records(ready.conversation, [ready.greeting])
            return heard
        conversations.append_records(ready.conversation, [ready.greeting])
        return _appended(ready, greeting=ready.greeting.body)


def committed_each(ready: Sequence[Prepared]) -> list[CommittedEvent]:
    """The same for events in different conversations, all of them or none."""
    if any(one.greeting is not None for one in ready):
        with one_transaction("recording what NPCs perceived"):
            return [committed(one) for one in ready]
    appended = conversations.append_each([(one.conversation, one.record) for one in ready])
    return [
        CommittedEvent(event=one.event, conversation=one.conversation, record=record, before=before)
        for one, (before, record) in zip(ready, appended, strict=True)
    ]


def _appended(ready: Prepared, *, greeting: str = "") -> CommittedEvent:
    before = windows(ready.conversation.id).history
    (record,) = conversations.append_records(ready.conversation, [ready.record])
    return CommittedEvent(
        event=ready.event,
        conversation=ready.conversation,
        record=record,
        before=before,
        greeting=greeting,
    )


Doing = Callable[[], Awaitable[None] | None]

AT_ONCE: Final = 16
"""Events that are committed together, before anything else has its turn."""


class Hearing:
    """Commits the events of one NPC and passes them on to `consider`."""

    def __init__(
        self,
        npc_ref: str,
        *,
        opening: Opening,
        consider: Callable[[CommittedEvent], None],
        missed: Callable[[Event], None],
    ) -> None:
        """`missed` is called with an event that a fault kept from being answered."""
        self._npc_ref: Final = npc_ref
        self._opening: Final = opening
        self._consider: Final = consider
        self._missed: Final = missed
        self.unrecorded: deque[Event] = deque()
        """What is not committed yet."""
        self._lost = 0
        self._lost_of: dict[str, Event] = {}
        """The newest event of each speaker that was not kept while the database was away."""
        self._recorder: Recorder
        self._retry: DelayedCall | None = None

    def hear(self, event: Event, recorder: "Recorder") -> None:
        """Have what was perceived committed, soon or when the database is back."""
        self._recorder = recorder
        if len(self.unrecorded) >= recorder.queue_limit:
            given_up = self._made_room(event)
            self._lost += 1
            lost = given_up or event
            self._lost_of[lost.speaker_ref] = lost
            if given_up is None:
                return
        self.unrecorded.append(event)
        recorder.then(self)

    def _made_room(self, event: Event) -> Event | None:
        """Give up the newest event of somebody of whom much more is kept; None if nobody has more.

        The oldest of all is never given up, because it may be about to be committed.
        """
        kept = Counter(known.speaker_ref for known in self.unrecorded)
        ((speaker, most),) = kept.most_common(1)
        if most <= kept[event.speaker_ref] + 1:
            return None
        newest = max(at for at, known in enumerate(self.unrecorded) if known.speaker_ref == speaker)
        given_up = self.unrecorded[newest]
        del self.unrecorded[newest]
        return given_up

    # What the recorder asks for

    async def prepared(self) -> Prepared | None:
        """The oldest event, ready to be committed; None: it cannot be, or there is none any more.

        It cannot while the database is away.
        """
        if not self.unrecorded or self._is_waiting:
            return None
        try:
            return await self._prepared_first()
        except DATABASE_ERRORS as error:
            self._record_later(error)
            return None

    def took(self, heard: CommittedEvent) -> None:
        """The oldest event is committed."""
        self.unrecorded.popleft()
        try:
            self._consider(heard)
        except Exception:  # a game's own hooks may raise anything; the next event is heard
            _log_trace(self._npc_ref, "recorded, not answered")
            self._missed(heard.event)
        self._record_lost(heard.conversation)

    async def record_alone(self) -> None:
        """Commit the oldest event now, or all of them when the database is back."""
        if not self.unrecorded or self._is_waiting:
            return
        try:
            try:
                heard = await self._committed_first()
            except HistoryConflictError:  # another process was first; who spoke is asked anew
                heard = await self._committed_first()
        except DATABASE_ERRORS as error:
            self._record_later(error)
            return
        self.took(heard)

    async def _committed_first(self) -> CommittedEvent:
        ready = await self._prepared_first()
        return await self._recorder.writer.write(partial(committed, ready))

    async def _prepared_first(self) -> Prepared:
        """The oldest event, with its conversation opened and read and the greeting before it."""
        event = self.unrecorded[0]
        conversation = await self._read(key_of(event))
        return Prepared(
            conversation=conversation,
            event=event,
            record=event_record(event, minute=minute_of(self._recorder.time_suffix)),
            greeting=self._greeting(conversation, event),
        )

    @property
    def _is_waiting(self) -> bool:
        """True if it is waited for the database."""
        return self._retry is not None and self._retry.active()

    async def _read(self, talk: ConversationKey) -> ConversationRef:
        """The conversation, opened, and its history in memory: a long one is read by the writer."""
        known = read_already(self._npc_ref, talk)
        return known or await self._recorder.writer.write(partial(read, self._npc_ref, talk))

    async def _record_all(self) -> None:
        """All that was kept, before anything of it is answered."""
        self._retry = None
        while self.unrecorded and not self._is_waiting:
            await self.record_alone()

    def _greeting(self, conversation: ConversationRef, event: Event) -> NewRecord | None:
        try:
            return self._opening(conversation, event)
        except DATABASE_ERRORS:
            raise
        except Exception:  # what was said is recorded all the same
            _log_trace(self._npc_ref, "no greeting")
            return None

    def _record_lost(self, conversation: ConversationRef) -> None:
        """Note once that more was heard than could be kept while the database was away."""
        if self._lost and not self.unrecorded:
            logger.log_err(
                f"evennia_ai: NPC {self._npc_ref}: {self._lost} events were not recorded"
            )
            lost, self._lost_of = self._lost_of, {}
            self._lost = 0
            self.record_overflow(conversation)
            for event in lost.values():
                self._missed(event)

    def _record_later(self, error: Exception) -> None:
        logger.log_err(f"evennia_ai: NPC {self._npc_ref}: not recorded, kept: {error}")
        again = partial(self._recorder.then, self._record_all)
        self._retry = self._recorder.clock.callLater(RETRY_SECONDS, again)

    def record_overflow(self, conversation: ConversationRef) -> None:
        """Commit that more was said than will be answered."""
        limit = self._recorder.queue_limit
        note = NewRecord(
            kind=RecordKind.EVENT, role="system", body=OVERFLOW, meta={"queue_limit": limit}
        )
        write = partial(conversations.append_records, conversation, [note])
        self._recorder.writer.write(write).addErrback(self._not_recorded)

    def _not_recorded(self, failure: Failure) -> None:
        why = failure.getErrorMessage()
        logger.log_err(f"evennia_ai: NPC {self._npc_ref}: the overflow was not recorded: {why}")


def _log_trace(npc_ref: str, problem: str) -> None:
    logger.log_err(f"evennia_ai: NPC {npc_ref}: {problem}\n{Failure().getTraceback()}")


class Recorder:
    """Commits for all NPCs, first come first served."""

    def __init__(
        self, clock: Clock, writer: Writer, *, queue_limit: int, time_suffix: TimeSuffix
    ) -> None:
        self.clock: Final = clock
        self.writer: Final = writer
        self.queue_limit: Final = queue_limit
        """How many events of one NPC are kept that are not committed yet."""
        self.time_suffix: Final = time_suffix
        """Which time prompts show with what is heard, "" for none."""
        self._waiting: deque[Hearing | Doing] = deque()
        self._call: DelayedCall | None = None
        self._is_writing = False

    def then(self, one: Hearing | Doing) -> None:
        """Have an NPC's oldest event committed, or something done, after all that waits now."""
        self._waiting.append(one)
        self._soon()

    def flush(self) -> None:
        """Commit all that waits, at once: the server stops, and the writer has ended."""
        while self._waiting:
            Deferred.fromCoroutine(self._step())

    def _soon(self) -> None:
        if not self._is_writing and (self._call is None or not self._call.active()):
            self._call = self.clock.callLater(0, self._work)

    def _work(self) -> None:
        self._is_writing = True
        Deferred.fromCoroutine(self._step()).addBoth(self._worked)

    def _worked(self, outcome: object) -> None:
        self._is_writing = False
        if isinstance(outcome, Failure):
            logger.log_err(f"evennia_ai: the recorder goes on\n{outcome.getTraceback()}")
        if self._waiting:
            self._soon()

    async def _step(self) -> None:
        """Do what is first, with what may be committed together with it."""
        batch: list[Hearing] = []
        while self._waiting and len(batch) < AT_ONCE:
            first = self._waiting[0]
            # What an NPC heard later may hang on what it heard before.
            if callable(first) or first in batch:
                break
            batch.append(first)
            self._waiting.popleft()
        if batch:
            await self._record(batch)
        if batch or not self._waiting:
            return
        do = self._waiting.popleft()
        assert callable(do)
        try:
            await maybeDeferred(do)
        except Exception:  # a game's own hooks may raise anything; what waits is committed
            told = Failure().getTraceback()
            logger.log_err(f"evennia_ai: nobody may answer what was just said\n{told}")

    async def _record(self, batch: Sequence[Hearing]) -> None:
        """Commit one event of each together; where that cannot be, each alone."""
        # All of them begin before one is waited for: what they have to read is read together.
        preparing = [(one, Deferred.fromCoroutine(one.prepared())) for one in batch]
        ready = [(one, its) for one, prepared in preparing if (its := await prepared) is not None]
        if not ready:
            return
        try:
            heard = await self.writer.write(partial(committed_each, [its for _, its in ready]))
        except DATABASE_ERRORS:
            for one, _ in ready:
                await one.record_alone()
            return
        for (one, _), its in zip(ready, heard, strict=True):
            one.took(its)
