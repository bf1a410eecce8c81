"""Seals: the hash of a finished turn, kept in the chain of records.

The manifest of a turn is a column of its row, and no record's hash covers a row. So the record that
ends a turn holds the turn's seal: the hash of all that the row says. Who changes the row afterwards
would have to change that record too, and with it the hash of every later record.

An erasure takes words out of finished turns. Its record holds the new seals of these turns, which
count from there on. A turn has another number in the game that imports its transcript, and records
are never changed; so the import ends with a record of the new numbers.

A seal calls records by their places, which are the same in every database.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

from evennia_ai.engine.history.records import (
    NewRecord,
    Record,
    RecordKind,
    canonical_json,
    content_sha256,
)
from evennia_ai.engine.history.turn.manifest import TurnManifest

SEAL: Final = "seal"
"""In the meta of the record that ends a turn: the turn's seal."""
SEALS: Final = "seals"
"""In the meta of an erasure or an import: new seals, by the numbers of their turns."""
OF_TRANSCRIPT: Final = "transcript"
"""In the meta of the record that ends an import: what the record is of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PortableTurn:
    """A turn as every database can read it: it calls records by their places."""

    number: int
    state: str
    event: str | None
    """The place of the record that the turn answers."""
    manifest: TurnManifest
    outcome: str
    created_at: float
    ended_at: float | None

    def to_plain(self) -> dict[str, Any]:
        """Return the turn as JSON values, without its number."""
        return {
            "state": self.state,
            "event": self.event,
            "manifest": self.manifest.to_plain(),
            "outcome": self.outcome,
            "created_at": self.created_at,
            "ended_at": self.ended_at,
        }

    @property
    def seal(self) -> str:
        """The hash of all that the turn says but its number."""
        return sha256(canonical_json(self.to_plain()).encode()).hexdigest()


def import_record(
    old_numbers: Sequence[int], *, first_number: int, seals: Mapping[int, str]
) -> NewRecord:
    """Return the record that ends an import of turns.

    Args:
        old_numbers: The numbers of the turns in the transcript, in its order.
        first_number: The number that the first of these turns has now; the others follow it.
        seals: Seals of turns that ended with the import, by their new numbers.
    """
    meta = {
        "of": OF_TRANSCRIPT,
        "first_turn": first_number,
        "turns": list(old_numbers),
        SEALS: {str(number): seal for number, seal in seals.items()},
    }
    return NewRecord(kind=RecordKind.SNAPSHOT, role="system", meta=meta)


@dataclass(slots=True)
class Seals:
    """The seals in the records of one conversation, read in the order of the records."""

    _found: dict[int, tuple[str, Record]] = field(default_factory=dict)

    def read(self, record: Record) -> None:
        """Take in the seals that a record holds.

        Raises:
            ValueError: The record has no meta that the game ever wrote.
        """
        try:
            self._take(record, record.meta)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError("the meta has seals that the game never wrote") from error

    def _take(self, record: Record, meta: Mapping[str, Any]) -> None:
        if record.kind is RecordKind.RUN_END and SEAL in meta:
            self._found[int(meta["turn"])] = (str(meta[SEAL]), record)
        elif record.kind is RecordKind.ERASURE and SEALS in meta:
            self._found.update(_new_seals(meta, record))
        elif record.kind is RecordKind.SNAPSHOT and meta.get("of") == OF_TRANSCRIPT:
            renumbered = {
                number: self._found[int(old)]
                for number, old in enumerate(meta["turns"], start=int(meta["first_turn"]))
                if int(old) in self._found
            }
            self._found = {**renumbered, **_new_seals(meta, record)}

    def record_of(self, number: int) -> Record | None:
        """Return the record that holds the seal of this turn, None if no record does."""
        found = self._found.get(number)
        return None if found is None else found[1]

    def problem_of(self, turn: PortableTurn) -> str:
        """Say what is wrong with a turn that has these seals, "" if nothing is."""
        found = self._found.get(turn.number)
        if turn.state == "open":
            return "" if found is None else f"record {found[1].place} ended it, and it is open"
        if found is None:
            return "it has ended, and no record holds its seal"
        seal, record = found
        if content_sha256(record) != record.content_sha256:
            return f"record {record.place}, which holds its seal, was changed in the database"
        if seal != turn.seal:
            return f"it was changed in the database: record {record.place} holds another seal"
        return ""

    def first_without_turn(self, numbers: Collection[int]) -> int | None:
        """Return the first number with a seal that is not among `numbers`."""
        return min((number for number in self._found if number not in numbers), default=None)


def _new_seals(meta: Mapping[str, Any], record: Record) -> dict[int, tuple[str, Record]]:
    return {int(number): (str(seal), record) for number, seal in meta[SEALS].items()}
