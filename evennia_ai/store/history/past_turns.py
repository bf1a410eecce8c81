"""Read past turns: with the histories that they were composed from, and as pages of a list.

Turns are read one by one, so a walk through a hundred thousand turns keeps one in memory. Most
walks go forward: the records of a segment are read once, and dropped when no later turn shows them.
This module also finds recent events without a turn, which remain when a process stops.
"""

import json
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Exists, OuterRef, Q, Subquery

from evennia_ai import models
from evennia_ai.engine.errors import ReplayError
from evennia_ai.engine.history.projection import message_of, project_records, release_records
from evennia_ai.engine.history.records import BOOKKEEPING, Record, RecordKind, is_staying
from evennia_ai.engine.history.turn.manifest import record_ids_in_row
from evennia_ai.engine.history.turn.replay import Replay, replay_turn
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.messages import Message
from evennia_ai.models import ERASED_META
from evennia_ai.store.core.snapshots import one_transaction, value_of
from evennia_ai.store.history.conversations import conversations_of
from evennia_ai.store.history.record_rows import (
    ConversationRef,
    record_from,
    records,
    records_at,
    records_from,
    ref_of,
)
from evennia_ai.store.history.sealing import problem_of_turn
from evennia_ai.store.history.turns import StoredTurn, turn_from, turn_rows

_CHUNK: Final = 200

_MOST_OPEN: Final = 16
_WORDS: Final = tuple(
    kind.value for kind in (RecordKind.ASSISTANT, RecordKind.FALLBACK, RecordKind.SPOKEN)
)
_ACTS: Final = (*_WORDS, RecordKind.TOOL_CALL.value)
MOST_LOOKED_AT: Final = 2000
"""How many of the newest records are searched for recent words and arrivals."""


def replay_stored_turn(turn: StoredTurn, found: Iterable[Record] | None = None) -> Replay:
    """Rebuild the messages that a past turn sent, and check the turn against its seal.

    Args:
        found: The records that the turn sent, if the caller has read them already.
    """
    if found is None:
        found = records(turn.manifest.sent_ids)
    rebuilt = replay_turn(turn.manifest, found)
    if rebuilt.problem:
        return rebuilt
    problem = problem_of_turn(turn.id)
    return Replay(sha256=rebuilt.sha256, problem=problem) if problem else rebuilt


_MOST_LAST: Final = 8
"""Among how many of the last messages of a prompt the facts of the turn are looked for."""


def facts_of_turns(
    conversation: ConversationRef, numbers: Iterable[int]
) -> Mapping[int, tuple[Record, ...]]:
    """Return the records with the facts that ended the prompts of these turns, by turn."""
    rows = models.Turn.objects.filter(conversation_id=conversation.id, number__in=[*numbers])
    last = {
        number: record_ids_in_row(manifest)[-_MOST_LAST:]
        for number, manifest in rows.values_list("number", "manifest")
    }
    blocks = models.Record.objects.filter(
        pk__in={int(one) for ids in last.values() for one in ids},
        kind=RecordKind.CONTEXT_BLOCK.value,
    )
    found = {record.id: record for record in records_from(blocks)}
    return {
        number: tuple(found[one] for one in ids if one in found) for number, ids in last.items()
    }


def newest_turns(npc_ref: str, count: int) -> tuple[StoredTurn, ...]:
    """Return at most `count` newest turns of an NPC, oldest first."""
    rows = list(turn_rows(npc_ref).order_by("-number")[:count])
    return tuple(turn_from(row) for row in reversed(rows))


def turn_before(turn: StoredTurn) -> StoredTurn | None:
    """Return the turn before this one in the same conversation, or None."""
    rows = turn_rows(turn.npc_ref).filter(
        conversation_id=turn.conversation.id, number__lt=turn.number
    )
    row = rows.order_by("-number").first()
    return None if row is None else turn_from(row)


