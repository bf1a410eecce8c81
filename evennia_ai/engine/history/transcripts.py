"""Transcripts: a conversation as lines of JSON, written and read without a database.

The first line describes the NPC and its partner. Then come the records in order, the turns, the
timers of lore, and a last line with the numbers of records and turns, so that a truncated file is
noticed. Records keep their hashes and are named by their places, which are the same in every
database.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from math import isfinite
from typing import Any, Final, NoReturn

from evennia_ai.engine.errors import FormatError, ReplayError
from evennia_ai.engine.history.projection import message_of
from evennia_ai.engine.history.records import (
    CONTROLS,
    LORE,
    MessageTotals,
    Record,
    RecordKind,
    canonical_json,
    find_broken,
    is_staying,
    make_storable,
)
from evennia_ai.engine.history.turn.manifest import TurnManifest, with_record_names, wrong_field
from evennia_ai.engine.history.turn.seals import PortableTurn, Seals
from evennia_ai.engine.lorebook.activation.timers import state_from
from evennia_ai.engine.prompt.messages import ROLES

FORMAT: Final = 2
KINDS: Final = ("room", "private")
STATES: Final = ("open", "done", "failed", "interrupted")
MOST_NAME: Final = 200
_TEXTS: Final = ("npc_ref", "partner_ref", "place_ref", "origin")
_RECORD: Final = ("kind", "role", "name", "body", "content_sha256", "sha256", "created_at")
_BEGINS_WITH_A_TAIL: Final = (RecordKind.SUMMARY, RecordKind.CONTROL)
_MADE_BADLY: Final = (AttributeError, KeyError, ReplayError, TypeError, ValueError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The first line of a transcript: its NPC, its partner or room, and how it began."""

    npc_ref: str
    kind: str
    partner_ref: str
    place_ref: str
    origin: str
    opened_at: float


def header_line(header: Header) -> str:
    """Return the first line of a transcript, which names the NPC and its partner or room."""
    return canonical_json({"transcript": FORMAT, **asdict(header)})


def record_line(record: Record) -> str:
    """Return the transcript line of one record."""
    fields = {name: getattr(record, name) for name in ("place", *_RECORD)}
    return canonical_json({**fields, "meta": dict(record.meta)})


def turn_line(turn: PortableTurn) -> str:
    """Return the transcript line of one turn of the NPC."""
    return canonical_json({"turn": turn.number, **turn.to_plain()})


def lore_line(state: Mapping[str, Any]) -> str:
    """Return the transcript line with the timers of lore."""
    return canonical_json({"lore_state": dict(state)})


def last_line(*, records: int, turns: int) -> str:
    """Return the line that ends a transcript."""
    return canonical_json({"records": records, "turns": turns})


