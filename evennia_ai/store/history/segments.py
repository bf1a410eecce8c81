"""Segments: a compaction begins another one, with a summary that stands for what it left behind.

The summary, the messages that are kept beside it and all that they point at are one record, so the
step to the new segment is one commit: before it the old segment is what a prompt shows, after it
the new one. The old segment stays readable.
"""

from collections.abc import Iterator
from dataclasses import replace

from evennia_ai import models
from evennia_ai.errors import HistoryConflictError, StoreError
from evennia_ai.history.projection import project, project_newest, record_of
from evennia_ai.history.records import NewRecord, Record, RecordKind
from evennia_ai.prompt.history import History
from evennia_ai.prompt.messages import Message
from evennia_ai.prompt.placement import NO_ANCHORS
from evennia_ai.store.core.state import one_transaction
from evennia_ai.store.history import conversations
from evennia_ai.store.history.conversations import ConversationRef
from evennia_ai.store.history.record_rows import End, end_of, record_from
from evennia_ai.store.history.windows import records_at, windows

_CHUNK = 1000


def begin_segment(
    conversation: ConversationRef, summary: NewRecord, *, summarised: History, first_kept: int
) -> Record:
    """Commit `summary` as the start of a new segment; its record.

    It stands for the messages of the history `summarised` up to the absolute index `first_kept`;
    what follows that one, also what was said since, is kept. HistoryConflictError: another segment
    was begun since, or another process wrote. StoreError: there is nothing to summarise, or a
    tool's result would lose its call. In all of these cases nothing was written.
    """
    window = windows.read(conversation.id)
    now = window.history
    if summarised.segment != now.segment:
        raise HistoryConflictError(str(conversation))
    _check_cut(conversation, now, first_kept)
    tail = [_record(message) for message in now.between(first_kept, now.stop)]
    meta = {
        **summary.meta,
        "compacted_from": [
            now.segment,
            _first_place(conversation, now),
            _record(now[first_kept - 1]).place,
        ],
        "tail": [record.place for record in tail],
    }
    with one_transaction(f"beginning a segment of {conversation}"):
        (row,) = conversations.written(
            conversation, window.end.next_segment(), [replace(summary, meta=meta)]
        )
        record = record_from(row)
        end = end_of(row)
        history = project_newest(
            [record],
            totals=end.totals,
            segment=end.segment,
            tail={kept.place: kept for kept in tail},
        )
        grew = replace(window, history=history, end=end, cut=None, anchors=NO_ANCHORS)
        windows.wrote(conversation.id, grew)
        refuse_what_came_between(conversation, window.end)
    return record


def opening_summary(conversation: ConversationRef) -> Record | None:
    """The summary that the newest segment begins with; None where it begins with none."""
    segment = conversations.segment(conversation)
    first = next(records_in(conversation, segment), None) if segment > 1 else None
    return first if first is not None and first.kind is RecordKind.SUMMARY else None


def records_in(conversation: ConversationRef, segment: int) -> Iterator[Record]:
    """The records of one segment, oldest first, read as they are asked for."""
    rows = models.Record.objects.filter(conversation_id=conversation.id, segment=segment)
    for row in rows.order_by("seq").iterator(chunk_size=_CHUNK):
        yield record_from(row)


def history_in(conversation: ConversationRef, segment: int) -> History:
    """The whole history as a prompt at the end of this segment could show it."""
    records = list(records_in(conversation, segment))
    places = [place for record in records[:1] for place in record.meta.get("tail", ())]
    tail = records_at(conversation.id, places)
    return project(records, tail=tail, segment=segment)


def refuse_what_came_between(conversation: ConversationRef, end: End) -> None:
    """HistoryConflictError where another process wrote to the segment that is over now.

    Looked for after our own write, when nobody else can write any more.
    """
    rows = models.Record.objects.filter(conversation_id=conversation.id, segment=end.segment)
    if rows.filter(seq__gt=end.seq).exists():
        windows.drop(conversation.id)
        raise HistoryConflictError(str(conversation))


def _check_cut(conversation: ConversationRef, now: History, first_kept: int) -> None:
    if not now.earlier < first_kept <= now.stop:
        raise StoreError(
            f"{conversation} has messages {now.earlier} to {now.stop - 1}; a summary must take at"
            f" least one of them and cannot end before message {first_kept}; nothing was written"
        )
    if first_kept < now.stop and now[first_kept].role == "tool":
        raise StoreError(
            f"message {first_kept} of {conversation} is a tool's result; keep its call with it;"
            " nothing was written"
        )


def _first_place(conversation: ConversationRef, now: History) -> str:
    """Where the first message of the segment stands, also when the window begins behind it."""
    rows = models.Record.objects.filter(conversation_id=conversation.id, segment=now.segment)
    return record_from(rows.order_by("seq")[0]).place


def _record(message: Message) -> Record:
    record = record_of(message)
    assert record is not None  # the history of a window is made from records
    return record