def acts_of(turn: StoredTurn) -> tuple[Record, ...]:
    """Return the NPC's words, tool calls and results in a turn, in order.

    The result is empty while the model is still working.
    """
    rows = models.Record.objects.filter(
        conversation_id=turn.conversation.id,
        created_at__gte=turn.created_at,
        kind__in=(*_ACTS, RecordKind.TOOL_RESULT.value),
    )
    later = turn_rows(turn.npc_ref).filter(
        conversation_id=turn.conversation.id, number__gt=turn.number
    )
    next_begins = later.order_by("number").values_list("created_at", flat=True).first()
    if next_begins is not None:
        rows = rows.filter(created_at__lt=next_begins)
    return records_from(rows.order_by("pk"))


def newest_words(npc_ref: str) -> Iterator[Record]:
    """Yield what an NPC said or did, newest first, among its newest `MOST_LOOKED_AT` records."""
    own = [known.id for known in conversations_of(npc_ref)]
    rows = models.Record.objects.filter(conversation_id__in=own, kind__in=_WORDS)
    for row in rows.order_by("-pk")[:MOST_LOOKED_AT]:
        yield record_from(row)


def turn_of_words(npc_ref: str, words: Record) -> StoredTurn | None:
    """Return the turn in which an NPC said the words of a record, or None if none is stored."""
    rows = turn_rows(npc_ref).filter(
        conversation_id=words.conversation, created_at__lte=words.created_at
    )
    row = rows.order_by("-number").first()
    return None if row is None else turn_from(row)


def count_of_turns(npc_ref: str) -> int:
    """Return how many turns an NPC had."""
    return turn_rows(npc_ref).count()


def turns_in_order(npc_ref: str, *, newest: int | None = None) -> Iterator[StoredTurn]:
    """Yield the turns of an NPC, oldest first.

    If `newest` is given, only this many of the newest turns.
    """
    rows = turn_rows(npc_ref)
    if newest is not None:
        numbers = rows.order_by("-number").values_list("number", flat=True)
        first = next(iter(numbers[newest - 1 : newest]), None) if newest > 0 else None
        if first is not None:
            rows = rows.filter(number__gte=first)
    after = 0
    while True:
        chunk = list(rows.filter(number__gt=after).order_by("number")[:_CHUNK])
        yield from map(turn_from, chunk)
        if len(chunk) < _CHUNK:
            return
        after = chunk[-1].number


def newest_numbers(npc_ref: str, *, most: int) -> tuple[int, ...]:
    """Return the numbers of the newest turns of an NPC, newest first."""
    return tuple(turn_rows(npc_ref).order_by("-number").values_list("number", flat=True)[:most])


def npc_refs() -> tuple[str, ...]:
    """Return the references of all NPCs that ever had a turn."""
    found = models.Turn.objects.order_by("npc_ref").values_list("npc_ref", flat=True)
    return tuple(found.distinct())


class PastHistories:
    """A reader of the histories of past turns.

    It is fast if it is used in the order of the turns.
    """

    def __init__(self) -> None:
        self._open: OrderedDict[tuple[int, int], _Segment] = OrderedDict()

    def history(
        self, conversation_id: int, told: Mapping[str, Any], *, event: str, newest_record: int
    ) -> History:
        """Return the history that the inputs of a manifest describe.

        Args:
            told: The entry `history` of the manifest's inputs.
            event: The id of the record that the turn answered.
            newest_record: The number of the newest record at that time.

        Raises:
            ReplayError: a record of the history is missing or erased.
        """
        segment = self._segment(conversation_id, told["segment"])
        messages = segment.messages(told, event=event, newest_record=newest_record)
        earlier, users, replies = told["earlier"]
        return History(
            messages,
            earlier=earlier,
            earlier_users=users,
            earlier_replies=replies,
            segment=told["segment"],
        )

    def event(self, conversation_id: int, segment: int, record_id: str) -> Message:
        """Return the record that a turn answered, as a message."""
        record = self._segment(conversation_id, segment).record(record_id)
        message = message_of(record)
        if message is None:
            raise ReplayError(f"record {record_id}, which the turn answered, was erased")
        return message

    def _segment(self, conversation_id: int, number: int) -> "_Segment":
        key = (conversation_id, number)
        if key not in self._open:
            self._open[key] = _Segment(conversation_id, number)
            while len(self._open) > _MOST_OPEN:
                self._open.popitem(last=False)
        self._open.move_to_end(key)
        return self._open[key]


