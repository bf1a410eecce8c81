"""Controls: builders reset, undo, retry or correct a conversation without erasing its records.

A control begins a new segment, as a summary does. Its one record says which messages prompts show
from then on. A reset keeps none, an undo keeps all except some exchanges, and a correction replaces
words. Earlier records stay readable, and older turns are replayed from the records that they name.
An exchange consists of the event that started it, earlier lines that the same answer was for, the
tool calls and their results, the NPC's words, and what the NPC perceived meanwhile without an
answer of its own.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple

from evennia_ai import models
from evennia_ai.engine.actors import Actor
from evennia_ai.engine.errors import StoreError
from evennia_ai.engine.history.corrections import (
    CORRECTIBLE,
    SpeakingTool,
    Utterance,
    correct_records,
    find_utterances,
    original_place,
)
from evennia_ai.engine.history.projection import record_of
from evennia_ai.engine.history.records import (
    Control,
    MessageTotals,
    Record,
    RecordKind,
    call_ids,
    control_record,
    is_staying,
)
from evennia_ai.engine.history.turn.manifest import text_in_row
from evennia_ai.engine.lorebook.activation.timers import state_from
from evennia_ai.engine.text.columns import clip_text
from evennia_ai.store.core.snapshots import changing, one_change
from evennia_ai.store.history.conversations import (
    append_in_transaction,
    begin_segment_with,
    opening_summary,
)
from evennia_ai.store.history.record_rows import ConversationRef, records_from
from evennia_ai.store.history.transcripts import WITHOUT_END
from evennia_ai.store.history.turns import StoredTurn, ends_of_turns, turn_from
from evennia_ai.store.history.windows import (
    GREETING,
    HISTORY,
    lore_states,
    remember_lore,
    reset_lore,
    windows,
)

_ANSWERED_WITH: Final = frozenset({RecordKind.ASSISTANT, RecordKind.TOOL_CALL})
_PERCEIVED: Final = frozenset({RecordKind.USER, RecordKind.EVENT, RecordKind.REMINDER})
MOST_QUOTED: Final = 30
"""How many characters of an utterance an error message quotes."""
NO_TOOLS: Final[Mapping[str, SpeakingTool]] = {}
_MOST_TURNS: Final = 400
"""Exchanges are looked for only among this many newest turns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One exchange, or the part of it that prompts still show."""

    event: Record | None
    """The event that started the exchange. None if there was none or prompts no longer show it."""
    answer: tuple[Record, ...]
    """The NPC's words, its tool calls and their results, in order."""
    meanwhile: tuple[Record, ...]
    """What the NPC perceived before its answer was complete, and did not answer separately."""
    turns: tuple[int, ...]
    """The numbers of the turns that made the answer, in order."""
    joined: tuple[Record, ...] = ()
    """Earlier lines of the speaker that the answer was for as well, in order."""

    @property
    def records(self) -> tuple[Record, ...]:
        """All records of the exchange: joined lines, event, meanwhile and answer."""
        first = (self.event,) if self.event is not None else ()
        return (*self.joined, *first, *self.meanwhile, *self.answer)

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of the tools that the NPC called, each once."""
        called = (call for record in self.answer for call in record.meta.get("tool_calls", ()))
        return tuple(dict.fromkeys(str(call["name"]) for call in called))


def reset_conversation(conversation: ConversationRef, *, by: Actor) -> Record:
    """Hide all messages of a conversation from future prompts, and return the record of the reset.

    The state of the lore is reset too. Memories, notes and authored things stay.

    Raises:
        StoreError: the NPC is answering, or no message is left. Nothing was changed.
    """
    if not len(windows(conversation.id).history):
        raise StoreError("nothing in this conversation counts any more; nothing was changed")
    _read_first(conversation)
    with changing(HISTORY, f"resetting {conversation}", by=by):
        record = _write_control(conversation, "reset", by=by, tail=(), totals=MessageTotals())
        reset_lore(conversation, by=by)
    return record


def list_exchanges(
    conversation: ConversationRef, *, waiting: Collection[str] = ()
) -> Iterator[Exchange]:
    """Yield the exchanges that prompts still show at least partly, newest first.

    Args:
        waiting: Ids of records that will get an answer of their own.
    """
    shown, turns = _shown_records(conversation), ended_turns(conversation)
    by_event: dict[str, list[EndedTurn]] = {}
    for turn in turns:
        by_event.setdefault(turn.event or f"turn {turn.number}", []).append(turn)
    joined = (one for turn in turns for one in turn.joined)
    waking = {*by_event, *joined, *waiting}
    for event_id, mine in by_event.items():
        made = _exchange(shown, event_id, mine[::-1], waking=waking)
        if made.records:
            yield made


def undo_exchanges(
    conversation: ConversationRef, count: int, *, by: Actor, waiting: Collection[str] = ()
) -> tuple[Exchange, ...]:
    """Hide the newest exchanges from future prompts, and return them, newest first.

    The lore gets the state that it had before these exchanges.

    Args:
        count: The most exchanges to undo.

    Raises:
        StoreError: the NPC is answering, or there is no exchange. Nothing was changed.
    """
    taken = tuple(islice(list_exchanges(conversation, waiting=waiting), count))
    if not taken:
        raise StoreError("there is no exchange left to take back; nothing was changed")
    _withdraw(conversation, "undo", taken, [r for one in taken for r in one.records], by=by)
    return taken


def take_back_answer(
    conversation: ConversationRef, exchange: Exchange, *, by: Actor, hint: str = ""
) -> Record:
    """Hide the newest exchange's answer from future prompts, so that its event is answered again.

    Args:
        hint: A builder's wish for the next answer. The record stores it.

    Raises:
        StoreError: the NPC is answering. Nothing was changed.
    """
    return _withdraw(conversation, "retry", [exchange], exchange.answer, by=by, hint=hint)


def correct_utterance(
    conversation: ConversationRef,
    record: Record,
    text: str,
    *,
    by: Actor,
    which: int | None = None,
    tools: Mapping[str, SpeakingTool] = NO_TOOLS,
) -> Record:
    """Replace words of the NPC in future prompts, and return the record of the new words.

    If the words were corrected before, this replaces the correction.

    Args:
        which: The number of the utterance in the record, from 1. Needed if the record has several.
        tools: The tools whose calls contain spoken words, by name.

    Raises:
        StoreError: the record has no words of the NPC, prompts no longer show it, or the NPC is
            answering. Nothing was changed.
    """
    shown = _shown_records(conversation)
    now = next(
        (one for one in shown if original_place(one) == original_place(record)),
        None,
    )
    if now is None and record.kind in CORRECTIBLE:
        raise StoreError(_why_not_shown(record, shown))
    results = {str(one.meta["tool_call_id"]): one for one in shown if "tool_call_id" in one.meta}
    now = now or record
    said = _pick_utterance(record, find_utterances(now, results, tools=tools), which)
    instead = correct_records(now, results, said, text, tools=tools, by=by.name)
    totals = _read_first(conversation)
    with one_change(f"correcting a record of {conversation}", by=by):
        new = append_in_transaction(conversation, [one for _, one in instead])
        now_there = {old.id: one for (old, _), one in zip(instead, new, strict=True)}
        tail = [now_there.get(one.id, one) for one in shown]
        withdrawn = [old for old, _ in instead]
        _write_control(
            conversation, "correct", by=by, tail=tail, totals=totals, withdrawn=withdrawn
        )
    return new[0]


def _why_not_shown(record: Record, shown: Sequence[Record]) -> str:
    summary = next((one for one in shown if one.kind is RecordKind.SUMMARY), None)
    stands = f"it is part of summary #{summary.id}, which you can correct" if summary else ""
    stands = stands or "the conversation was reset"
    return (
        f"prompts no longer show #{record.id}: it was taken back, or {stands}; nothing was changed"
    )


def _pick_utterance(record: Record, said: Sequence[Utterance], which: int | None) -> Utterance:
    """Return the utterance with the number `which`, or the only one.

    Raises:
        StoreError: there is no such utterance, or there are several and `which` is None.
    """
    if not said:
        raise StoreError(
            f"#{record.id} has no words of the NPC; ai/undo takes back a whole exchange;"
            " nothing was changed"
        )
    if which is None and len(said) == 1:
        return said[0]
    if which is None or not 1 <= which <= len(said):
        each = ", ".join(
            f"#{record.id}.{number} ({clip_text(one.words, MOST_QUOTED)})"
            for number, one in enumerate(said, start=1)
        )
        raise StoreError(
            f"#{record.id} has several utterances; name one: {each}; nothing was changed"
        )
    return said[which - 1]


def withdrawals(records: Sequence[Record]) -> dict[str, str]:
    """Return the records that no longer count, by ID, with what withdrew them, such as "undo".

    Changes that came after these records are found too.
    """
    found: dict[str, str] = {}
    by_conversation = defaultdict[int, list[Record]](list)
    for one in records:
        by_conversation[one.conversation].append(one)
    for conversation, members in by_conversation.items():
        rows = models.Record.objects.filter(
            conversation_id=conversation,
            kind=RecordKind.CONTROL.value,
            pk__gt=min(int(one.id) for one in members),
        )
        for done in records_from(rows.order_by("pk")):
            what, gone = done.meta["what"], set(done.meta.get("withdrawn", ()))
            for record in members:
                is_before = (record.segment, record.seq) < (done.segment, done.seq)
                if record.place in gone or (what == "reset" and is_before):
                    found.setdefault(record.id, what)
    return found


def _withdraw(
    conversation: ConversationRef,
    what: Control,
    taken: Sequence[Exchange],
    records: Iterable[Record],
    *,
    by: Actor,
    hint: str = "",
) -> Record:
    """Begin a segment without these records, and restore the lore's state before `taken`."""
    shown = _shown_records(conversation)
    totals = _read_first(conversation)
    gone = {record.id for record in records}
    places = {record.place for record in shown if record.id in gone}
    gone |= {one.id for one in shown if is_staying(one) and one.meta.get("before") in places}
    withdrawn = [record for record in shown if record.id in gone]
    tail = [record for record in shown if record.id not in gone]
    first = _first_turn(conversation, taken)
    with one_change(f"hiding records of {conversation}", by=by):
        record = _write_control(
            conversation,
            what,
            by=by,
            tail=tail,
            totals=totals.without(withdrawn),
            withdrawn=withdrawn,
            hint=hint,
        )
        if first is not None and "lore_state" in first.manifest.inputs:
            lore = state_from(first.manifest.inputs["lore_state"])
            remember_lore(conversation, lore, turn=first.number)
    return record


