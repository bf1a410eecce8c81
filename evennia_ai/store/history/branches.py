"""Branches: copies of a conversation up to the end of a turn, in which a builder continues it.

A branch belongs to a mind of its own. The reference of this mind joins those of the NPC and of the
builder (`12~7`). So its turns have their own numbers, and no query for the words or memories of NPC
12 finds them.

A branch begins with copies of the messages that the turn's prompt could show, then the result of
the turn. Then an opening record says where the copies come from; later records were said in the
branch. A branch without a past has no copies. A branch is committed, chained and replayed like
every conversation.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from evennia_ai import models
from evennia_ai.engine.actors import Actor
from evennia_ai.engine.errors import EvenniaAIError
from evennia_ai.engine.history.corrections import CORRECTS
from evennia_ai.engine.history.projection import record_of
from evennia_ai.engine.history.records import (
    LORE,
    MessageTotals,
    NewRecord,
    Record,
    RecordKind,
)
from evennia_ai.engine.lorebook.activation.timers import NO_STATE, LoreState, state_from
from evennia_ai.engine.prompt.history import History
from evennia_ai.store.core.snapshots import one_change
from evennia_ai.store.history import conversations, turns
from evennia_ai.store.history.record_rows import (
    ConversationRef,
    record_from,
    records,
    records_from,
    ref_of,
)
from evennia_ai.store.history.transcripts import WITHOUT_END
from evennia_ai.store.history.turns import StoredTurn, turn_from
from evennia_ai.store.history.windows import (
    history_upto,
    lore_states,
    remember_lore,
    windows,
)

_MARK: Final = "~"
BRANCH: Final = "branch"
"""The value of "of" in the meta of the opening record, which follows the copies of a branch."""
# Keys in a record's meta whose values name places in the record's own conversation.
_OF_ITS_PLACE: Final = frozenset({"before", "compacted_from", "tail", CORRECTS})


class BranchError(EvenniaAIError):
    """No branch can be opened from this turn. The text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A branch that a builder opened."""

    conversation: ConversationRef
    """The conversation that is the branch."""
    turn: int
    """The number of the NPC's last turn that was copied. It is the last round of an answer.

    0 for a branch without a past.
    """
    begins: Record
    """The opening record, which follows the copies."""
    event: Record | None
    """The record that the last copied turn answered. None if there was none or it was erased."""


def branch_ref(npc_ref: str, by_ref: str) -> str:
    """Return the reference of the mind that owns a builder's branches of an NPC."""
    return f"{npc_ref}{_MARK}{by_ref}"


def npc_of(ref: str) -> str:
    """Return the reference of an NPC, given its own reference or that of a branch."""
    return ref.partition(_MARK)[0]


def builder_of(ref: str) -> str:
    """Return the builder's reference from the reference of a branch; "" for that of an NPC."""
    return ref.partition(_MARK)[2]


def branches_by(by_ref: str) -> tuple[str, ...]:
    """Return the references of the NPCs of which a builder has branches, oldest branch first."""
    rows = _openings().filter(conversation__npc_ref__endswith=f"{_MARK}{by_ref}").order_by("pk")
    found = rows.values_list("conversation__npc_ref", flat=True)
    return tuple(dict.fromkeys(npc_of(ref) for ref in found))


def newest_branch(npc_ref: str, by_ref: str) -> Branch | None:
    """Return the branch of an NPC that a builder opened last, or None."""
    rows = _openings().filter(conversation__npc_ref=branch_ref(npc_ref, by_ref))
    row = rows.select_related("conversation").order_by("-pk").first()
    return None if row is None else _branch(row)


def branches_of(where: ConversationRef) -> tuple[ConversationRef, ...]:
    """Return the conversations of all branches of a conversation, erased ones included."""
    rows = models.Conversation.objects.filter(
        npc_ref__startswith=f"{where.npc_ref}{_MARK}",
        kind=where.kind,
        partner_ref=where.partner_ref,
        place_ref=where.place_ref,
    )
    return tuple(map(ref_of, rows.order_by("pk")))


def _openings() -> Any:
    """Return the opening records of branches that were not erased."""
    kind, of = RecordKind.SNAPSHOT.value, f'"of":"{BRANCH}"'
    return models.Record.objects.filter(kind=kind, meta__contains=of)