class _Segment:
    """The records of one segment from some number on, as far as they have been read."""

    def __init__(self, conversation_id: int, number: int) -> None:
        self._conversation_id = conversation_id
        self._number = number
        self._records: list[Record] = []
        self._from = self._upto = 0
        self._tail: Mapping[str, Record] = {}

    def __del__(self) -> None:
        """Release the records, because a record and its message refer to each other."""
        release_records(self._records)
        release_records(self._tail.values())

    def record(self, record_id: str) -> Record:
        for record in reversed(self._records):
            if record.id == record_id:
                return record
        return _one(record_id)

    def messages(self, told: Mapping[str, Any], *, event: str, newest_record: int) -> list[Message]:
        joined: list[str] = told.get("joined", [])
        ends = [told["first"], told["last"]] if told["first"] is not None else []
        if not (needed := [*ends, *joined]):
            return []
        self._read(min(map(self._start, needed)), newest_record)
        records = [record for record in self._records if record.seq <= newest_record]
        shown = list(project_records(records, tail=self._tail, segment=self._number))
        at = {message.record: index for index, message in enumerate(shown)}
        for wanted in needed:
            if wanted not in at:
                raise ReplayError(f"record {wanted} of the turn's history is gone or erased")
        left_out = {*told["left_out"], event, *joined}
        history = shown[at[ends[0]] : at[ends[1]] + 1] if ends else []
        kept = [message for message in history if message.record not in left_out]
        return [*kept, *(shown[at[one]] for one in joined)]

    def _start(self, first: str) -> int:
        """Return the number of the first record to read.

        It is 1 if the segment begins by keeping older records.
        """
        record = self.record(first)
        place = record.meta.get("before") if is_staying(record) else None
        segment, _, seq = (place or record.place).partition(".")
        return int(seq) if int(segment) == self._number else 1

    def _read(self, first: int, last: int) -> None:
        """Load the records from `first` to `last`, and drop those before `first`."""
        if not self._from or first < self._from:
            release_records(self._records)
            self._records, self._from, self._upto = [], first, first - 1
        elif first > self._from:
            release_records(record for record in self._records if record.seq < first)
            self._records = [record for record in self._records if record.seq >= first]
            self._from = first
        if last > self._upto:
            self._records += records_from(self._rows(max(self._upto, first - 1), last))
            self._upto = last
        if first == 1 and self._records and not self._tail:
            kept = self._records[0].meta.get("tail", ())
            self._tail = records_at(self._conversation_id, kept) if kept else {}

    def _rows(self, after: int, last: int) -> Any:
        rows = models.Record.objects.filter(
            conversation_id=self._conversation_id,
            segment=self._number,
            seq__gt=after,
            seq__lte=last,
        )
        return rows.order_by("seq")


def _one(record_id: str) -> Record:
    row = models.Record.objects.filter(pk=int(record_id)).first()
    if row is None:
        raise ReplayError(f"record {record_id} is missing")
    return record_from(row)


def unanswered_words(*, since: float, before: float) -> list[tuple[ConversationRef, Record]]:
    """Return what people said between two times and no NPC answered, in order.

    What they said before a line that the NPC answered is left out, since one answer may be for
    several lines.

    Raises:
        StoreError: the records cannot be read.
    """
    with one_transaction("looking for unanswered words"):
        newest = models.Record.objects.order_by("-pk").values_list("pk", "kind", "created_at")
        said = [
            pk
            for pk, kind, created_at in newest[:MOST_LOOKED_AT]
            if kind == RecordKind.USER.value and since <= created_at < before
        ]
        turns = models.Turn.objects.filter(event_record_id__in=said)
        answered = {turn.event_record_id for turn in turns if not _came_to_nothing(turn)}
        rows = models.Record.objects.filter(pk__in=said).select_related("conversation")
        left: dict[tuple[int, Any], list[tuple[ConversationRef, Record]]] = {}
        for row in rows.order_by("pk"):
            record = record_from(row)
            of_speaker = left.setdefault((row.conversation_id, record.meta.get("speaker")), [])
            if row.pk in answered:
                of_speaker.clear()
            else:
                of_speaker.append((ref_of(row.conversation), record))
    found = (one for of_speaker in left.values() for one in of_speaker)
    return sorted(
        ((where, record) for where, record in found if not record.is_erased),
        key=lambda one: int(one[1].id),
    )