@dataclass(slots=True)
class TranscriptReader:
    """A reader for a transcript, which checks each line against the earlier lines.

    Each method raises FormatError, which names the line, if a line is wrong.
    """

    number: int = 0
    before: str = ""
    segment: int = 1
    seq: int = 0
    totals: MessageTotals = field(default_factory=MessageTotals)
    lengths: dict[int, int] = field(default_factory=dict)
    seals: Seals = field(default_factory=Seals)
    numbers: list[int] = field(default_factory=list)
    """The numbers of the NPC's turns that were read so far."""

    def header(self, line: str | bytes) -> Header:
        """Parse the first line, which names the NPC and its partner or room."""
        values = self.line(line)
        if values.get("transcript") != FORMAT:
            self.refuse(f"this is not a transcript of format {FORMAT}")
        texts = {name: self._text(values, name, most=255) for name in _TEXTS}
        kind = self._one_of(values, "kind", KINDS)
        if bool(texts["partner_ref"]) == (kind == "room") or bool(texts["place_ref"]) != (
            kind == "room"
        ):
            self.refuse("a room needs only place_ref, a private conversation only partner_ref")
        return Header(**texts, kind=kind, opened_at=self._moment(values, "opened_at"))

    def record(self, values: Mapping[str, Any]) -> Record:
        """Parse the record in a line of a transcript.

        Its hash must match its content and the hash of the record before it.
        """
        segment, seq = self._next_place(values)
        record = Record(
            id="",
            conversation=0,
            segment=segment,
            seq=seq,
            kind=RecordKind(self._one_of(values, "kind", tuple(RecordKind))),
            role=self._one_of(values, "role", ROLES),  # type: ignore[arg-type]
            name=self._text(values, "name", most=MOST_NAME),
            body=self._text(values, "body"),
            meta=self._object(values, "meta"),
            content_sha256=self._text(values, "content_sha256", most=64),
            sha256=self._text(values, "sha256", most=64),
            created_at=self._moment(values, "created_at"),
        )
        if find_broken([record], previous=self.before):
            self.refuse(
                f"record {record.place} was changed: its hash does not match its content and the"
                " record before it; export the transcript from the game again"
            )
        self._check_meta(record)
        try:
            self.seals.add_record(record)
        except ValueError as error:
            self.refuse(f"record {record.place}: {error}")
        self.before, self.segment, self.seq = record.sha256, record.segment, record.seq
        self.lengths[record.segment] = record.seq
        self.totals = self.totals.after(record)
        return record

    def turn(self, values: Mapping[str, Any]) -> PortableTurn:
        """Parse the turn of the NPC in a line of a transcript.

        The records that it names, and the hash of the turn, must be in earlier lines.
        """
        event = values.get("event")
        if event is not None:
            self._known(event)
        ended_at = values.get("ended_at")
        turn = PortableTurn(
            number=self._count(values, "turn"),
            state=self._one_of(values, "state", STATES),
            event=event,
            manifest=self._manifest(values),
            outcome=self._text(values, "outcome"),
            created_at=self._moment(values, "created_at"),
            ended_at=None if ended_at is None else self._moment(values, "ended_at"),
        )
        if self.numbers and turn.number <= self.numbers[-1]:
            self.refuse(f"turn {turn.number} cannot follow turn {self.numbers[-1]}")
        if problem := self.seals.problem_of(turn):
            self.refuse(f"turn {turn.number}: {problem}; export the transcript from the game again")
        self.numbers.append(turn.number)
        return turn

    def end(self, values: Mapping[str, Any], *, records: int, turns: int) -> None:
        """Check that the last line counts as many records and turns as were read."""
        if (values.get("records"), values.get("turns")) != (records, turns):
            self.refuse(
                f"the last line must count {records} records and {turns} turns; lines are missing"
            )
        if (gone := self.seals.first_without_turn(self.numbers)) is not None:
            self.refuse(
                f"a record holds the seal of turn {gone}, but the line of that turn is missing"
            )

    def cut_short(self) -> NoReturn:
        """Raise the error for a transcript that ends before its last line."""
        self.refuse("the transcript is incomplete: its last line is missing; export it again")

    def line(self, line: str | bytes) -> Mapping[str, Any]:
        """Parse a line to JSON values. The key `record` or `turn` shows the kind of the line."""
        self.number += 1
        try:
            values = json.loads(line, parse_constant=_no_constant)
        except UnicodeDecodeError:
            self.refuse("this is not UTF-8 text")
        except (ValueError, RecursionError) as error:
            self.refuse(f"this is not JSON: {error}")
        if not isinstance(values, dict):
            self.refuse("must be a JSON object")
        return values

    def _next_place(self, values: Mapping[str, Any]) -> tuple[int, int]:
        found, segment, seq = values.get("place"), self.segment, self.seq + 1
        if found == f"{segment + 1}.1":
            return segment + 1, 1
        if found != f"{segment}.{seq}":
            self.refuse(f"record {segment}.{seq} must come here, not {str(found)[:40]!r}")
        return segment, seq

    def _check_meta(self, record: Record) -> None:
        """Check that all records named in a record's meta are in earlier lines."""
        meta = record.meta
        if is_staying(record) and meta.get("before") is not None:
            self._known(meta["before"])
        tail = meta.get("tail", [])
        if not isinstance(tail, list) or (tail and record.kind not in _BEGINS_WITH_A_TAIL):
            self.refuse(
                "meta.tail must be a list, and only a summary or control record may have it"
            )
        for place in tail:
            self._known(place)
        if record.kind is RecordKind.CONTROL and not record.is_erased:
            self._check_control(record, len(tail))
        try:
            message_of(record)
        except _MADE_BADLY:
            self.refuse(f"the meta of record {record.place} is not that of a message")

    def _check_control(self, record: Record, kept: int) -> None:
        """Check that a builder's control record begins a segment, and that its counts are valid."""
        totals = record.meta.get("totals")
        if record.seq != 1 or record.segment == 1:
            self.refuse("a control must be the first record of a later segment")
        if record.meta.get("what") not in CONTROLS:
            self.refuse(f"meta.what of a control must be one of {', '.join(CONTROLS)}")
        if not (isinstance(totals, list) and len(totals) == 3 and all(map(_is_count, totals))):
            self.refuse("meta.totals of a control must be three counts")
        if totals[0] < kept:
            self.refuse("meta.totals of a control must count at least its tail")
        try:
            state_from(record.meta.get(LORE, {}))
        except (AttributeError, TypeError, ValueError):
            self.refuse("meta.lore of a control is not a state of the lore")

    def _known(self, place: Any) -> None:
        segment, _, seq = place.partition(".") if isinstance(place, str) else ("", "", "")
        if not (segment.isdecimal() and seq.isdecimal()):
            self.refuse(f"{str(place)[:40]!r} is not the place of a record, such as 1.12")
        if not 1 <= int(seq) <= self.lengths.get(int(segment), 0):
            self.refuse(f"there is no record {place[:40]} before this line")

    def _manifest(self, values: Mapping[str, Any]) -> TurnManifest:
        plain = self._object(values, "manifest")
        try:
            manifest = TurnManifest.from_plain(plain)
            with_record_names(manifest, self._check_value)
            wrong = wrong_field(manifest)
            is_as_written = canonical_json(manifest.to_plain()) == canonical_json(plain)
        except _MADE_BADLY:
            self.refuse("manifest does not have the fields of a turn's manifest")
        if wrong is not None:
            self.refuse(f"manifest.{wrong} has a value that no turn writes")
        if not is_as_written:
            self.refuse("manifest does not have the fields of a turn's manifest")
        return manifest

    def _check_value(self, place: str) -> str:
        self._known(place)
        return place

    def _text(self, values: Mapping[str, Any], name: str, *, most: int | None = None) -> str:
        value = values.get(name)
        if not isinstance(value, str) or make_storable(value) != value:
            self.refuse(f"{name} must be a text without null characters")
        if most is not None and len(value) > most:
            self.refuse(f"{name} must have at most {most} characters, not {len(value)}")
        return value

    def _count(self, values: Mapping[str, Any], name: str) -> int:
        value = values.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            self.refuse(f"{name} must be a whole number of 1 or more")
        return value

    def _object(self, values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
        value = values.get(name)
        if not isinstance(value, dict):
            self.refuse(f"{name} must be a JSON object")
        return value

    def _one_of(self, values: Mapping[str, Any], name: str, known: tuple[str, ...]) -> str:
        value = values.get(name)
        if not isinstance(value, str) or value not in known:
            self.refuse(f"{name} must be one of {', '.join(known)}")
        return value

    def _moment(self, values: Mapping[str, Any], name: str) -> float:
        value = values.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
            self.refuse(f"{name} must be a time in seconds")
        return float(value)

    def refuse(self, problem: str) -> NoReturn:
        """Raise the error for the line of the transcript that was read last."""
        raise FormatError("transcript", f"line {self.number}: {problem}; nothing was imported")


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")
