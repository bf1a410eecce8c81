"""Find conversations, append records to them, and begin segments with summaries.

The database gives each record number only once, so it detects concurrent appends. One record
contains the summary at the start of a segment and the places of the messages that the segment
keeps. So one commit begins the segment: before it prompts show the old segment, and after it the
new one. The old segment stays readable.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from functools import partial
from operator import attrgetter
from typing import Any, Final

from django.db import IntegrityError, connection, transaction

from evennia_ai import models
from evennia_ai.engine.errors import HistoryConflictError, StoreError
from evennia_ai.engine.history.projection import project_newest, record_of
from evennia_ai.engine.history.records import NewRecord, Record, RecordKind
from evennia_ai.engine.lorebook.activation.timers import NO_STATE
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.messages import Message
from evennia_ai.engine.prompt.placement import NO_ANCHORS
from evennia_ai.store.core.inserting import Insert
from evennia_ai.store.core.snapshots import Snapshots, one_transaction
from evennia_ai.store.history.record_rows import (
    ConversationKind,
    ConversationRef,
    End,
    NewRow,
    end_of,
    insert_records,
    record_from,
    records_at,
    ref_of,
    rows_after,
)
from evennia_ai.store.history.windows import (
    HISTORY,
    Window,
    empty_window,
    extended_window,
    lore_states,
    release_window,
    windows,
)

OF_SOMEBODY: Final = (RecordKind.USER, RecordKind.EVENT)
"""Kinds of records about words or acts of a person. The meta names this person as `speaker`."""


def get_or_open_conversation(
    npc_ref: str,
    *,
    kind: ConversationKind,
    partner_ref: str = "",
    place_ref: str = "",
    like: ConversationRef | None = None,
) -> ConversationRef:
    """Return the NPC's conversation in a room or with one partner.

    It is opened if it does not exist.

    Args:
        like: A new conversation gets the age and the origin of this one.
    """
    room = kind == "room"
    if bool(partner_ref) == room or bool(place_ref) != room:
        raise StoreError(
            f"a {kind} conversation needs {'place_ref' if room else 'partner_ref'} and no other"
            " reference"
        )
    key = (npc_ref, kind, partner_ref, place_ref)
    return _conversations(key) or _open(key, like)


def conversation_in_memory(
    npc_ref: str, *, kind: ConversationKind, partner_ref: str = "", place_ref: str = ""
) -> ConversationRef | None:
    """Return a conversation if it is in memory, else None. No query is made."""
    return _conversations.get_committed((npc_ref, kind, partner_ref, place_ref))


def conversations_of(npc_ref: str) -> tuple[ConversationRef, ...]:
    """Return all conversations of an NPC, in the order in which they were opened."""
    rows = models.Conversation.objects.filter(npc_ref=npc_ref).order_by("pk")
    return tuple(ref_of(row) for row in rows)


def newest_rooms(npc_ref: str, *, most: int) -> tuple[ConversationRef, ...]:
    """Return the NPC's conversations in rooms, the one with the newest record first."""
    with connection.cursor() as cursor:
        cursor.execute(_NEWEST_ROOMS, [npc_ref, most])
        rows = cursor.fetchall()
    return tuple(ConversationRef(**dict(zip(_REF, row, strict=True))) for row in rows)


_REF: Final = tuple(field.name for field in fields(ConversationRef))
# Raw SQL, because Django's query would look for the newest record of each conversation twice.
_NEWEST_ROOMS: Final = f"""SELECT {", ".join(_REF)} FROM (
        SELECT {", ".join(_REF)}, (
            SELECT record.id FROM {models.Record._meta.db_table} AS record
            WHERE record.conversation_id = conversation.id
            ORDER BY record.segment DESC, record.seq DESC LIMIT 1
        ) AS newest
        FROM {models.Conversation._meta.db_table} AS conversation
        WHERE npc_ref = %s AND kind = 'room'
    ) AS written
    WHERE newest IS NOT NULL ORDER BY newest DESC LIMIT %s
"""  # noqa: S608


def speakers(npc_ref: str, *, most_records: int) -> tuple[str, ...]:
    """Return the people who spoke or acted in the NPC's newest records, newest first, each once.

    Records of all conversations are read. Erased records name nobody.
    """
    rows = models.Record.objects.filter(conversation__npc_ref=npc_ref).order_by("-pk")
    metas = rows.filter(kind__in=OF_SOMEBODY).values_list("meta", flat=True)[:most_records]
    found = (json.loads(meta).get("speaker") for meta in metas)
    return tuple(dict.fromkeys(ref for ref in found if isinstance(ref, str) and ref))


def conversation_by_number(number: int) -> ConversationRef:
    """Return the conversation with this number.

    Raises:
        StoreError: there is none.
    """
    row = models.Conversation.objects.filter(pk=number).first()
    if row is None:
        raise StoreError(f"there is no conversation {number}")
    return ref_of(row)