def arrivals_since(*, since: float) -> list[tuple[ConversationRef, Record]]:
    """Return the arrivals that NPCs perceived since a time, in order.

    Raises:
        StoreError: they cannot be read.
    """
    with one_transaction("looking for arrivals"):
        newest = models.Record.objects.order_by("-pk").values_list("pk", "kind", "created_at")
        seen = [
            pk
            for pk, kind, created_at in newest[:MOST_LOOKED_AT]
            if kind == RecordKind.EVENT.value and created_at >= since
        ]
        rows = models.Record.objects.filter(pk__in=seen, meta__contains='"event":"arrive"')
        rows = rows.select_related("conversation").order_by("pk")
        return [(ref_of(row.conversation), record_from(row)) for row in rows]


def _came_to_nothing(turn: models.Turn) -> bool:
    """True if the server stopped during a turn before the NPC had done anything.

    An NPC has one turn at a time, so the records between begin and end belong to this turn.
    """
    if turn.state != "interrupted":
        return False
    meanwhile = models.Record.objects.filter(
        conversation_id=turn.conversation_id,
        created_at__gte=turn.created_at,
        created_at__lte=turn.ended_at or turn.created_at,
    )
    return not meanwhile.filter(kind__in=_ACTS).exists()


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnLine:
    """One turn as a line of a list."""

    npc_ref: str
    number: int
    state: str
    outcome: str
    model: str
    tokens: int
    """The tokens of the turn's prompt, as the game counted them."""
    created_at: float
    ended_at: float | None
    """The end of the turn; None while it is running."""
    event: str = ""
    """The name of the event that the turn answers; "" if it is unknown."""
    speaker: str = ""
    """The name of the person who caused the event; "" if it is unknown."""

    @property
    def seconds(self) -> float | None:
        """How long the turn took; None while it is running."""
        return None if self.ended_at is None else self.ended_at - self.created_at


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPage:
    """One page of the list of an NPC's turns, newest first."""

    turns: tuple[TurnLine, ...]
    since: float
    """Things after this time belong on this page. It is 0 on the oldest page."""
    until: float
    """Things before this time belong on this page. It is infinite on page 1."""
    has_older: bool


def newest_of_each(npc_refs: Iterable[str]) -> Mapping[str, TurnLine]:
    """Return the newest turn of each of these NPCs, with two queries.

    NPCs without turns are left out.
    """
    mine = models.Turn.objects.filter(npc_ref=OuterRef("npc_ref")).order_by("-number")
    spoke = models.Conversation.objects.filter(npc_ref__in=list(npc_refs)).order_by()
    newest = spoke.annotate(newest=Subquery(mine.values("pk")[:1])).values_list("newest", flat=True)
    keys = [key for key in newest.distinct() if key is not None]
    rows = models.Turn.objects.filter(pk__in=keys).defer("manifest")
    return {row.npc_ref: _line(row) for row in rows}


@dataclass(frozen=True, slots=True, kw_only=True)
class LastWords:
    """What an NPC said last in the conversation of its newest turn."""

    record: Record
    speaker: str
    """The name of the person whom it answered; "" if that is unknown."""
    is_private: bool
    """True if it was whispered."""


def last_words_of(lines: Iterable[TurnLine]) -> Mapping[str, LastWords]:
    """Return the last words of the NPC of each of these turns, with two queries.

    Args:
        lines: The newest turns of some NPCs.
    """
    wanted = Q()
    for line in lines:
        wanted |= Q(npc_ref=line.npc_ref, number=line.number)
    if not wanted:
        return {}
    spoken = models.Record.objects.filter(
        conversation_id=OuterRef("conversation_id"), kind__in=_WORDS
    ).order_by("-segment", "-seq")
    found = list(
        models.Turn.objects.filter(wanted)
        .annotate(said=Subquery(spoken.values("pk")[:1]))
        .values_list("npc_ref", "said", "created_at", "event_record__name", "conversation__kind")
    )
    by_id = {one.id: one for one in records(str(pk) for _, pk, *_ in found if pk)}
    words: dict[str, LastWords] = {}
    for ref, pk, begun_at, speaker, kind in found:
        if (record := by_id.get(str(pk))) is not None and not record.is_erased:
            is_of_turn = record.created_at >= begun_at
            words[ref] = LastWords(
                record=record,
                speaker=speaker if speaker and is_of_turn else "",
                is_private=kind == "private",
            )
    return words


