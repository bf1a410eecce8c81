"""Hearing: what an NPC perceived is committed, in its order, before it is considered at all.

An event that cannot be committed is kept and tried again; what is more than may be kept is lost,
and that something was is itself recorded, once.
"""

from collections import Counter, deque
from collections.abc import Callable
from typing import Any, Final

from evennia.utils import logger
from twisted.python.failure import Failure

from evennia_ai.errors import StoreError
from evennia_ai.game.inputs.facts import minute_of
from evennia_ai.game.recording.heard import CommittedEvent
from evennia_ai.game.recording.recorder import Prepared, prepared, recorded
from evennia_ai.game.recording.retrying import DATABASE_ERRORS
from evennia_ai.game.runtime import Current
from evennia_ai.game.senses.events import Event
from evennia_ai.history.records import NewRecord, RecordKind
from evennia_ai.store.history import conversations
from evennia_ai.store.history.conversations import ConversationRef

OVERFLOW: Final = "Too much was said at once; some of it will go unanswered."
RETRY_SECONDS: Final = 5.0

Opening = Callable[[ConversationRef, Event], NewRecord | None]
"""The greeting an NPC opens a conversation with because of an event, None where it does not."""


class Hearing:
    """Commits the events of one NPC and passes them on to `consider`."""

    def __init__(
        self,
        npc_ref: str,
        current: Current,
        *,
        opening: Opening,
        consider: Callable[[CommittedEvent], None],
    ) -> None:
        self._npc_ref: Final = npc_ref
        self._current: Final = current
        self._opening: Final = opening
        self._consider: Final = consider
        self._unrecorded: deque[Event] = deque()
        self._lost = 0
        self._retry: Any = None

    @property
    def unrecorded(self) -> int:
        """How many events are not committed yet."""
        return len(self._unrecorded)

    def hear(self, event: Event) -> None:
        """Have what was perceived committed, soon or when the database is back."""
        live = self._current.runtime
        if len(self._unrecorded) >= live.conf.queue_limit:
            self._lost += 1
            if not self._made_room(event):
                return
        self._unrecorded.append(event)
        live.recorder.soon(self)

    def _made_room(self, event: Event) -> bool:
        """Whether somebody of whom much more is kept gave up their newest for this one.

        Never the oldest of all, which may be about to be committed.
        """
        kept = Counter(known.speaker_ref for known in self._unrecorded)
        ((speaker, most),) = kept.most_common(1)
        if most <= kept[event.speaker_ref] + 1:
            return False
        newest = max(
            at for at, known in enumerate(self._unrecorded) if known.speaker_ref == speaker
        )
        del self._unrecorded[newest]
        return True

    # What the recorder asks for

    def prepared(self) -> Prepared | None:
        """The oldest event, ready to be committed; None while the database is away."""
        if not self._unrecorded or self._is_waiting:
            return None
        try:
            event = self._unrecorded[0]
            return prepared(
                self._npc_ref, event, opening=self._opening_of_first, minute=self._minute()
            )
        except DATABASE_ERRORS as error:
            self._record_later(error)
            return None

    def took(self, heard: CommittedEvent) -> None:
        """The oldest event is committed."""
        self._unrecorded.popleft()
        try:
            self._consider(heard)
        except Exception:  # a game's own hooks may raise anything; the next event is heard
            _log_trace(self._npc_ref, "recorded, not answered")
        self._record_lost(heard.conversation)

    def record_alone(self) -> None:
        """Commit the oldest event now, or all of them when the database is back."""
        if not self._unrecorded or self._is_waiting:
            return
        try:
            event = self._unrecorded[0]
            heard = recorded(
                self._npc_ref, event, opening=self._opening_of_first, minute=self._minute()
            )
        except DATABASE_ERRORS as error:
            self._record_later(error)
            return
        self.took(heard)

    @property
    def _is_waiting(self) -> bool:
        """Whether it is waited for the database."""
        return self._retry is not None and self._retry.active()

    def _record_all(self) -> None:
        self._retry = None
        while self._unrecorded and not self._is_waiting:
            self.record_alone()

    def _opening_of_first(self, conversation: ConversationRef) -> NewRecord | None:
        try:
            return self._opening(conversation, self._unrecorded[0])
        except DATABASE_ERRORS:
            raise
        except Exception:  # what was said is recorded all the same
            _log_trace(self._npc_ref, "no greeting")
            return None

    def _record_lost(self, conversation: ConversationRef) -> None:
        """Note once that more was heard than could be kept while the database was away."""
        if self._lost and not self._unrecorded:
            logger.log_err(
                f"evennia_ai: NPC {self._npc_ref}: {self._lost} events were not recorded"
            )
            self._lost = 0
            self.record_overflow(conversation)

    def _record_later(self, error: Exception) -> None:
        logger.log_err(f"evennia_ai: NPC {self._npc_ref}: not recorded, kept: {error}")
        self._retry = self._current.runtime.clock.callLater(RETRY_SECONDS, self._record_all)

    def record_overflow(self, conversation: ConversationRef) -> None:
        """Commit that more was said than will be answered."""
        limit = self._current.runtime.conf.queue_limit
        note = NewRecord(
            kind=RecordKind.EVENT, role="system", body=OVERFLOW, meta={"queue_limit": limit}
        )
        try:
            conversations.append(conversation, [note])
        except StoreError as error:
            logger.log_err(
                f"evennia_ai: NPC {self._npc_ref}: the overflow was not recorded: {error}"
            )

    def _minute(self) -> str:
        """The time that prompts show with what is heard now, "" where the game wants none."""
        return minute_of(self._current.runtime.conf.time_suffix)


def _log_trace(npc_ref: str, problem: str) -> None:
    logger.log_err(f"evennia_ai: NPC {npc_ref}: {problem}\n{Failure().getTraceback()}")