def _read_first(conversation: ConversationRef) -> MessageTotals:
    """Return the totals of the window, and load the state of the lore.

    Call it before the transaction, because on SQLite a transaction that reads first may be refused
    the write.
    """
    lore_states(conversation.id)
    return windows(conversation.id).end.totals


def _write_control(
    conversation: ConversationRef,
    what: Control,
    *,
    by: Actor,
    tail: Sequence[Record],
    totals: MessageTotals,
    withdrawn: Sequence[Record] = (),
    hint: str = "",
) -> Record:
    """Write a control in the current transaction.

    Raises:
        StoreError: the NPC is answering.
    """
    first = control_record(
        what,
        by=by.name,
        tail=tail,
        totals=totals,
        lore=lore_states(conversation.id).to_plain(),
        withdrawn=withdrawn,
        hint=hint,
    )
    record = begin_segment_with(conversation, windows(conversation.id), first, tail=tail)
    if models.Turn.objects.filter(conversation_id=conversation.id, state="open").exists():
        raise StoreError(
            "the NPC is answering in this conversation; nothing was changed, try again later"
        )
    return record


def _shown_records(conversation: ConversationRef) -> list[Record]:
    """Return the records that the newest segment shows, in the order of prompts.

    This includes the summary with which the segment begins, even if the window has dropped it.
    """
    window = windows(conversation.id)
    shown = [record for message in window.history if (record := record_of(message)) is not None]
    opening = opening_summary(conversation.id, window.end.segment)
    if opening is None or any(one.id == opening.id for one in shown):
        return shown
    return [opening, *shown]