def _branch(row: models.Record) -> Branch:
    meta = json.loads(row.meta)
    answered = records([meta["event"]] if meta["event"] else [])
    event = next((one for one in answered if not one.is_erased), None)
    return Branch(
        conversation=ref_of(row.conversation),
        turn=meta["turn"],
        begins=record_from(row),
        event=event,
    )


def records_in_branch(branch: Branch) -> tuple[Record, ...]:
    """Return the records that were said in a branch after its copies, oldest first."""
    rows = models.Record.objects.filter(
        conversation_id=branch.conversation.id, pk__gt=int(branch.begins.id)
    )
    return records_from(rows.order_by("pk"))


def records_to_copy(turn: StoredTurn) -> tuple[Record, ...]:
    """Return the records that a branch from this turn would copy.

    Raises:
        BranchError: there can be no branch.
    """
    history, first = _history_after(*_end_of_answer(turn))
    return tuple(_records(history, first))


def open_branch(turn: StoredTurn, *, by_ref: str, by: Actor) -> Branch:
    """Open a branch after the answer that the turn belongs to, and commit it.

    An existing branch of the same builder stays readable in its earlier segment.

    Raises:
        BranchError: there can be no branch.
        HistoryConflictError: another process wrote to the branch.
    """
    last, end = _end_of_answer(turn)
    history, first = _history_after(last, end)
    shown = tuple(_records(history, first))
    lore = _lore_after(last, end)
    where = last.conversation
    branch = conversations.get_or_open_conversation(
        branch_ref(where.npc_ref, by_ref),
        kind=where.kind,
        partner_ref=where.partner_ref,
        place_ref=where.place_ref,
        like=where,
    )
    meta = {"turn": last.number, "conversation": where.id, "event": last.event_record}
    doing = f"opening a branch of NPC {where.npc_ref} from turn {last.number}"
    with one_change(doing, by=by):
        *_, begins = _write(
            branch, meta, by=by, totals=_totals(history, first), before=_copies(shown), lore=lore
        )
    event = next((record for record in shown if record.id == last.event_record), None)
    return Branch(conversation=branch, turn=last.number, begins=begins, event=event)


def open_branch_without_past(
    npc_ref: str, *, room_ref: str, by_ref: str, greeting: NewRecord | None, by: Actor
) -> Branch:
    """Open a branch in a room in which nothing was said before, and commit it.

    Args:
        greeting: What the NPC says first, if anything.

    Raises:
        HistoryConflictError: another process wrote to the branch.
    """
    branch = conversations.get_or_open_conversation(
        branch_ref(npc_ref, by_ref), kind="room", place_ref=room_ref
    )
    meta = {"turn": 0, "conversation": 0, "event": None}
    with one_change(f"opening a branch of NPC {npc_ref}", by=by):
        begins, *_ = _write(branch, meta, by=by, after=[] if greeting is None else [greeting])
    return Branch(conversation=branch, turn=0, begins=begins, event=None)


def _write(
    branch: ConversationRef,
    meta: Mapping[str, Any],
    *,
    by: Actor,
    totals: MessageTotals | None = None,
    before: Iterable[NewRecord] = (),
    after: Iterable[NewRecord] = (),
    lore: LoreState = NO_STATE,
) -> tuple[Record, ...]:
    """Write the records with which a branch begins in the current transaction, and return them.

    Args:
        before: The records before the opening record, which were copied.
        after: The records after it, which were said in the branch.
    """
    begin = windows(branch.id).end
    begin = begin.next_segment() if begin.seq else begin
    begin = replace(begin, totals=totals or MessageTotals())
    told = NewRecord(
        kind=RecordKind.SNAPSHOT, role="system", meta={"of": BRANCH, "by": by.name, **meta}
    )
    written = conversations.write_records(branch, begin, [*before, told, *after])
    remember_lore(branch, lore, turn=0)
    conversations.note_written(branch)
    return tuple(written)


