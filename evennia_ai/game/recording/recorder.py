"""The recorder: what NPCs perceived is committed before anything is answered, a little at a time.

An NPC that opens a conversation speaks first in it, so its greeting is committed before the event
that made it speak, both or neither: records are never put in another order later.

One line that fifty people hear is fifty records. Written at once they would hold the whole game up,
and one by one they would be fifty transactions; so a few are written together, and then everything
else has its turn. They are written in the order in which they were perceived.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from evennia.utils import logger
from twisted.python.failure import Failure

from evennia_ai.errors import HistoryConflictError
from evennia_ai.game.recording.heard import CommittedEvent, event_record, key_of, opened
from evennia_ai.game.recording.retrying import DATABASE_ERRORS
from evennia_ai.game.senses.events import Event
from evennia_ai.history.records import NewRecord
from evennia_ai.llm.resilience import Clock
from evennia_ai.store.core.state import one_transaction
from evennia_ai.store.history import conversations
from evennia_ai.store.history.conversations import ConversationRef

Opening = Callable[[ConversationRef], NewRecord | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """An event that can be committed without reading anything more.

    `minute` is the time that prompts show with it, "" for none.
    """

    conversation: ConversationRef
    event: Event
    greeting: NewRecord | None
    minute: str = ""

    @property
    def record(self) -> NewRecord:
        """What is written down of the event."""
        return event_record(self.event, minute=self.minute)


def recorded(npc_ref: str, event: Event, *, opening: Opening, minute: str = "") -> CommittedEvent:
    """The event, committed; `opening` tells the greeting that goes before it, if one does.

    StoreError: nothing was committed.
    """
    try:
        return committed(prepared(npc_ref, event, opening=opening, minute=minute))
    except HistoryConflictError:  # another process was first; who spoke is asked anew
        return committed(prepared(npc_ref, event, opening=opening, minute=minute))


def prepared(npc_ref: str, event: Event, *, opening: Opening, minute: str = "") -> Prepared:
    """The event, with its conversation opened and read and the greeting that goes before it.

    Read before the transaction: on SQLite one that reads first may not get to write.
    """
    conversation = opened(npc_ref, key_of(event))
    conversations.history(conversation)
    return Prepared(
        conversation=conversation, event=event, greeting=opening(conversation), minute=minute
    )


def committed(ready: Prepared) -> CommittedEvent:
    """The event as what the NPC heard, in a transaction of its own or the current one."""
    if ready.greeting is None:
        return _appended(ready)
    with one_transaction(f"opening {ready.conversation} with a greeting"):
        conversations.append(ready.conversation, [ready.greeting])
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
    before = conversations.history(ready.conversation)
    (record,) = conversations.append(ready.conversation, [ready.record])
    return CommittedEvent(
        event=ready.event,
        conversation=ready.conversation,
        record=record,
        before=before,
        greeting=greeting,
    )


AT_ONCE: Final = 4
"""Events that are committed together, before anything else has its turn."""


class Listening(Protocol):
    """One NPC, with events that are not committed yet."""

    def prepared(self) -> Prepared | None:
        """The oldest one, ready to be committed; None: it cannot be, or there is none any more."""

    def took(self, heard: CommittedEvent) -> None:
        """It is committed."""

    def record_alone(self) -> None:
        """Commit it without any other, now or when the database is back."""


class Recorder:
    """Commits for all NPCs, first come first served."""

    def __init__(self, clock: Clock) -> None:
        self._clock: Final = clock
        self._waiting: deque[Listening | Callable[[], None]] = deque()
        self._call: Any = None

    def soon(self, listening: Listening) -> None:
        """Have the oldest event of an NPC committed, after all that waits already."""
        self._put(listening)

    def then(self, do: Callable[[], None]) -> None:
        """Have something done when all that waits now is committed."""
        self._put(do)

    def flush(self) -> None:
        """Commit all that waits, at once: the server stops."""
        while self._waiting:
            self._step()

    def _put(self, one: "Listening | Callable[[], None]") -> None:
        self._waiting.append(one)
        if self._call is None or not self._call.active():
            self._call = self._clock.callLater(0, self._work)

    def _work(self) -> None:
        self._step()
        if self._waiting:
            self._call = self._clock.callLater(0, self._work)

    def _step(self) -> None:
        """Do what is first, with what may be committed together with it."""
        batch: list[Listening] = []
        while self._waiting and len(batch) < AT_ONCE:
            first = self._waiting[0]
            if callable(first):
                break
            if first in batch:  # what it heard later may hang on what it heard before
                break
            batch.append(first)
            self._waiting.popleft()
        if batch:
            _record(batch)
        elif self._waiting:
            done = self._waiting.popleft()
            assert callable(done)
            _do(done)


def _do(done: Callable[[], None]) -> None:
    """Do it; whatever comes of it, what waits behind it is committed."""
    try:
        done()
    except Exception:  # a game's own hooks may raise anything
        told = Failure().getTraceback()
        logger.log_err(f"evennia_ai: nobody may answer what was just said\n{told}")


def _record(batch: Sequence[Listening]) -> None:
    """Commit one event of each together; where that cannot be, each alone."""
    ready = [(one, prepared) for one in batch if (prepared := one.prepared()) is not None]
    if not ready:
        return
    try:
        heard = committed_each([prepared for _, prepared in ready])
    except DATABASE_ERRORS:
        for one, _ in ready:
            one.record_alone()
        return
    for (one, _), its in zip(ready, heard, strict=True):
        one.took(its)