def _exchange(
    shown: Sequence[Record],
    event_id: str,
    turns: Sequence["EndedTurn"],
    *,
    waking: Collection[str],
) -> Exchange:
    """Return the exchange made of these turns, which answered one event, without hidden records."""
    event = next((record for record in shown if record.id == event_id), None)
    woken = place_in_order(event) if event is not None else (0, 0)
    answer = [
        one
        for one in shown
        if one.kind in _ANSWERED_WITH
        and GREETING not in one.meta
        and any(max(turn.after, woken) < place_in_order(one) < turn.upto for turn in turns)
    ]
    calls = {call for record in answer for call in call_ids(record)}
    results = [one for one in shown if str(one.meta.get("tool_call_id")) in calls]
    meanwhile = [
        one
        for one in shown
        if event is not None
        and one.kind in _PERCEIVED
        and one.id not in waking
        and woken < place_in_order(one) < turns[-1].upto
    ]
    whole = [record for record in shown if record in answer or record in results]
    joined = {one for turn in turns for one in turn.joined}
    return Exchange(
        joined=tuple(one for one in shown if one.id in joined),
        event=event,
        answer=tuple(whole),
        meanwhile=tuple(meanwhile),
        turns=tuple(turn.number for turn in turns),
    )


Place = tuple[int, int]