def is_conversation(number: int) -> bool:
    """True if a conversation has this number."""
    return models.Conversation.objects.filter(pk=number).exists()


def npc_refs() -> tuple[str, ...]:
    """Return the references of all NPCs that ever had a conversation."""
    rows = models.Conversation.objects.order_by("npc_ref").values_list("npc_ref", flat=True)
    return tuple(rows.distinct())


def append_records(conversation: ConversationRef, new: Sequence[NewRecord]) -> tuple[Record, ...]:
    """Append new records to a conversation and commit them, all or none. Return the records.

    Raises:
        HistoryConflictError: another writer was first.
        StoreError: the database refused.
    """
    if not new:
        return ()
    # Read before the transaction, because on SQLite a read inside it may make the write fail.
    windows(conversation.id)
    with one_transaction(f"appending to {conversation}"):
        return append_in_transaction(conversation, new)


def append_in_transaction(
    conversation: ConversationRef, new: Sequence[NewRecord]
) -> tuple[Record, ...]:
    """Append records inside the current transaction (see `append_records`).

    If an error is raised, the transaction must be rolled back.
    """
    if not new:
        return ()
    window = windows(conversation.id)
    rows = rows_after(window.end, conversation.id, new)
    records = _insert_records([conversation], rows)
    windows.note_value(conversation.id, extended_window(window, records, end=end_of(rows[-1])))
    return records


def append_each(
    new: Sequence[tuple[ConversationRef, NewRecord]],
) -> list[tuple[History, Record]]:
    """Append one record to each of several conversations in one statement, all or none.

    Each conversation occurs once, and its window must be in memory.

    Returns:
        For each conversation, the history before the record, and the record.

    Raises:
        HistoryConflictError: another writer was first in one of them.
    """
    known = [(where, windows(where.id), one) for where, one in new]
    with one_transaction(f"appending to {len(new)} conversations"):
        rows = [
            row for where, window, one in known for row in rows_after(window.end, where.id, [one])
        ]
        records = _insert_records([where for where, _ in new], rows)
        for (where, window, _), row, record in zip(known, rows, records, strict=True):
            windows.note_value(where.id, extended_window(window, [record], end=end_of(row)))
    return [(window.history, record) for (_, window, _), record in zip(known, records, strict=True)]


def is_counted(record: Record) -> bool:
    """True if prompts may still show a record, because no builder has undone it."""
    window = windows(record.conversation)
    is_older = record.segment < window.controlled_from
    return not is_older or any(message.record == record.id for message in window.history)


def write_record(conversation: ConversationRef, end: End, new: NewRecord) -> tuple[Record, End]:
    """Write a record after `end` inside the current transaction, without updating the window.

    Returns:
        The record, and the new end of the conversation.
    """
    (record,) = write_records(conversation, end, [new])
    return record, replace(
        end, seq=record.seq, sha256=record.sha256, totals=end.totals.after(record)
    )


def write_records(
    conversation: ConversationRef, end: End, new: Sequence[NewRecord]
) -> tuple[Record, ...]:
    """Write records after `end`, as `write_record` does."""
    return _insert_records([conversation], rows_after(end, conversation.id, new))


def _insert_records(where: Sequence[ConversationRef], rows: Sequence[NewRow]) -> tuple[Record, ...]:
    """Insert the rows, which belong to these conversations, and return their records."""
    try:
        return insert_records(rows)
    except IntegrityError as error:
        for conversation in where:
            windows.drop(conversation.id)
        called = str(where[0]) if len(where) == 1 else f"{len(where)} conversations"
        raise HistoryConflictError(called) from error


def origin_of(conversation: ConversationRef) -> str:
    """Return the client of the first person who spoke in a conversation, or "" if it is unknown."""
    known = _conversations(_key(conversation))
    return known.origin if known is not None else ""


def set_origin(conversation: ConversationRef, client: str) -> None:
    """Set a conversation's origin in the current transaction if it has none.

    If another process set it meanwhile, that origin stays.
    """
    rows = models.Conversation.objects.filter(pk=conversation.id, origin="")
    if rows.update(origin=client):
        _conversations.note_value(_key(conversation), replace(conversation, origin=client))
    else:
        _conversations.note_change(_key(conversation))


def note_written(conversation: ConversationRef) -> None:
    """Note that the current transaction wrote rows of a conversation without these functions."""
    _conversations.note_change(_key(conversation))
    windows.note_change(conversation.id)


_Key = tuple[str, ConversationKind, str, str]
_COLUMNS: Final = ("npc_ref", "kind", "partner_ref", "place_ref")
_insert: Final = Insert(models.Conversation, (*_COLUMNS, "origin", "opened_at"))
_key: Final[Callable[[ConversationRef], _Key]] = attrgetter(*_COLUMNS)


