"""The recorder: commits what NPCs perceived, before any NPC answers.

An event that cannot be committed is kept and tried again. If too many wait, some are dropped, and
one record notes that.

Some NPCs open a conversation with a greeting. It is committed in one transaction with the event
that caused it, and before the event, because records are never reordered. Only the greeting of a
newcomer follows the event of their arrival.

A line that fifty NPCs hear becomes fifty records. One transaction for all of them would block the
game, and fifty transactions would be slow. Therefore a few are committed together, and then other
work of the reactor runs. Events are committed in the order in which they were perceived.
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
    cached_conversation,
    event_record,
    key_of,
    minute_of,
    read_conversation,
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
"""A function that returns the greeting with which an event opens a conversation, or None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """An event with its record and its greeting, which can be committed without further reads."""

    conversation: ConversationRef
    event: Event
    record: NewRecord
    greeting: NewRecord | None


def commit_event(ready: Prepared) -> CommittedEvent:
    """Commit an event and its greeting. Return the event with its record and the history before it.

    If a transaction is open, it is used.
    """
    if ready.greeting is None:
        return _append_event(ready)
    with one_transaction(f"opening {ready.conversation} with a greeting"):
        if ready.event.kind == ARRIVE:
            heard = _append_event(ready, greeting=ready.greeting.body)
            conversations.append_records(ready.conversation, [ready.greeting])
            return heard
        conversations.append_records(ready.conversation, [ready.greeting])
        return _append_event(ready, greeting=ready.greeting.body)


def commit_events(ready: Sequence[Prepared]) -> list[CommittedEvent]:
    """Commit events of different conversations in one transaction."""
    if any(one.greeting is not None for one in ready):
        with one_transaction("recording what NPCs perceived"):
            return [commit_event(one) for one in ready]
    appended = conversations.append_each([(one.conversation, one.record) for one in ready])
    return [
        CommittedEvent(event=one.event, conversation=one.conversation, record=record, before=before)
        for one, (before, record) in zip(ready, appended, strict=True)
    ]


def _append_event(ready: Prepared, *, greeting: str = "") -> CommittedEvent:
    """Append the event's record. Return the event with its record and the history before it."""
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
"""The most events that are committed together before other work of the reactor runs."""


class Hearing:
    """The uncommitted events of one NPC. Each is passed to `consider` after its commit."""

    def __init__(
        self,
        npc_ref: str,
        *,
        opening: Opening,
        consider: Callable[[CommittedEvent], None],
        missed: Callable[[Event], None],
    ) -> None:
        """Start without events.

        Args:
            opening: Returns the greeting for an event that opens a conversation.
            consider: Called with each committed event.
            missed: Called with an event that will not be answered, because an error occurred or too
                many events waited.
        """
        self._npc_ref: Final = npc_ref
        self._opening: Final = opening
        self._consider: Final = consider
        self._missed: Final = missed
        self.unrecorded: deque[Event] = deque()
        """The events that are not committed yet, oldest first."""
        self._lost = 0
        self._lost_of: dict[str, Event] = {}
        """By speaker: the newest of their events that was dropped."""
        self._recorder: Recorder
        self._retry: DelayedCall | None = None

    def hear(self, event: Event, recorder: "Recorder") -> None:
        """Queue an event to be committed, now or when the database can be reached again."""
        self._recorder = recorder
        if len(self.unrecorded) >= recorder.queue_limit:
            given_up = self._drop_newest_of_greediest(event)
            self._lost += 1
            lost = given_up or event
            self._lost_of[lost.speaker_ref] = lost
            if given_up is None:
                return
        self.unrecorded.append(event)
        recorder.then(self)

    def _drop_newest_of_greediest(self, event: Event) -> Event | None:
        """Drop the newest event of the speaker with the most events, and return it.

        Return None if no speaker has at least two more events than the speaker of `event`. The
        oldest event is never dropped, because it may be in a running commit.
        """
        kept = Counter(known.speaker_ref for known in self.unrecorded)
        ((speaker, most),) = kept.most_common(1)
        if most <= kept[event.speaker_ref] + 1:
            return None
        newest = max(at for at, known in enumerate(self.unrecorded) if known.speaker_ref == speaker)
        given_up = self.unrecorded[newest]
        del self.unrecorded[newest]
        return given_up

    # Called by the recorder

    async def prepared(self) -> Prepared | None:
        """Return the oldest event, ready to be committed.

        Return None without events, or while the database cannot be reached.
        """
        if not self.unrecorded or self._is_waiting:
            return None
        try:
            return await self._prepared_first()
        except DATABASE_ERRORS as error:
            self._record_later(error)
            return None

    def took(self, heard: CommittedEvent) -> None:
        """Remove the oldest event, which was committed, and pass it to `consider`."""
        self.unrecorded.popleft()
        try:
            self._consider(heard)
        except Exception:  # a game's own hooks may raise anything; continue with the next event
            _log_trace(self._npc_ref, "an event was recorded, but considering an answer failed")
            self._missed(heard.event)
        self._record_lost(heard.conversation)

    async def record_alone(self) -> None:
        """Commit the oldest event by itself, unless a retry is scheduled."""
        if not self.unrecorded or self._is_waiting:
            return
        try:
            try:
                heard = await self._committed_first()
            except HistoryConflictError:  # another process wrote first; read and try once more
                heard = await self._committed_first()
        except DATABASE_ERRORS as error:
            self._record_later(error)
            return
        self.took(heard)

    async def _committed_first(self) -> CommittedEvent:
        ready = await self._prepared_first()
        return await self._recorder.writer.write(partial(commit_event, ready))

    async def _prepared_first(self) -> Prepared:
        """Return the oldest event with its conversation, its record and its greeting."""
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
        """True while a retry is scheduled."""
        return self._retry is not None and self._retry.active()

    async def _read(self, talk: ConversationKey) -> ConversationRef:
        """Return the conversation with its history in memory.

        If it is not there, the writer reads it.
        """
        known = cached_conversation(self._npc_ref, talk)
        return known or await self._recorder.writer.write(
            partial(read_conversation, self._npc_ref, talk)
        )

    async def _record_all(self) -> None:
        """Commit all events that were kept while the database could not be reached."""
        self._retry = None
        while self.unrecorded and not self._is_waiting:
            await self.record_alone()

    def _greeting(self, conversation: ConversationRef, event: Event) -> NewRecord | None:
        try:
            return self._opening(conversation, event)
        except DATABASE_ERRORS:
            raise
        except Exception:  # a game's hook failed; the event needs no greeting
            _log_trace(self._npc_ref, "making a greeting failed")
            return None

    def _record_lost(self, conversation: ConversationRef) -> None:
        """Once all kept events are committed, record that others were dropped."""
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
        logger.log_err(
            f"evennia_ai: NPC {self._npc_ref}: events are not recorded yet; trying again: {error}"
        )
        again = partial(self._recorder.then, self._record_all)
        self._retry = self._recorder.clock.callLater(RETRY_SECONDS, again)

    def record_overflow(self, conversation: ConversationRef) -> None:
        """Commit a note that more was said than the NPC will answer."""
        limit = self._recorder.queue_limit
        note = NewRecord(
            kind=RecordKind.EVENT, role="system", body=OVERFLOW, meta={"queue_limit": limit}
        )
        write = partial(conversations.append_records, conversation, [note])
        self._recorder.writer.write(write).addErrback(self._log_unrecorded_note)

    def _log_unrecorded_note(self, failure: Failure) -> None:
        why = failure.getErrorMessage()
        logger.log_err(
            f"evennia_ai: NPC {self._npc_ref}: the note on dropped events was not recorded: {why}"
        )


