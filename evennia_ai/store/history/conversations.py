"""Conversations: which there are, their records, and the window of history a turn reads.

What is appended is checked by the database, where a number is given out once.
"""

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from django.db import IntegrityError, transaction
from django.db.models import OuterRef, Subquery

from evennia_ai import models
from evennia_ai.errors import HistoryConflictError, StoreError
from evennia_ai.history.records import NewRecord, Record, RecordKind
from evennia_ai.prompt.history import History
from evennia_ai.prompt.placement import NO_ANCHORS, Anchors
from evennia_ai.store.core.rows import value_of
from evennia_ai.store.core.snapshots import Snapshots
from evennia_ai.store.core.state import one_transaction
from evennia_ai.store.history.record_rows import End, insert, records_from, rows_after
from evennia_ai.store.history.windows import HISTORY, empty, grown, windows

ConversationKind = Literal["room", "private"]

GREETING: Final = "greeting"
"""In the meta of a record: which greeting of its card the NPC said."""

_OF_SOMEBODY: Final = (RecordKind.USER, RecordKind.EVENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationRef:
    """One conversation of one NPC."""

    id: int
    npc_ref: str
    kind: ConversationKind
    partner_ref: str
    place_ref: str
    origin: str
    """The client of the first who spoke to the NPC there, "" until somebody at one did."""
    opened_at: float

    def __str__(self) -> str:
        with_whom = f"{self.kind} {self.partner_ref or self.place_ref}"
        return f"conversation {self.id} of NPC {self.npc_ref} ({with_whom})"


def conversation(
    npc_ref: str,
    *,
    kind: ConversationKind,
    partner_ref: str = "",
    place_ref: str = "",
) -> ConversationRef:
    """The NPC's conversation in a room, or in private with one partner; opened when it is new."""
    room = kind == "room"
    if bool(partner_ref) == room or bool(place_ref) != room:
        raise StoreError(
            f"a {kind} conversation is told by {'place_ref' if room else 'partner_ref'} alone"
        )
    key = (npc_ref, kind, partner_ref, place_ref)
    return _conversations.read(key) or _opened(key)


def conversations_of(npc_ref: str) -> tuple[ConversationRef, ...]:
    """All conversations of an NPC, in the order in which they were opened."""
    rows = models.Conversation.objects.filter(npc_ref=npc_ref).order_by("pk")
    return tuple(ref_of(row) for row in rows)


def newest_rooms(npc_ref: str, *, most: int) -> tuple[ConversationRef, ...]:
    """The NPC's conversations in rooms that something was recorded in last, the newest first."""
    newest = models.Record.objects.filter(conversation_id=OuterRef("pk"))
    newest = newest.order_by("-segment", "-seq").values("pk")[:1]
    rows = models.Conversation.objects.filter(npc_ref=npc_ref, kind="room")
    written = rows.annotate(newest=Subquery(newest)).exclude(newest=None)
    return tuple(ref_of(row) for row in written.order_by("-newest")[:most])


def speakers(npc_ref: str, *, most_records: int) -> tuple[str, ...]:
    """Who spoke or did something in the NPC's newest records, of all its conversations.

    The newest first, each once. Records whose words were erased tell nothing any more.
    """
    rows = models.Record.objects.filter(conversation__npc_ref=npc_ref).order_by("-pk")
    metas = rows.filter(kind__in=_OF_SOMEBODY).values_list("meta", flat=True)[:most_records]
    found = (json.loads(meta).get("speaker") for meta in metas)
    return tuple(dict.fromkeys(ref for ref in found if isinstance(ref, str) and ref))


def is_conversation(number: int) -> bool:
    """Whether a conversation has this number."""
    return models.Conversation.objects.filter(pk=number).exists()


def npc_refs() -> tuple[str, ...]:
    """The references of all NPCs that ever had a conversation."""
    rows = models.Conversation.objects.order_by("npc_ref").values_list("npc_ref", flat=True)
    return tuple(rows.distinct())


def append(conversation: ConversationRef, new: Sequence[NewRecord]) -> tuple[Record, ...]:
    """Commit `new` after the newest record, all or none; the records.

    HistoryConflictError: another writer was first. StoreError: the database refused.
    """
    if not new:
        return ()
    # Read before the transaction: on SQLite one that reads first may not get to write.
    window = windows.read(conversation.id)
    with one_transaction(f"appending to {conversation}"):
        rows = written(conversation, window.end, new)
        grew, records = grown(window, rows)
        windows.wrote(conversation.id, grew)
    return records


def append_each(
    new: Sequence[tuple[ConversationRef, NewRecord]],
) -> list[tuple[History, Record]]:
    """Commit one record to each of these conversations, all or none.

    For each its history before, and the record. The conversations are different ones whose
    history was read before. HistoryConflictError: another writer was first in one of them.
    """
    known = [(where, windows.read(where.id), one) for where, one in new]
    with one_transaction(f"appending to {len(new)} conversations"):
        rows = [
            row for where, window, one in known for row in rows_after(window.end, where.id, [one])
        ]
        try:
            insert(rows)
        except IntegrityError as error:
            for where, _ in new:
                windows.drop(where.id)
            raise HistoryConflictError(f"{len(new)} conversations") from error
        appended = []
        for (where, window, _), row in zip(known, rows, strict=True):
            grew, (record,) = grown(window, [row])
            windows.wrote(where.id, grew)
            appended.append((window.history, record))
    return appended


def written(
    conversation: ConversationRef, end: End, new: Sequence[NewRecord]
) -> list[models.Record]:
    """The rows of `new` after `end`, written in the current transaction, past the window."""
    try:
        return insert(rows_after(end, conversation.id, new))
    except IntegrityError as error:
        windows.drop(conversation.id)
        raise HistoryConflictError(str(conversation)) from error


def history(conversation: ConversationRef) -> History:
    """The window of the conversation's history that a prompt may show.

    At least the newest 400 messages, and everything since the remembered cut. Not for several
    threads at once: it belongs to the thread that composes.
    """
    return windows.read(conversation.id).history


def has_spoken(conversation: ConversationRef) -> bool:
    """Whether the NPC ever said anything in the conversation."""
    return windows.read(conversation.id).first_reply is not None


def greeting(conversation: ConversationRef) -> int | None:
    """The index of the greeting that was the first thing the NPC said there; None for another."""
    found = (windows.read(conversation.id).first_reply or {}).get(GREETING)
    return found if isinstance(found, int) else None


def cut(conversation: ConversationRef) -> int:
    """The index the history was last cut at, by the newest turn; 0 when it never was."""
    return windows.read(conversation.id).cut or 0


def origin(conversation: ConversationRef) -> str:
    """The client of the first who spoke to the NPC there, as it is known by now."""
    known = _conversations.read(_key(conversation))
    return known.origin if known is not None else ""


def spoken_from(conversation: ConversationRef, client: str) -> None:
    """The current transaction writes what was spoken first from this client; it stays.

    Another process may have been first meanwhile: then its client stays.
    """
    rows = models.Conversation.objects.filter(pk=conversation.id, origin="")
    if rows.update(origin=client):
        _conversations.wrote(_key(conversation), replace(conversation, origin=client))
    else:
        _conversations.written(_key(conversation))


def anchors(conversation: ConversationRef) -> Anchors:
    """Where the newest turn of this segment anchored the notes that are, by their origin."""
    return windows.read(conversation.id).anchors


def segment(conversation: ConversationRef) -> int:
    """The newest part of the conversation; a compaction begins another one."""
    return windows.read(conversation.id).end.segment


def newest_record(conversation: ConversationRef) -> int:
    """The number of the newest record in the newest segment; 0 where there is none."""
    return windows.read(conversation.id).end.seq


def remembered_from(conversation: ConversationRef) -> int:
    """The segment before which everything was erased; 1 where nothing was."""
    return windows.read(conversation.id).remembered_from


def remember_turn(
    conversation: ConversationRef, *, cut: int, anchors: Anchors = NO_ANCHORS
) -> None:
    """The current transaction writes a turn whose prompt was cut and had its notes so."""
    window = windows.read(conversation.id)
    known = replace(window, cut=cut, anchors=anchors)
    if known != window:
        windows.wrote(conversation.id, known)


def written_past(conversation: ConversationRef) -> None:
    """The current transaction writes rows of the conversation past this room."""
    _conversations.written(_key(conversation))
    windows.written(conversation.id)


def records(ids: Iterable[str]) -> tuple[Record, ...]:
    """The records with these ids, in the order in which they were written."""
    rows = models.Record.objects.filter(pk__in=[int(wanted) for wanted in set(ids)])
    return records_from(rows.order_by("pk"))


def records_of(
    conversation: ConversationRef, *, limit_records: int | None = None
) -> tuple[Record, ...]:
    """The newest records of a conversation, all without a limit, oldest first."""
    rows = models.Record.objects.filter(conversation_id=conversation.id)
    newest = list(rows.order_by("-segment", "-seq")[:limit_records])
    return records_from(reversed(newest))


def tool_called(conversation_id: int, call_id: str) -> str:
    """The name of the tool of a call in a conversation, "" where there is no such call."""
    rows = models.Record.objects.filter(
        conversation_id=conversation_id, kind=RecordKind.TOOL_CALL, meta__contains=call_id
    )
    for meta in rows.values_list("meta", flat=True) if call_id else ():
        for call in json.loads(meta).get("tool_calls", ()):
            if call.get("id") == call_id:
                return str(call.get("name", ""))
    return ""


def ref_of(row: models.Conversation) -> ConversationRef:
    """The value of a row that is already read."""
    return value_of(ConversationRef, row)


_Key = tuple[str, ConversationKind, str, str]


def _key(conversation: ConversationRef) -> _Key:
    return (
        conversation.npc_ref,
        conversation.kind,
        conversation.partner_ref,
        conversation.place_ref,
    )


def _opened(key: _Key) -> ConversationRef:
    with one_transaction(f"opening a conversation of NPC {key[0]}"):
        npc_ref, kind, partner_ref, place_ref = key
        row = models.Conversation(
            npc_ref=npc_ref,
            kind=kind,
            partner_ref=partner_ref,
            place_ref=place_ref,
            opened_at=time.time(),
        )
        try:
            with transaction.atomic():
                row.save()
        except IntegrityError:  # another process opened it since we looked
            _conversations.drop(key)
            opened = _load_conversation(key)
            assert opened is not None
            return opened
        _conversations.wrote(key, ref_of(row))
        windows.wrote(row.pk, empty())
    return ref_of(row)


def _load_conversation(key: _Key) -> ConversationRef | None:
    npc_ref, kind, partner_ref, place_ref = key
    row = models.Conversation.objects.filter(
        npc_ref=npc_ref, kind=kind, partner_ref=partner_ref, place_ref=place_ref
    ).first()
    return None if row is None else ref_of(row)


_conversations: Final = Snapshots(HISTORY, _load_conversation)