def had_turn(npc_ref: Any) -> Exists:
    """Return a query condition: the NPC in the column `npc_ref` has had a turn."""
    return Exists(models.Turn.objects.filter(npc_ref=npc_ref))


def refs_since(since: float, *, most: int) -> frozenset[str]:
    """Return the NPCs that have had a turn since a time, by the newest `most` turns of all NPCs."""
    rows = models.Turn.objects.order_by("-pk").values_list("npc_ref", "created_at")[:most]
    return frozenset(ref for ref, created_at in rows if created_at >= since)


def refs_failed(*, most: int) -> frozenset[str]:
    """Return the NPCs whose last turn failed or was interrupted, at most `most`, by newest turn."""
    later = models.Turn.objects.filter(npc_ref=OuterRef("npc_ref"), number__gt=OuterRef("number"))
    failed = models.Turn.objects.filter(~Exists(later), state__in=("failed", "interrupted"))
    return frozenset(failed.order_by("-pk").values_list("npc_ref", flat=True)[:most])


def newest_of_all(count: int) -> tuple[TurnLine, ...]:
    """Return the newest turns of all NPCs, newest first."""
    rows = models.Turn.objects.defer("manifest").order_by("-pk")[:count]
    return tuple(map(_line, rows))


def turn_page(npc_ref: str, number: int, *, size: int) -> TurnPage:
    """Return one page of an NPC's turns, with the events that they answer. Pages count from 1."""
    rows = models.Turn.objects.filter(npc_ref=npc_ref).defer("manifest")
    first = (number - 1) * size
    found = list(
        rows.select_related("event_record").order_by("-number")[
            max(0, first - 1) : first + size + 1
        ]
    )
    newer = found.pop(0) if number > 1 and found else None
    has_older = len(found) > size
    shown = found[:size]
    return TurnPage(
        turns=tuple(_line(row, **_event(row.event_record)) for row in shown),
        since=shown[-1].created_at if shown and has_older else 0.0,
        until=newer.created_at if newer is not None else float("inf"),
        has_older=has_older,
    )


def _line(row: models.Turn, *, event: str = "", speaker: str = "") -> TurnLine:
    return value_of(TurnLine, row, event=event, speaker=speaker)


def _event(record: models.Record | None) -> dict[str, Any]:
    if record is None or record.meta == ERASED_META:
        return {}
    event = json.loads(record.meta).get("event", "")
    return {"event": event if isinstance(event, str) else "", "speaker": record.name}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordPage:
    """One page of an NPC's records, oldest first. Page 1 has the newest records."""

    number: int
    records: tuple[Record, ...]
    conversations: Mapping[int, ConversationRef]
    """The conversations of the NPC, by number."""
    has_older: bool
    """True if there is a next page."""


def record_page(npc_ref: str, number: int, *, size: int) -> RecordPage:
    """Return one page of an NPC's records; empty if there are fewer records. Pages count from 1.

    Texts of prompts are left out, because the turns that used them show them.
    """
    known = {one.id: one for one in conversations_of(npc_ref)}
    first = (number - 1) * size
    rows = list(_said(known).order_by("-pk")[first : first + size + 1])
    return RecordPage(
        number=number,
        records=records_from(reversed(rows[:size])),
        conversations=known,
        has_older=len(rows) > size,
    )


def _said(conversations: Mapping[int, ConversationRef]) -> Any:
    rows = models.Record.objects.filter(conversation_id__in=list(conversations))
    return rows.exclude(kind__in=[kind.value for kind in BOOKKEEPING])