def _log_trace(npc_ref: str, problem: str) -> None:
    logger.log_err(f"evennia_ai: NPC {npc_ref}: {problem}\n{Failure().getTraceback()}")


class Recorder:
    """The queue from which the events of all NPCs are committed, in the order of their arrival."""

    def __init__(
        self, clock: Clock, writer: Writer, *, queue_limit: int, time_suffix: TimeSuffix
    ) -> None:
        self.clock: Final = clock
        self.writer: Final = writer
        self.queue_limit: Final = queue_limit
        """The most uncommitted events of one NPC."""
        self.time_suffix: Final = time_suffix
        """The clock (real or game) whose minute is recorded with each event, "" for none."""
        self._waiting: deque[Hearing | Doing] = deque()
        self._call: DelayedCall | None = None
        self._is_writing = False

    def then(self, one: Hearing | Doing) -> None:
        """Queue the next event of an NPC, or a function, after everything that waits now."""
        self._waiting.append(one)
        self._soon()

    def flush(self) -> None:
        """Commit everything that waits, at once.

        Called at the stop of the server, after the writer's end.
        """
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
            logger.log_err(
                f"evennia_ai: an error in the recorder, which continues\n{outcome.getTraceback()}"
            )
        if self._waiting:
            self._soon()

    async def _step(self) -> None:
        """Commit the first events that can be committed together, or call the first function."""
        batch: list[Hearing] = []
        while self._waiting and len(batch) < AT_ONCE:
            first = self._waiting[0]
            # A batch has one event per NPC, because its next event may depend on this one.
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
        except Exception:  # a game's hooks may raise anything; continue with what waits
            told = Failure().getTraceback()
            logger.log_err(
                f"evennia_ai: events were recorded, but deciding who answers failed\n{told}"
            )

    async def _record(self, batch: Sequence[Hearing]) -> None:
        """Commit one event of each NPC in the batch together.

        If that fails, commit each by itself.
        """
        # Prepare all of them before waiting for one, so that their reads run together.
        preparing = [(one, Deferred.fromCoroutine(one.prepared())) for one in batch]
        ready = [(one, its) for one, prepared in preparing if (its := await prepared) is not None]
        if not ready:
            return
        try:
            heard = await self.writer.write(partial(commit_events, [its for _, its in ready]))
        except DATABASE_ERRORS:
            for one, _ in ready:
                await one.record_alone()
            return
        for (one, _), its in zip(ready, heard, strict=True):
            one.took(its)
