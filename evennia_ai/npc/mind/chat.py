"""One conversation of an NPC as people read it: who spoke, what they did, and what still counts.

Everything here is read from the database, so any thread may call it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from evennia_ai import models
from evennia_ai.engine.history.compaction.summaries import FRAME
from evennia_ai.engine.history.corrections import CORRECTS
from evennia_ai.engine.history.records import Record, RecordKind
from evennia_ai.npc.speech.reply_acts import Act, acts_of
from evennia_ai.npc.views.visibility import Seer
from evennia_ai.store.history.control import (
    EndedTurn,
    Place,
    ended_turns,
    place_in_order,
    withdrawals,
)
from evennia_ai.store.history.past_turns import facts_of_turns
from evennia_ai.store.history.record_rows import ConversationRef, records_from

MOST_RECORDS: Final = 160
_OWN: Final = frozenset({RecordKind.ASSISTANT, RecordKind.FALLBACK, RecordKind.TOOL_CALL})
_KINDS: Final = (
    *(RecordKind.USER, RecordKind.EVENT, RecordKind.SUMMARY, RecordKind.CONTROL),
    *(RecordKind.RUN_END, *sorted(_OWN)),
)
PLACE: Final = "block:place"
"""The origin of the fact that says where the NPC is and who is present."""
_CONTROLLED: Final[Mapping[str, str]] = {
    "reset": "{by} let the conversation start over",
    "undo": "{by} took back what was said here",
    "retry": "{by} asked for another answer",
}

LineKind = Literal["said", "event", "failed", "changed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatLine:
    """A line of a conversation."""

    record: str
    """The ID of the record."""
    kind: LineKind
    speaker: str
    """The name of the speaker, "" if nobody said it."""
    is_own: bool
    """True if the NPC said or did it."""
    acts: tuple[Act, ...]
    """What was said and done, in order, as players saw it. Lines that nobody said have one act."""
    text: str
    """The words as they are recorded."""
    at: float
    """Seconds since 1970."""
    turn: int | None = None
    """The number of the turn that made the line."""
    place: str = ""
    """Where the NPC was and who was present, as its prompt said. Only for its own lines."""
    undo: int = 0
    """How many exchanges `commit_undo` must take back to take back this one. 0 if it cannot."""
    is_corrected: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """The newest lines of a conversation, oldest first."""

    lines: tuple[ChatLine, ...]
    newest_turn: int | None
    """The newest turn whose answer still counts."""
    has_older: bool


def read_chat(
    where: ConversationRef,
    seer: Seer,
    *,
    own_names: Sequence[str],
    most: int,
    since: int = 1,
    display: Callable[[str], str] = str,
) -> Chat:
    """Return the newest lines of a conversation that still count, as the viewer may see them.

    Args:
        own_names: The names of the NPC. The first one is shown.
        most: The most lines.
        since: The first segment to read. A branch begins a new one.
        display: Returns words of the NPC as players see them.
    """
    rows = models.Record.objects.filter(
        conversation_id=where.id, segment__gte=since, kind__in=[kind.value for kind in _KINDS]
    )
    newest = records_from(rows.order_by("-segment", "-seq")[:MOST_RECORDS])
    records = sorted(newest, key=lambda one: (place_in_order(one), one.segment, one.seq))
    gone = withdrawals(records)
    shown = [one for one in records if one.id not in gone and not seer.leaves_out(one)]
    counting = [one for one in shown if one.kind is not RecordKind.CONTROL]
    # Every ended turn has an end record, so older turns made none of these records.
    ended = sum(one.kind is RecordKind.RUN_END for one in records)
    exchanges = _Exchanges(ended_turns(where, most=ended + 1), counting)
    lines = [
        line
        for record in shown
        if (line := _line(seer.record(record, shown), exchanges, own_names, display)) is not None
    ]
    own = [line.turn for line in lines if line.is_own and line.turn is not None]
    lines_here = lines[-most:]
    places = _places(where, seer, lines_here)
    return Chat(
        lines=tuple(
            replace(line, place=places[line.turn]) if line.turn in places and line.is_own else line
            for line in lines_here
        ),
        newest_turn=own[-1] if own else None,
        has_older=len(lines) > most or len(newest) == MOST_RECORDS,
    )


def _places(where: ConversationRef, seer: Seer, lines: Sequence[ChatLine]) -> dict[int | None, str]:
    """Return where the NPC was in each turn and who was present, as its prompt said."""
    numbers = {line.turn for line in lines if line.is_own and line.turn is not None}
    return {
        number: record.body[start:end]
        for number, found in facts_of_turns(where, numbers).items()
        for record in found
        if seer.record(record, found).body == record.body and not seer.leaves_out(record)
        for origin, start, end, *_ in record.meta.get("parts", ())
        if origin == PLACE
    }


class _Exchanges:
    """The turns of a conversation, by the records that they made."""

    def __init__(self, turns: Sequence[EndedTurn], counting: Sequence[Record]) -> None:
        self._oldest_first: Final = turns[::-1]
        self._ends: Final = [one.upto for one in self._oldest_first]
        self._places: Final = {one.id: place_in_order(one) for one in counting}
        own = sorted(self._places[one.id] for one in counting if one.kind in _OWN)
        by_event: dict[str, list[EndedTurn]] = {}
        for turn in turns:
            by_event.setdefault(_event_of(turn), []).append(turn)
        counts = (
            event
            for event, mine in by_event.items()
            if event in self._places or any(_is_some_in(own, one) for one in mine)
        )
        # The newest exchange comes first, as in `list_exchanges`.
        self._undo: Final = {event: number for number, event in enumerate(counts, start=1)}

    def turn_of(self, record: Record) -> EndedTurn | None:
        """Return the turn that made a record. What came before the turn's event is not of it."""
        place = place_in_order(record)
        at = bisect_left(self._ends, place)
        if at == len(self._ends):
            return None
        turn = self._oldest_first[at]
        begins = max(turn.after, self._places.get(turn.event, turn.after))
        return turn if begins < place else None

    def undo_of(self, turn: EndedTurn) -> int:
        return self._undo.get(_event_of(turn), 0)


