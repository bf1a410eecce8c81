"""Rows of records: plain values to rows and back.

Where a conversation ends is a value of its own, so that what is appended is numbered and chained
without reading anything.
"""

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction

from evennia_ai import models
from evennia_ai.history.projection import MessageTotals
from evennia_ai.history.records import (
    NewRecord,
    Record,
    RecordKind,
    canonical_json,
    content_sha256,
    linked_sha256,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """The end of a conversation."""

    segment: int = 1
    seq: int = 0
    """The number of its newest record in the segment."""
    sha256: str = ""
    """The hash of that record."""
    totals: MessageTotals = field(default_factory=MessageTotals)
    """Those of its history up to there."""

    def next_segment(self) -> "End":
        """The same end, after which another segment begins; the chain goes on."""
        return End(segment=self.segment + 1, sha256=self.sha256, totals=self.totals)


def rows_after(end: End, conversation_id: int, new: Sequence[NewRecord]) -> list[models.Record]:
    """`new` as rows that follow `end`."""
    rows = []
    now = time.time()
    digest, totals = end.sha256, end.totals
    for seq, new_one in enumerate(new, start=end.seq + 1):
        content = content_sha256(new_one)
        digest = linked_sha256(digest, kind=new_one.kind, role=new_one.role, content=content)
        totals = totals.after(new_one)
        record = Record(
            id="",
            conversation=conversation_id,
            segment=end.segment,
            seq=seq,
            kind=new_one.kind,
            role=new_one.role,
            name=new_one.name,
            body=new_one.body,
            meta=new_one.meta,
            content_sha256=content,
            sha256=digest,
            created_at=now,
        )
        rows.append(row_of(record, totals))
    return rows


def row_of(record: Record, totals: MessageTotals) -> models.Record:
    """A record that has no id yet as a row; `totals` are those of the history up to it."""
    return models.Record(
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


def insert(rows: Sequence[models.Record]) -> list[models.Record]:
    """The rows, written; IntegrityError: another writer took one of their numbers."""
    with transaction.atomic():
        return models.Record.objects.bulk_create(rows)


def end_of(row: models.Record) -> End:
    """The end of a conversation whose newest record is this row."""
    return End(segment=row.segment, seq=row.seq, sha256=row.sha256, totals=totals_of(row))


def totals_of(row: models.Record) -> MessageTotals:
    """The totals of the history up to this row."""
    return MessageTotals(messages=row.messages, users=row.users, replies=row.replies)


def records_from(rows: Iterable[Any]) -> tuple[Record, ...]:
    """The values of rows."""
    return tuple(map(record_from, rows))


def record_from(row: models.Record) -> Record:
    """The value of a row."""
    return Record(
        id=str(row.pk),
        conversation=row.conversation_id,
        segment=row.segment,
        seq=row.seq,
        kind=RecordKind(row.kind),
        role=row.role,
        name=row.name,
        body=row.body,
        meta=json.loads(row.meta),
        content_sha256=row.content_sha256,
        sha256=row.sha256,
        created_at=row.created_at,
    )