def _open(key: _Key, like: ConversationRef | None) -> ConversationRef:
    opened_at, origin = (like.opened_at, like.origin) if like else (time.time(), "")
    with one_transaction(f"opening a conversation of NPC {key[0]}"):
        number = _insert.if_new([*key, origin, opened_at])
        if number is None:  # Another process opened the conversation meanwhile.
            _conversations.drop(key)
            opened = _load_conversation(key)
            assert opened is not None
            return opened
        named = _named(key)
        made = ConversationRef(id=number, **named, origin=origin, opened_at=opened_at)
        _conversations.note_value(key, made)
        windows.note_value(number, empty_window())
        lore_states.note_value(number, NO_STATE)
    return made


def _load_conversation(key: _Key) -> ConversationRef | None:
    row = models.Conversation.objects.filter(**_named(key)).first()
    return None if row is None else ref_of(row)


def _named(key: _Key) -> dict[str, Any]:
    return dict(zip(_COLUMNS, key, strict=True))


_conversations: Final = Snapshots(HISTORY, _load_conversation)


_CHUNK = 1000


def begin_segment(
    conversation: ConversationRef, summary: NewRecord, *, summarised: History, first_kept: int
) -> Record:
    """Commit a summary as the start of a new segment, and return its record.

    The new segment keeps the messages from `first_kept` on, including those that arrived meanwhile.
    If an error is raised, nothing was written.

    Args:
        summarised: The history that was summarised.
        first_kept: The absolute index of the first message that the summary does not replace.

    Raises:
        HistoryConflictError: another segment began meanwhile, or another process wrote.
        StoreError: there is nothing to summarise, or a tool's result would lose its call.
    """
    window = windows(conversation.id)
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
        return begin_segment_with(conversation, window, replace(summary, meta=meta), tail=tail)


def begin_segment_with(
    conversation: ConversationRef, window: Window, first: NewRecord, *, tail: Sequence[Record]
) -> Record:
    """Begin a segment inside the current transaction, and return its first record.

    The segment keeps the messages of `tail`. After the commit, the other messages of the old window
    are released.

    Args:
        window: The newest window of the conversation.

    Raises:
        HistoryConflictError: another process wrote to the conversation.
    """
    record, end = write_record(conversation, window.end.next_segment(), first)
    history = project_newest(
        [record],
        totals=end.totals,
        segment=end.segment,
        tail={kept.place: kept for kept in tail},
    )
    began = replace(
        window, history=history, end=end, cut=0, has_turn=False, anchors=NO_ANCHORS, texts=None
    )
    if record.kind is RecordKind.CONTROL:
        is_anew = not end.totals.replies
        began = replace(
            began,
            controlled_from=end.segment,
            begun_from=end.segment if is_anew else window.begun_from,
            first_reply=None if is_anew else window.first_reply,
        )
    windows.note_value(conversation.id, began)
    # Only after the commit, because the new window is made from messages of the old one.
    transaction.on_commit(partial(release_window, window, kept={kept.id for kept in tail}))
    refuse_other_writers(conversation, window.end)
    return record


def opening_summary(conversation_id: int, segment: int) -> Record | None:
    """Return the summary with which a segment begins, or None.

    If a control of a builder began the segment, its first record is the first one that the control
    kept. That may be a summary.
    """
    rows = models.Record.objects.filter(conversation_id=conversation_id, segment=segment)
    row = rows.order_by("seq").first() if segment > 1 else None
    first = None if row is None else record_from(row)
    if first is not None and first.kind is RecordKind.CONTROL:
        first = next(
            iter(records_at(conversation_id, first.meta.get("tail", ())[:1]).values()), None
        )
    return first if first is not None and first.kind is RecordKind.SUMMARY else None


def records_in(conversation: ConversationRef, segment: int) -> Iterator[Record]:
    """Yield the records of one segment, oldest first."""
    rows = models.Record.objects.filter(conversation_id=conversation.id, segment=segment)
    for row in rows.order_by("seq").iterator(chunk_size=_CHUNK):
        yield record_from(row)


def refuse_other_writers(conversation: ConversationRef, end: End) -> None:
    """Check that no other process has written to the segment that has just ended.

    Call it after this process has written, because then no other process can write to the segment.

    Raises:
        HistoryConflictError: another process wrote to the segment.
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
    """Return the place of the segment's first record, even if the window no longer contains it."""
    rows = models.Record.objects.filter(conversation_id=conversation.id, segment=now.segment)
    return record_from(rows.order_by("seq")[0]).place


def _record(message: Message) -> Record:
    record = record_of(message)
    assert record is not None  # Every message of a window has a record.
    return record
