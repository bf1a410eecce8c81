"""Control: what builders may do to a conversation, each one a record that nothing is erased for.

A control begins a segment, as a summary does, and says in one record what counts from there on: a
beginning anew keeps nothing, taking back keeps all but some exchanges, a correction keeps its own
words in the place of others. Everything before stays readable, and every older turn is replayed
from the records that it names. An exchange is what woke the NPC, what its tools were asked and
gave, what it said, and what it perceived meanwhile that nobody was answered for.
"""

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
from evennia_ai.engine.lorebook.activation.timers import state_from
from evennia_ai.engine.text.columns import clip_text
from evennia_ai.store.core.snapshots import changing, one_change
from evennia_ai.store.history.conversations import appended, opening_summary, segment_begun
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
"""Characters of words that are told to name them."""
NO_TOOLS: Final[Mapping[str, SpeakingTool]] = {}
_MOST_TURNS: Final = 400
"""Of so many newest turns of a conversation at most the exchanges are looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One exchange that counts, or what of it counts."""

    event: Record | None
    """What woke the NPC, None where that counts no more or nothing did."""
    answer: tuple[Record, ...]
    """What it said, what its tools were asked and what they gave, in order."""
    meanwhile: tuple[Record, ...]
    """What it perceived before its answer was whole, and answered nobody for."""
    turns: tuple[int, ...]
    """The numbers of its turns, in order."""

    @property
    def records(self) -> tuple[Record, ...]:
        """All of it."""
        first = (self.event,) if self.event is not None else ()
        return (*first, *self.meanwhile, *self.answer)

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of the tools that were called, each once."""
        called = (call for record in self.answer for call in record.meta.get("tool_calls", ()))
        return tuple(dict.fromkeys(str(call["name"]) for call in called))


def reset(conversation: ConversationRef, *, by: Actor) -> Record:
    """Have the NPC begin anew in this conversation: nothing of it counts; the record that says so.

    What its lore remembers goes with it; memories, notes and all that is authored stay.
    StoreError: it answers just now, or nothing counts anyway; nothing was changed.
    """
    if not len(windows(conversation.id).history):
        raise StoreError("nothing said there counts any more; nothing was changed")
    _read_first(conversation)
    with changing(HISTORY, f"beginning {conversation} anew", by=by):
        record = _controlled(conversation, "reset", by=by, tail=(), totals=MessageTotals())
        reset_lore(conversation, by=by)
    return record


def exchanges(
    conversation: ConversationRef, *, waiting: Collection[str] = ()
) -> Iterator[Exchange]:
    """The exchanges of which something counts, the newest first.

    `waiting` are ids of records that get an answer of their own later.
    """
    shown, turns = _shown(conversation), _ended_turns(conversation)
    by_event: dict[str, list[_EndedTurn]] = {}
    for turn in turns:
        by_event.setdefault(turn.event or f"turn {turn.number}", []).append(turn)
    for event_id, mine in by_event.items():
        made = _exchange(shown, event_id, mine[::-1], waking={*by_event, *waiting})
        if made.records:
            yield made


def undo(
    conversation: ConversationRef, count: int, *, by: Actor, waiting: Collection[str] = ()
) -> tuple[Exchange, ...]:
    """Have the newest exchanges count no more, at most `count`; those, the newest first.

    What its lore remembers is what it did before them. StoreError: it answers just now, or there
    is none; nothing was changed.
    """
    taken = tuple(islice(exchanges(conversation, waiting=waiting), count))
    if not taken:
        raise StoreError("there is no exchange left that counts; nothing was changed")
    _withdraw(conversation, "undo", taken, [r for one in taken for r in one.records], by=by)
    return taken


def take_back_answer(
    conversation: ConversationRef, exchange: Exchange, *, by: Actor, hint: str = ""
) -> Record:
    """Have the answer of the newest exchange count no more, so that its event is answered again.

    `hint` is what is asked of the next answer; it is kept in the record. StoreError: it answers
    just now; nothing was changed.
    """
    return _withdraw(conversation, "retry", [exchange], exchange.answer, by=by, hint=hint)


def correct(
    conversation: ConversationRef,
    record: Record,
    text: str,
    *,
    by: Actor,
    which: int | None = None,
    tools: Mapping[str, SpeakingTool] = NO_TOOLS,
) -> Record:
    """Have `text` stand where the NPC said `record`, from now on; the record of the new words.

    `which` counts its utterances from 1 where it has several; `tools` are those that speak, by
    their names. Where it was corrected before, what stands there now gives way. StoreError: it is
    not the NPC's, it does not count any more, or it answers just now; nothing was changed.
    """
    shown = _shown(conversation)
    now = next((one for one in shown if original_place(one) == original_place(record)), None)
    if now is None and record.kind in CORRECTIBLE:
        raise StoreError(_why_not_shown(record, shown))
    results = {str(one.meta["tool_call_id"]): one for one in shown if "tool_call_id" in one.meta}
    now = now or record
    said = _meant(record, find_utterances(now, results, tools=tools), which)
    instead = correct_records(now, results, said, text, tools=tools, by=by.name)
    totals = _read_first(conversation)
    with one_change(f"correcting a record of {conversation}", by=by):
        new = appended(conversation, [one for _, one in instead])
        now_there = {old.id: one for (old, _), one in zip(instead, new, strict=True)}
        tail = [now_there.get(one.id, one) for one in shown]
        withdrawn = [old for old, _ in instead]
        _controlled(conversation, "correct", by=by, tail=tail, totals=totals, withdrawn=withdrawn)
    return new[0]


def _why_not_shown(record: Record, shown: Sequence[Record]) -> str:
    summary = next((one for one in shown if one.kind is RecordKind.SUMMARY), None)
    stands = f"summary #{summary.id} stands for it, which can be corrected" if summary else ""
    stands = stands or "a new chat was begun since"
    return (
        f"#{record.id} is not in what prompts show any more: it was taken back, or {stands};"
        " nothing was changed"
    )


def _meant(record: Record, said: Sequence[Utterance], which: int | None) -> Utterance:
    """The utterance that is meant; StoreError where that is none or not clear."""
    if not said:
        raise StoreError(
            f"#{record.id} holds no words that the NPC said itself; ai/undo takes a whole exchange"
            " back; nothing was changed"
        )
    if which is None and len(said) == 1:
        return said[0]
    if which is None or not 1 <= which <= len(said):
        each = ", ".join(
            f"#{record.id}.{number} ({clip_text(one.words, MOST_QUOTED)})"
            for number, one in enumerate(said, start=1)
        )
        raise StoreError(f"#{record.id} holds words of the NPC as {each}; nothing was changed")
    return said[which - 1]


def controls_since(record: Record) -> tuple[Record, ...]:
    """What builders did to the conversation of `record` after it, in order."""
    rows = models.Record.objects.filter(
        conversation_id=record.conversation, kind=RecordKind.CONTROL.value, pk__gt=int(record.id)
    )
    return records_from(rows.order_by("pk"))


def _withdraw(
    conversation: ConversationRef,
    what: Control,
    taken: Sequence[Exchange],
    records: Iterable[Record],
    *,
    by: Actor,
    hint: str = "",
) -> Record:
    """Begin a segment without these records, with what the lore remembered before `taken`."""
    shown = _shown(conversation)
    totals = _read_first(conversation)
    gone = {record.id for record in records}
    places = {record.place for record in shown if record.id in gone}
    gone |= {one.id for one in shown if is_staying(one) and one.meta.get("before") in places}
    withdrawn = [record for record in shown if record.id in gone]
    tail = [record for record in shown if record.id not in gone]
    first = _first_turn(conversation, taken)
    with one_change(f"taking back in {conversation}", by=by):
        record = _controlled(
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
    """The totals of the window; what lore remembers is read, too.

    Before the transaction: on SQLite one that reads first may not get to write.
    """
    lore_states(conversation.id)
    return windows(conversation.id).end.totals


def _controlled(
    conversation: ConversationRef,
    what: Control,
    *,
    by: Actor,
    tail: Sequence[Record],
    totals: MessageTotals,
    withdrawn: Sequence[Record] = (),
    hint: str = "",
) -> Record:
    """The control, written in the current transaction unless a turn is under way."""
    first = control_record(
        what,
        by=by.name,
        tail=tail,
        totals=totals,
        lore=lore_states(conversation.id).to_plain(),
        withdrawn=withdrawn,
        hint=hint,
    )
    record = segment_begun(conversation, windows(conversation.id), first, tail=tail)
    if models.Turn.objects.filter(conversation_id=conversation.id, state="open").exists():
        raise StoreError("the NPC answers there just now; nothing was changed, try again after it")
    return record


def _shown(conversation: ConversationRef) -> list[Record]:
    """The records that the newest segment shows, in the order of prompts.

    And the summary that it begins with, which the window may have left behind.
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
    turns: Sequence["_EndedTurn"],
    *,
    waking: Collection[str],
) -> Exchange:
    """What of these turns, which answered one event, is shown."""
    event = next((record for record in shown if record.id == event_id), None)
    woken = _place(event) if event is not None else (0, 0)
    answer = [
        one
        for one in shown
        if one.kind in _ANSWERED_WITH
        and GREETING not in one.meta
        and any(max(turn.after, woken) < _place(one) < turn.upto for turn in turns)
    ]
    calls = {call for record in answer for call in call_ids(record)}
    results = [one for one in shown if str(one.meta.get("tool_call_id")) in calls]
    meanwhile = [
        one
        for one in shown
        if event is not None
        and one.kind in _PERCEIVED
        and one.id not in waking
        and woken < _place(one) < turns[-1].upto
    ]
    whole = [record for record in shown if record in answer or record in results]
    return Exchange(
        event=event,
        answer=tuple(whole),
        meanwhile=tuple(meanwhile),
        turns=tuple(turn.number for turn in turns),
    )


