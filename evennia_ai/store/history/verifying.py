"""Check that the rows of a conversation were not changed after they were written.

Every record's hash covers the record before it, through all segments. Erased records keep their
place in the chain, and a later record reports the erasure. Each ended turn has a seal in the chain
(`evennia_ai.engine.history.turn.seals`), and each seal has its turn. A chain has limits: somebody
who can write to the database could remove the newest records, or compute all hashes again.
"""

from dataclasses import dataclass
from typing import Final

from evennia_ai import models
from evennia_ai.engine.history.records import Record, RecordKind, find_broken
from evennia_ai.engine.history.turn.seals import Seals
from evennia_ai.store.history.record_rows import ConversationRef, record_from
from evennia_ai.store.history.sealing import seal_problem

_CHUNK: Final = 1000
_CHUNK_OF_TURNS: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """The first record or turn of a conversation that was changed after it was written."""

    problem: str
    """What is wrong with the record or turn."""
    id: str = ""
    """The id of the record. For a turn, the id of the record with its seal, or ""."""
    place: str = ""
    """The segment and the number of this record."""
    turn: int | None = None
    """The number of the turn; None if a record is wrong."""

    def __str__(self) -> str:
        if self.turn is not None:
            return f"turn {self.turn}: {self.problem}"
        return f"record {self.id} (number {self.place}): {self.problem}"


def verify(conversation: ConversationRef) -> Broken | None:
    """Return the first problem of a conversation, or None if nothing was changed."""
    rows = models.Record.objects.filter(conversation_id=conversation.id)
    seals, places = Seals(), dict[str, str]()
    before, expected = "", (1, 1)
    # The first erased record for which no later record reports an erasure.
    untold: Record | None = None
    for row in rows.order_by("segment", "seq").iterator(chunk_size=_CHUNK):
        place = f"{row.segment}.{row.seq}"
        if (row.segment, row.seq) not in (expected, (expected[0] + 1, 1)):
            missing = "the records between number {}.{} and this one are missing".format(*expected)
            return Broken(id=str(row.pk), place=place, problem=missing)
        try:
            record = record_from(row)
            seals.add_record(record)
        except ValueError:
            unknown = "its kind or its meta cannot be read"
            return Broken(id=str(row.pk), place=place, problem=unknown)
        if find_broken([record], previous=before):
            changed = "its hash does not match its content or the record before it"
            return Broken(id=record.id, place=place, problem=changed)
        if record.kind is RecordKind.ERASURE:
            untold = None
        elif record.is_erased:
            untold = untold or record
        places[record.id] = place
        before, expected = record.sha256, (record.segment, record.seq + 1)
    if untold is not None:
        gone = "its words are gone, and no record of an erasure follows"
        return Broken(id=untold.id, place=untold.place, problem=gone)
    return _broken_turn(conversation, seals, places)


def _broken_turn(
    conversation: ConversationRef, seals: Seals, places: dict[str, str]
) -> Broken | None:
    """Return the first turn that differs from its seal, or None."""
    rows = models.Turn.objects.filter(conversation_id=conversation.id)
    numbers: set[int] = set()
    for row in rows.select_related("conversation").order_by("number").iterator(_CHUNK_OF_TURNS):
        numbers.add(row.number)
        if problem := seal_problem(row, seals, places):
            return _broken_record(seals, row.number, problem)
    gone = seals.first_without_turn(numbers)
    if gone is None:
        return None
    return _broken_record(seals, gone, "a record holds its seal, but the turn is missing")


def _broken_record(seals: Seals, number: int, problem: str) -> Broken:
    record = seals.sealing_record(number)
    if record is None:
        return Broken(turn=number, problem=problem)
    return Broken(turn=number, problem=problem, id=record.id, place=record.place)
