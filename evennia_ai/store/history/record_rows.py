"""Convert conversations and records to database rows and back.

The end of a conversation is a separate value, so new records are numbered and chained without a
query. `verifying` checks whether rows were changed.
"""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, cast

from django.db.models import Q, QuerySet

from evennia_ai import models
from evennia_ai.engine.history.records import (
    SHARED_CHARACTERS,
    MessageTotals,
    NewRecord,
    Record,
    RecordKind,
    canonical_json,
    link_sha256,
    record_content,
    share_text,
)
from evennia_ai.engine.prompt.messages import Role
from evennia_ai.store.core.inserting import Insert
from evennia_ai.store.core.snapshots import value_of

ConversationKind = Literal["room", "private"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationRef:
    """One conversation of one NPC."""

    id: int
    npc_ref: str
    kind: ConversationKind
    partner_ref: str
    place_ref: str
    origin: str
    """The client of the first person who spoke in the conversation; "" while unknown."""
    opened_at: float

    def __str__(self) -> str:
        with_whom = f"{self.kind} {self.partner_ref or self.place_ref}"
        return f"conversation {self.id} of NPC {self.npc_ref} ({with_whom})"


def ref_of(row: models.Conversation) -> ConversationRef:
    """Return the `ConversationRef` of a row."""
    return value_of(ConversationRef, row)


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """The end of a conversation, after which the next record goes."""

    segment: int = 1
    seq: int = 0
    """The number of the newest record in the segment."""
    sha256: str = ""
    """The hash of the newest record."""
    totals: MessageTotals = field(default_factory=MessageTotals)
    """The totals of the history up to the newest record."""

    def next_segment(self) -> "End":
        """Return the end after which the first record of the next segment goes.

        The chain of hashes continues across segments.
        """
        return End(segment=self.segment + 1, sha256=self.sha256, totals=self.totals)


class NewRow(NamedTuple):
    """The columns of a record's row before it is written."""

    conversation_id: int
    segment: int
    seq: int
    kind: str
    role: str
    name: str
    body: str
    meta: str
    """The meta as canonical JSON."""
    content_sha256: str
    sha256: str
    messages: int
    users: int
    replies: int
    created_at: float


def rows_after(end: End, conversation_id: int, new: Sequence[NewRecord]) -> list[NewRow]:
    """Return new records as rows, numbered and chained after `end`."""
    rows = []
    now = time.time()
    digest, totals = end.sha256, end.totals
    for seq, new_one in enumerate(new, start=end.seq + 1):
        totals = totals.after(new_one)
        content = record_content(new_one)
        digest = link_sha256(digest, kind=new_one.kind, role=new_one.role, content=content.sha256)
        row = NewRow(
            conversation_id=conversation_id,
            segment=end.segment,
            seq=seq,
            kind=new_one.kind.value,
            role=new_one.role,
            name=new_one.name,
            body=new_one.body,
            meta=content.meta,
            content_sha256=content.sha256,
            sha256=digest,
            messages=totals.messages,
            users=totals.users,
            replies=totals.replies,
            created_at=now,
        )
        rows.append(row)
    return rows


def row_of(record: Record, totals: MessageTotals) -> NewRow:
    """Return a record that has no id yet as a row.

    `totals` are those of the history up to and including this record.
    """
    return NewRow(
        conversation_id=record.conversation,
        segment=record.segment,
        seq=record.seq,
        kind=record.kind.value,
        role=record.role,
        name=record.name,
        body=record.body,
        meta=canonical_json(dict(record.meta)),
        content_sha256=record.content_sha256,
        sha256=record.sha256,
        messages=totals.messages,
        users=totals.users,
        replies=totals.replies,
        created_at=record.created_at,
    )


_insert: Final = Insert(models.Record, NewRow._fields)


def insert_records(rows: Sequence[NewRow]) -> tuple[Record, ...]:
    """Insert rows in the current transaction, without updating windows, and return their records.

    Raises:
        IntegrityError: another writer took one of their numbers, or began another segment.
    """
    return tuple(map(_record_of, _insert(rows), rows))


class _Row(NamedTuple):
    """The columns of a row that a record is made of. It is faster than an object of the model."""

    pk: int
    conversation_id: int
    segment: int
    seq: int
    kind: str
    role: str
    name: str
    body: str
    meta: str
    content_sha256: str
    sha256: str
    created_at: float


def _record_of(pk: int, row: models.Record | NewRow | _Row) -> Record:
    """Return the record that a reader of this row will get."""
    return Record(
        id=str(pk),
        conversation=row.conversation_id,
        segment=row.segment,
        seq=row.seq,
        kind=RecordKind(row.kind),
        role=cast(Role, row.role),
        name=share_text(row.name),
        body=share_text(row.body),
        meta=_meta_in(row.meta),
        content_sha256=share_text(row.content_sha256),
        sha256=row.sha256,
        created_at=row.created_at,
    )


def end_of(row: models.Record | NewRow) -> End:
    """Return the end of a conversation whose newest record is this row."""
    return End(segment=row.segment, seq=row.seq, sha256=row.sha256, totals=totals_of(row))


def totals_of(row: models.Record | NewRow) -> MessageTotals:
    """Return the totals of the history up to this row."""
    return MessageTotals(messages=row.messages, users=row.users, replies=row.replies)


def records_from(rows: Iterable[Any]) -> tuple[Record, ...]:
    """Return the records of rows, which may be a query."""
    if isinstance(rows, QuerySet):
        found = map(_Row._make, rows.values_list(*_Row._fields))
        return tuple(_record_of(row.pk, row) for row in found)
    return tuple(map(record_from, rows))


SHARED_METAS: Final = 4_096
"""How many metas are cached. Rows with equal metas then share one object."""

_NO_META: Final[Mapping[str, Any]] = MappingProxyType({})


def _meta_in(text: str) -> Mapping[str, Any]:
    """Return the meta of a row.

    Rows with equal metas share one object, because many NPCs hear the same line.
    """
    if text == "{}":
        return _NO_META
    return _known_meta(text) if len(text) <= SHARED_CHARACTERS else _meta(text)


def _meta(text: str) -> Mapping[str, Any]:
    return MappingProxyType(json.loads(text))


_known_meta: Final = lru_cache(maxsize=SHARED_METAS)(_meta)


def record_from(row: models.Record) -> Record:
    """Return the record of a row."""
    return _record_of(row.pk, row)


def records(ids: Iterable[str]) -> tuple[Record, ...]:
    """Return the records with these ids, in the order in which they were written."""
    rows = models.Record.objects.filter(pk__in=[int(wanted) for wanted in set(ids)])
    return records_from(rows.order_by("pk"))


def records_of(
    conversation: ConversationRef, *, limit_records: int | None = None
) -> tuple[Record, ...]:
    """Return the newest records of a conversation, oldest first. Without a limit, return all."""
    rows = models.Record.objects.filter(conversation_id=conversation.id)
    newest = list(rows.order_by("-segment", "-seq")[:limit_records])
    return records_from(reversed(newest))


def tool_called(conversation_id: int, call_id: str) -> str:
    """Return the name of the tool that a call used; "" if the conversation has no such call."""
    rows = models.Record.objects.filter(
        conversation_id=conversation_id, kind=RecordKind.TOOL_CALL, meta__contains=call_id
    )
    for meta in rows.values_list("meta", flat=True) if call_id else ():
        for call in json.loads(meta).get("tool_calls", ()):
            if call.get("id") == call_id:
                return str(call.get("name", ""))
    return ""


def records_at(conversation_id: int, places: Iterable[str]) -> Mapping[str, Record]:
    """Return the records of a conversation at these places, by place."""
    wanted = Q()
    by_segment: dict[int, list[int]] = {}
    for place in places:
        segment, _, seq = place.partition(".")
        by_segment.setdefault(int(segment), []).append(int(seq))
    for number, seqs in by_segment.items():
        wanted |= Q(segment=number, seq__in=seqs)
    rows = models.Record.objects.filter(wanted, conversation_id=conversation_id)
    return {record.place: record for record in records_from(rows)} if by_segment else {}


def count_records(conversation: ConversationRef) -> int:
    """Return how many records a conversation has."""
    return models.Record.objects.filter(conversation_id=conversation.id).count()