def _is_some_in(places: Sequence[Place], turn: EndedTurn) -> bool:
    """True if one of these sorted places is between the ends of a turn."""
    at = bisect_right(places, turn.after)
    return at < len(places) and places[at] < turn.upto


def _event_of(turn: EndedTurn) -> str:
    return turn.event or f"turn {turn.number}"


def _line(
    record: Record,
    exchanges: _Exchanges,
    own_names: Sequence[str],
    display: Callable[[str], str],
) -> ChatLine | None:
    """Return a record as a line, None if it has nothing to read."""
    is_own, kind, text = record.kind in _OWN, _kind_of(record), _text_of(record)
    if record.is_erased or not text:
        return None
    turn = exchanges.turn_of(record) if is_own or kind == "failed" else None
    speaker = own_names[0] if is_own else record.name
    names = own_names if is_own else (record.name,)
    acts: tuple[Act, ...] = (Act(kind="pose", text=text),)
    if kind == "said":
        acts = acts_of(text, own_names=names)
    if is_own:
        acts = tuple(replace(act, text=told) for act in acts if (told := display(act.text)))
    return ChatLine(
        record=record.id,
        kind=kind,
        speaker=speaker if kind == "said" else "",
        is_own=is_own,
        acts=acts,
        text=text,
        at=record.created_at,
        turn=None if turn is None else turn.number,
        undo=0 if turn is None or not is_own else exchanges.undo_of(turn),
        is_corrected=CORRECTS in record.meta,
    )


def _kind_of(record: Record) -> LineKind:
    if record.kind is RecordKind.CONTROL:
        return "changed"
    if record.kind is RecordKind.RUN_END:
        return "failed"
    return "said" if record.kind in _OWN or record.name else "event"


def _text_of(record: Record) -> str:
    """Return what a record says to a reader, "" for nothing."""
    if record.kind is RecordKind.CONTROL:
        wanted = _CONTROLLED.get(str(record.meta.get("what")), "")
        return wanted.format(by=record.meta.get("by", "A builder"))
    if record.kind is RecordKind.RUN_END:
        failed = record.meta.get("state") not in ("done", None)
        return f"No answer: {record.body}" if failed and record.body else ""
    return " ".join(_parts(record)).removeprefix(FRAME)


def _parts(record: Record) -> Iterator[str]:
    if record.body:
        yield record.body
    for call in record.meta.get("tool_calls", ()):
        yield f"*uses {call['name']} {call['arguments']}*"
