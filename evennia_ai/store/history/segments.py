"""Read segments as they were at a certain record, for jobs that run while the game continues.

The game writes meanwhile, so nothing is cached here. The place and the hash of a record identify a
state: equal place and hash mean an equal history.
"""

from dataclasses import dataclass

from evennia_ai import models
from evennia_ai.engine.errors import StaleError
from evennia_ai.engine.history.projection import release_records
from evennia_ai.engine.history.records import Record
from evennia_ai.engine.prompt.history import History
from evennia_ai.store.history.conversations import opening_summary
from evennia_ai.store.history.record_rows import ConversationRef
from evennia_ai.store.history.windows import history_upto, windows


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The newest record of a conversation at the time when a job was requested."""

    conversation: int
    segment: int
    seq: int
    sha256: str
    """The record's hash in the chain. It covers all earlier records too."""

    @property
    def place(self) -> str:
        """The segment and the number of the record, such as "2.14"."""
        return f"{self.segment}.{self.seq}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PastSegment:
    """A segment as it was at a certain record."""

    history: History
    opening: Record | None
    """The summary with which the segment begins, or None."""


def head_of(conversation: ConversationRef) -> Head:
    """Return the newest record of a conversation, as this process knows it."""
    end = windows(conversation.id).end
    return Head(conversation=conversation.id, segment=end.segment, seq=end.seq, sha256=end.sha256)


def segment_at(head: Head, *, cut: int) -> PastSegment:
    """Return the newest messages of a segment up to `head`, and all messages from index `cut` on.

    Raises:
        StaleError: the conversation has another segment by now, or the record is missing.
    """
    row = _row(head)
    opening = opening_summary(head.conversation, head.segment)
    if opening is not None:
        release_records([opening])  # This breaks a reference cycle; see `history_upto`.
    return PastSegment(history=history_upto(row, cut=cut), opening=opening)


def refuse_gone(head: Head) -> None:
    """Check that a conversation is still in the segment of `head` and has that record.

    Call it before the result of a job is stored, because the conversation may have been erased
    meanwhile.

    Raises:
        StaleError: the conversation has another segment by now, or the record is missing.
    """
    _row(head)


def refuse_moved(conversation: ConversationRef, head: Head) -> None:
    """Check that the conversation is still in the segment of `head`, in the database and in memory.

    After an erasure it is not, and then a model's words about it must not be stored.

    Raises:
        StaleError: there is another segment, or the record is missing.
    """
    refuse_gone(head)
    if windows(conversation.id).end.segment != head.segment:
        raise StaleError(f"conversation {head.conversation} has begun another segment")


def _row(head: Head) -> models.Record:
    rows = models.Record.objects.filter(conversation_id=head.conversation)
    if rows.filter(segment__gt=head.segment).exists():
        raise StaleError(f"conversation {head.conversation} has begun another segment")
    row = rows.filter(segment=head.segment, seq=head.seq).first()
    if row is None or row.sha256 != head.sha256:
        raise StaleError(
            f"record {head.place} of conversation {head.conversation} is not the one that was meant"
        )
    return row
