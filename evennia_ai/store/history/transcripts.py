"""Transcripts: export a whole conversation from a database, and import it into another.

Both work line by line, so only the ids of the records are kept in memory.
`evennia_ai.engine.history.transcripts` defines the lines.
"""

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.db.models import Max

from evennia_ai import models
from evennia_ai.engine.actors import Actor
from evennia_ai.engine.errors import StoreError
from evennia_ai.engine.history.transcripts import (
    Header,
    TranscriptReader,
    header_line,
    last_line,
    lore_line,
    record_line,
    turn_line,
)
from evennia_ai.engine.history.turn.manifest import with_record_names
from evennia_ai.engine.history.turn.seals import PortableTurn, Seals, import_record
from evennia_ai.engine.lorebook.activation.timers import LoreState, state_from
from evennia_ai.store.core.snapshots import one_change, value_of
from evennia_ai.store.history import conversations, turns
from evennia_ai.store.history.record_rows import (
    ConversationRef,
    End,
    NewRow,
    insert_records,
    record_from,
    ref_of,
    row_of,
    rows_after,
)
from evennia_ai.store.history.sealing import portable_turn
from evennia_ai.store.history.windows import lore_states, remember_lore

_CHUNK: Final = 500
WITHOUT_END: Final = "the transcript was made before the reply"
"""The outcome of a turn that was running when the transcript was written. It has no end record."""


def export_lines(conversation: ConversationRef) -> Iterator[str]:
    """Yield the lines of a conversation's transcript, without line ends.

    Rows are read as needed.

    The game may continue meanwhile. A turn that begins after the first line is left out. A turn
    that ends after its records were read is written as still running.

    Raises:
        ReplayError: a turn was changed after it was written; `verify` says more.
    """
    turns_of = models.Turn.objects.filter(conversation_id=conversation.id)
    newest_turn = turns_of.aggregate(newest=Max("pk"))["newest"] or 0
    yield header_line(value_of(Header, conversation))
    places, seals = dict[str, str](), Seals()
    ended: set[int] = set(turns_of.exclude(state="open").values_list("pk", flat=True))
    rows = models.Record.objects.filter(conversation_id=conversation.id)
    for row in rows.order_by("segment", "seq").iterator(chunk_size=_CHUNK):
        record = record_from(row)
        places[record.id] = record.place
        seals.add_record(record)
        yield record_line(record)
    count = 0
    written = turns_of.filter(pk__lte=newest_turn).order_by("number")
    for turn in written.iterator(chunk_size=_CHUNK):
        count += 1
        portable = portable_turn(turn, places)
        if turn.pk not in ended and seals.sealing_record(turn.number) is None:
            portable = replace(portable, state="open", outcome="", ended_at=None)
        yield turn_line(portable)
    yield lore_line(lore_states(conversation.id).to_plain())
    yield last_line(records=len(places), turns=count)


def import_lines(lines: Iterable[str | bytes], *, npc_ref: str, by: Actor) -> ConversationRef:
    """Import a conversation for an NPC. Its history is the same, byte for byte.

    Its turns get numbers after those that the NPC has. If an error is raised, nothing was written.

    Args:
        lines: Text, or bytes in UTF-8.

    Raises:
        FormatError: a line is wrong or the chain of the records is broken.
        StoreError: the NPC already has a conversation with this partner or in this room.
    """
    reader, source = TranscriptReader(), iter(lines)
    header = reader.header(next(source, ""))
    first_number = turns.next_number(npc_ref)
    with one_change(f"importing a conversation of NPC {npc_ref}", by=by):
        conversation = _new_conversation(header, npc_ref)
        taken = _Taken(conversation, reader)
        for line in source:
            if taken.is_ended:
                reader.refuse("nothing may come after the line that ends a transcript")
            taken.take(reader.line(line))
        if not taken.is_ended:
            reader.cut_short()
        taken.write_turns(first_number)
        conversations.note_written(conversation)
    return conversation