def place_in_order(record: Record) -> Place:
    """Return the segment and the number of a record.

    For a correction, those of the original record.
    """
    segment, _, seq = original_place(record).partition(".")
    return int(segment), int(seq)


class EndedTurn(NamedTuple):
    """An ended turn. Its records lie between the end record of the turn before and its own.

    This holds because an NPC has one turn at a time."""

    number: int
    event: str
    """The id of the record that the turn answered, or ""."""
    after: Place
    """The place of the end record of the turn before; later records may belong to this turn."""
    upto: Place
    """The place of this turn's own end record."""
    joined: tuple[str, ...]
    """The ids of earlier records that the turn answered as well."""


def ended_turns(conversation: ConversationRef, *, most: int = _MOST_TURNS) -> list[EndedTurn]:
    """Return the newest turns that have ended, at most so many, newest first.

    Every ended turn has an end record, in the order of the turns. Turns and records are matched by
    counting: in an imported transcript, the turn numbers in the records are those of the other
    game. A turn that was exported while it was running has no end record.
    """
    rows = models.Turn.objects.filter(conversation_id=conversation.id).exclude(state="open")
    rows = rows.exclude(outcome=WITHOUT_END).order_by("-number")
    told = rows.values_list("number", "event_record_id", "manifest")[:most]
    newest = ends_of_turns(conversation.id).order_by("-segment", "-seq")
    newest = newest.values_list("segment", "seq")
    ends = [*newest[: most + 1], (0, 0)]
    return [
        EndedTurn(
            number=number,
            event=str(event or ""),
            after=after,
            upto=upto,
            joined=_joined_in(text_in_row(manifest)),
        )
        for (number, event, manifest), upto, after in zip(told, ends, ends[1:], strict=False)
    ]


def _joined_in(manifest: str) -> tuple[str, ...]:
    """Return the ids of earlier lines that a turn answered as well, from the text of its manifest.

    Most turns have none, and parsing all of them would take long.
    """
    # Safe as a substring search: quotes inside JSON strings are escaped.
    if '"joined":[' not in manifest:
        return ()
    return tuple(json.loads(manifest)["inputs"]["history"]["joined"])


def _first_turn(conversation: ConversationRef, taken: Iterable[Exchange]) -> StoredTurn | None:
    """Return the oldest turn of these exchanges, or None."""
    number = min((number for one in taken for number in one.turns), default=0)
    rows = models.Turn.objects.filter(conversation_id=conversation.id, number=number)
    row = rows.select_related("conversation").first()
    return None if row is None else turn_from(row)