_Place = tuple[int, int]


def _place(record: Record) -> _Place:
    """Where it was said, in whatever words it is shown: segment and number."""
    segment, _, seq = original_place(record).partition(".")
    return int(segment), int(seq)


class _EndedTurn(NamedTuple):
    """A turn and the two ends it stands between: an NPC does one at a time."""

    number: int
    event: str
    """The id of the record it answered, "" for none."""
    after: _Place
    """Where the turn before it ended."""
    upto: _Place
    """Where it ended itself."""


def _ended_turns(conversation: ConversationRef) -> list[_EndedTurn]:
    """The newest turns that have ended, the newest first.

    Each has written its end, in their order; the numbers in these are those of the game that a
    transcript came from. One that the transcript caught before its reply has none.
    """
    rows = models.Turn.objects.filter(conversation_id=conversation.id).exclude(state="open")
    rows = rows.exclude(outcome=WITHOUT_END).order_by("-number")
    told = rows.values_list("number", "event_record_id")[:_MOST_TURNS]
    newest = ends_of_turns(conversation.id).order_by("-segment", "-seq")
    newest = newest.values_list("segment", "seq")
    ends = [*newest[: _MOST_TURNS + 1], (0, 0)]
    return [
        _EndedTurn(number=number, event=str(event or ""), after=after, upto=upto)
        for (number, event), upto, after in zip(told, ends, ends[1:], strict=False)
    ]


def _first_turn(conversation: ConversationRef, taken: Iterable[Exchange]) -> StoredTurn | None:
    """The oldest turn of these exchanges."""
    number = min((number for one in taken for number in one.turns), default=0)
    rows = models.Turn.objects.filter(conversation_id=conversation.id, number=number)
    row = rows.select_related("conversation").first()
    return None if row is None else turn_from(row)