class _Taken:
    """The state of an import while it runs."""

    def __init__(self, conversation: ConversationRef, reader: TranscriptReader) -> None:
        self.is_ended = False
        self._conversation = conversation
        self._reader = reader
        self._rows: list[NewRow] = []
        self._ids: dict[str, str] = {}
        self._turns: list[PortableTurn] = []
        self._lore = LoreState()

    def take(self, told: Any) -> None:
        """Import one line."""
        if "place" in told and not self._turns:
            self._take_record(told)
        elif "turn" in told:
            self._flush()
            self._turns.append(self._reader.turn(told))
        elif "lore_state" in told:
            self._lore = self._lore_state(told["lore_state"])
        else:
            self._flush()
            self._reader.end(told, records=len(self._ids), turns=len(self._turns))
            self.is_ended = True

    def write_turns(self, first_number: int) -> None:
        """Write the turns, a record of the import, and the state of the lore."""
        now, written, sealed_now = time.time(), [], {}
        for number, turn in enumerate(self._turns, start=first_number):
            ended = turn
            if turn.state == "open":
                ended = replace(turn, state="interrupted", outcome=WITHOUT_END, ended_at=now)
                sealed_now[number] = ended.seal
            written.append(self._turn_row(ended, number=number))
        models.Turn.objects.bulk_create(written, batch_size=_CHUNK)
        turns.note_turns_written(self._conversation.npc_ref)
        if self._turns:
            numbers = self._reader.numbers
            record = import_record(numbers, first_number=first_number, seals=sealed_now)
            insert_records(rows_after(self._end_of_records, self._conversation.id, [record]))
        if self._lore != LoreState():
            last_number = first_number + len(written) - 1
            remember_lore(self._conversation, self._lore, turn=last_number)

    @property
    def _end_of_records(self) -> End:
        read = self._reader
        return End(segment=read.segment, seq=read.seq, sha256=read.before, totals=read.totals)

    def _take_record(self, told: Any) -> None:
        record = replace(self._reader.record(told), conversation=self._conversation.id)
        self._rows.append(row_of(record, self._reader.totals))
        if len(self._rows) == _CHUNK:
            self._flush()

    def _flush(self) -> None:
        for record in insert_records(self._rows):
            self._ids[record.place] = record.id
        self._rows = []

    def _lore_state(self, told: Any) -> LoreState:
        try:
            return state_from(told)
        except (AttributeError, TypeError, ValueError):
            self._reader.refuse("lore_state is not a valid lore state")

    def _turn_row(self, turn: PortableTurn, *, number: int) -> models.Turn:
        manifest = with_record_names(turn.manifest, self._ids.__getitem__)
        return models.Turn(
            npc_ref=self._conversation.npc_ref,
            number=number,
            conversation_id=self._conversation.id,
            event_record_id=int(self._ids[turn.event]) if turn.event else None,
            state=turn.state,
            manifest=manifest.to_row(),
            is_erased=manifest.has_erasures,
            prompt_sha256=manifest.sha256,
            tokens=manifest.tokens,
            cut=manifest.cut,
            model=manifest.model,
            outcome=turn.outcome,
            created_at=turn.created_at,
            ended_at=turn.ended_at,
        )


def _new_conversation(header: Header, npc_ref: str) -> ConversationRef:
    row = models.Conversation(
        npc_ref=npc_ref,
        kind=header.kind,
        partner_ref=header.partner_ref,
        place_ref=header.place_ref,
        origin=header.origin[:64],
        opened_at=header.opened_at,
    )
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError as error:
        raise StoreError(
            f"NPC {npc_ref} already has a {header.kind} conversation with"
            f" {header.partner_ref or header.place_ref}, and a transcript makes a new one;"
            " import it for another NPC; nothing was imported"
        ) from error
    return ref_of(row)
