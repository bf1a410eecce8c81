"""Segments as they were: what is read by who works on a conversation beside its game.

Another process writes meanwhile, so nothing here is kept from call to call, and all of it is told
by a place in the records and the hash of what stands there: the same place gives the same history.
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
    """The newest record of a conversation when something was asked for."""

    conversation: int
    segment: int
    seq: int
    sha256: str
    """Its hash in the chain, so that of all before it as well."""

    @property
    def place(self) -> str:
        """Where it stands in its conversation."""
        return f"{self.segment}.{self.seq}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PastSegment:
    """A segment as a record had left it."""

    history: History
    opening: Record | None
    """The summary that the segment begins with."""


def head_of(conversation: ConversationRef) -> Head:
    """The newest record of the conversation, as this process knows it."""
    end = windows(conversation.id).end
    return Head(conversation=conversation.id, segment=end.segment, seq=end.seq, sha256=end.sha256)


def segment_at(head: Head, *, cut: int) -> PastSegment:
    """The newest messages of the segment up to `head`, and all since the index `cut`.

    StaleError: the conversation has left the segment, or this record is not there.
    """
    row = _row(head)
    opening = opening_summary(head.conversation, head.segment)
    if opening is not None:
        release_records([opening])  # as `history_upto` does, and for the same reason
    return PastSegment(history=history_upto(row, cut=cut), opening=opening)


def refuse_gone(head: Head) -> None:
    """StaleError where the conversation has left the segment, or this record is not there.

    For who made something of it beside its game: it may have been erased meanwhile.
    """
    _row(head)


def refuse_moved(conversation: ConversationRef, head: Head) -> None:
    """StaleError where the conversation has left the segment, or its records are others.

    It may have been erased, and then no word of a model's may be kept either.
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