def _last_round(turn: StoredTurn) -> StoredTurn:
    """Return the last turn of the answer to which a turn belongs.

    Raises:
        BranchError: the turn has not ended, or its words were erased.
    """
    last = turn
    later = turns.turn_rows(turn.npc_ref).filter(
        conversation_id=turn.conversation.id, number__gt=turn.number
    )
    for row in later.exclude(event_record=None).order_by("number").iterator():
        after = turn_from(row)
        if after.event_record != turn.event_record or not goes_on(last):
            break
        last = after
    if last.state == "open":
        raise BranchError(f"turn {last.number} is still running; wait until it has ended")
    if last.manifest.erased:
        raise BranchError(f"the words of turn {last.number} were erased; choose another turn")
    return last


ASKED_NEXT: Final = (" is asked instead", " is asked again")
"""How the outcome of a failed round ends if a model was asked once more after it."""


def goes_on(turn: StoredTurn) -> bool:
    """True if the answer went on with another round, after tool calls or after a retry."""
    return turn.outcome.startswith("used ") or turn.outcome.endswith(ASKED_NEXT)


def _end_of_answer(turn: StoredTurn) -> tuple[StoredTurn, models.Record]:
    """Return the last turn of an answer, and the record of that turn's end.

    Every ended turn has an end record, in the order of the turns. The right one is found by
    counting: in an imported transcript, the turn numbers in the records are those of the other
    game.
    """
    last = _last_round(turn)
    where = last.conversation.id
    later = models.Turn.objects.filter(conversation_id=where, number__gt=last.number)
    later = later.exclude(state="open").exclude(outcome=WITHOUT_END)
    ends = turns.ends_of_turns(where).order_by("-segment", "-seq")[later.count() :]
    end = None if last.outcome == WITHOUT_END else ends.first()
    if end is None:
        raise BranchError(f"the end of turn {last.number} is not recorded; choose another turn")
    return last, end


def _history_after(turn: StoredTurn, end: models.Record) -> tuple[History, int]:
    """Return the history at the end of a turn, and the index of the first message in its prompt."""
    cut = turn.manifest.cut if turn.manifest.segment == end.segment else None
    history = history_upto(end, cut=cut)
    return history, min(max(history.earlier, cut or 0), history.stop)


def _records(history: History, first: int) -> Iterator[Record]:
    for message in history.between(first, history.stop):
        record = record_of(message)
        assert record is not None  # Every message in the history of a conversation has a record.
        yield record


def _totals(history: History, first: int) -> MessageTotals:
    """Return the totals of the history before the first copied message."""
    left = history.between(history.earlier, first)
    return MessageTotals(
        messages=first,
        users=history.earlier_users + sum(message.is_user for message in left),
        replies=history.earlier_replies + sum(message.is_reply for message in left),
    )


def _copies(records: Iterable[Record]) -> Iterator[NewRecord]:
    """Yield the records as new ones for another conversation.

    Ids of tool calls name a place, so the copies get other ids.
    """
    ids: dict[str, str] = {}
    for record in records:
        meta = {key: value for key, value in record.meta.items() if key not in _OF_ITS_PLACE}
        if calls := meta.get("tool_calls"):
            for call in calls:
                ids[call["id"]] = f"b{len(ids):08}"
            meta["tool_calls"] = [{**call, "id": ids[call["id"]]} for call in calls]
        if (answers := meta.get("tool_call_id")) in ids:
            meta["tool_call_id"] = ids[answers]
        yield NewRecord(
            kind=record.kind, role=record.role, name=record.name, body=record.body, meta=meta
        )


def _lore_after(turn: StoredTurn, end: models.Record) -> LoreState:
    """Return the state of the lore at the end of a turn.

    The next turn of the conversation began with it. If a builder undid something before that turn,
    the record of the undo has the state.
    """
    where = end.conversation_id
    controls = models.Record.objects.filter(conversation_id=where, kind=RecordKind.CONTROL.value)
    changing = controls | turns.ends_of_turns(where)
    next_ = changing.filter(pk__gt=end.pk).order_by("pk").first()
    if next_ is not None and LORE in (told := json.loads(next_.meta)):
        return state_from(told[LORE])
    rows = turns.turn_rows(turn.npc_ref).filter(
        conversation_id=turn.conversation.id, number__gt=turn.number
    )
    row = rows.order_by("number").first()
    if row is None:
        return lore_states(turn.conversation.id)
    return state_from(turn_from(row).manifest.inputs.get("lore_state", {}))
