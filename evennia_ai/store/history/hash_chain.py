"""Chains: whether the records of a conversation are still what was written.

Every record's hash covers the one before it, through all segments; erased records keep their place
in the chain, and a later record tells of the erasure. Somebody who may write the database can take
the newest records away, or hash all of them anew; no chain tells that.
"""

from dataclasses import dataclass

from evennia_ai import models
from evennia_ai.history.records import RecordKind, first_broken
from evennia_ai.models import ERASED_META
from evennia_ai.store.history.conversations import ConversationRef
from evennia_ai.store.history.record_rows import record_from

_CHUNK = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """The first record that is not what was written, or follows one that is not."""

    id: str
    place: str
    """Its segment and number."""
    problem: str
    """What is wrong with it."""

    def __str__(self) -> str:
        return f"record {self.id} (number {self.place}): {self.problem}"


def verify(conversation: ConversationRef) -> Broken | None:
    """What is broken in the conversation, None where its chain holds from end to end."""
    rows = models.Record.objects.filter(conversation_id=conversation.id)
    before, expected = "", (1, 1)
    untold: models.Record | None = None  # the first that is erased while no later record tells it
    for row in rows.order_by("segment", "seq").iterator(chunk_size=_CHUNK):
        problem = _problem(row, before, expected)
        if problem:
            return _broken(row, problem)
        if row.kind == RecordKind.ERASURE:
            untold = None
        elif row.meta == ERASED_META:
            untold = untold or row
        before, expected = row.sha256, (row.segment, row.seq + 1)
    if untold is not None:
        return _broken(untold, "its words are gone, and no record tells of an erasure")
    return None


def length(conversation: ConversationRef) -> int:
    """How many records the conversation has."""
    return models.Record.objects.filter(conversation_id=conversation.id).count()


def _broken(row: models.Record, problem: str) -> Broken:
    return Broken(id=str(row.pk), place=f"{row.segment}.{row.seq}", problem=problem)


def _problem(row: models.Record, before: str, expected: tuple[int, int]) -> str:
    """What is wrong with a row after one of the hash `before`, "" where nothing is."""
    segment, seq = expected
    if (row.segment, row.seq) not in ((segment, seq), (segment + 1, 1)):
        return f"the records between number {segment}.{seq} and this one are missing"
    try:
        record = record_from(row)
    except ValueError:
        return "its kind or its meta is none that was ever written"
    if first_broken([record], previous=before):
        return "its hash does not cover what it says or what stands before it"
    return ""
