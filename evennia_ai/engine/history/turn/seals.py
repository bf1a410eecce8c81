"""Seals: hashes of finished turns, stored in records so that later changes are noticed.

The manifest of a turn is stored in the database row of the turn, which no record's hash covers. So
the record that ends a turn contains the turn's seal: the hash of the row's content. Anyone who
changes the row later would have to change that record too, and with it the hash of every later
record.

An erasure removes words from finished turns. Its record holds new seals for these turns, which
replace the old ones. A game that imports a transcript gives its turns other numbers, and records
are never changed. So the import ends with a record that lists the new numbers.

A seal names records by their places, which are the same in every database.
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
"""The key in a record's meta for the seal (hash) of the turn that the record ends."""
SEALS: Final = "seals"
"""The key in the meta of an erasure or import for new seals of turns, by turn number."""
OF_TRANSCRIPT: Final = "transcript"
"""The value of `of` in the meta of the record that ends an import of a transcript."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PortableTurn:
    """A turn in a form that is the same in every database: records are named by places."""

    number: int
    state: str
    event: str | None
    """The place of the record to which the turn replies, None if there is none."""
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
        """Return the integrity seal of the turn: a hash of all its facts except its number."""
        return sha256(canonical_json(self.to_plain()).encode()).hexdigest()


def import_record(
    old_numbers: Sequence[int], *, first_number: int, seals: Mapping[int, str]
) -> NewRecord:
    """Return the record that ends the import of a transcript's turns.

    Args:
        old_numbers: The numbers of the turns in the transcript, in its order.
        first_number: The new number of the first of these turns; the others follow it.
        seals: Seals of turns that the import ended, by their new numbers.
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
    """The seals (hashes) of a conversation's turns, collected from its records in order."""

    _found: dict[int, tuple[str, Record]] = field(default_factory=dict)

    def add_record(self, record: Record) -> None:
        """Add the seals of turns that a record contains.

        Raises:
            ValueError: The record's meta has a form that the game never writes.
        """
        meta = record.meta
        try:
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
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(
                "the integrity seals in its meta have a form that the game never writes"
            ) from error

    def sealing_record(self, number: int) -> Record | None:
        """Return the record that contains the seal of this turn, or None."""
        found = self._found.get(number)
        return None if found is None else found[1]

    def problem_of(self, turn: PortableTurn) -> str:
        """Return why a turn does not match its seal; "" if it matches."""
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
        """Return the first turn number that has a seal and is not among `numbers`, or None."""
        return min((number for number in self._found if number not in numbers), default=None)


def _new_seals(meta: Mapping[str, Any], record: Record) -> dict[int, tuple[str, Record]]:
    return {int(number): (str(seal), record) for number, seal in meta[SEALS].items()}
