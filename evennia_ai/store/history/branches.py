"""Branches: a copy of a conversation as a turn left it, to go on in and to throw away.

A branch is a conversation of a mind of its own: its reference is the NPC's and the builder's
(`12~7`), so its turns have numbers of their own and nothing that asks for what NPC 12 said, learnt
or was told finds any of it. It begins with copies of the messages that the turn's prompt could
show and what came of the turn, then a record that tells where they are from; what follows that one
was said in the branch. Like every conversation it is committed, chained and replayed.
"""

import json
from collections.abc import Iterable, Iterator
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
from evennia_ai.engine.lorebook.activation.timers import LoreState, state_from
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
"""In the meta of the record behind the copies: what it is of."""
# What of a record's meta counts in its own conversation alone.
_OF_ITS_PLACE: Final = frozenset({"before", "compacted_from", "tail", CORRECTS})


class BranchError(EvenniaAIError):
    """No branch can be opened from a turn; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A branch of one builder."""

    conversation: ConversationRef
    """Its own."""
    turn: int
    """The number of the NPC's turn it goes on from: the last of the answer that was named."""
    begins: Record
    """The record behind the copies."""
    event: Record | None
    """The record that the turn answered, None where it answered none or that is gone."""


def branch_ref(npc_ref: str, by_ref: str) -> str:
    """The reference of the mind that a builder's branches of an NPC are of."""
    return f"{npc_ref}{_MARK}{by_ref}"


def npc_of(ref: str) -> str:
    """The reference of the NPC, of itself or of a branch of it."""
    return ref.partition(_MARK)[0]


def builder_of(ref: str) -> str:
    """Return the reference of the builder whose branch this is, "" for the NPC itself."""
    return ref.partition(_MARK)[2]


def branches_by(by_ref: str) -> tuple[str, ...]:
    """The references of the NPCs of which a builder has a branch, in the order of opening."""
    rows = _openings().filter(conversation__npc_ref__endswith=f"{_MARK}{by_ref}").order_by("pk")
    found = rows.values_list("conversation__npc_ref", flat=True)
    return tuple(dict.fromkeys(npc_of(ref) for ref in found))


def newest_branch(npc_ref: str, by_ref: str) -> Branch | None:
    """The branch that a builder opened last of an NPC, None where there is none any more."""
    rows = _openings().filter(conversation__npc_ref=branch_ref(npc_ref, by_ref))
    row = rows.select_related("conversation").order_by("-pk").first()
    return None if row is None else _branch(row)


def branches_of(where: ConversationRef) -> tuple[ConversationRef, ...]:
    """The conversations of branches that were opened from this one, also those that were erased."""
    rows = models.Conversation.objects.filter(
        npc_ref__startswith=f"{where.npc_ref}{_MARK}",
        kind=where.kind,
        partner_ref=where.partner_ref,
        place_ref=where.place_ref,
    )
    return tuple(map(ref_of, rows.order_by("pk")))


def _openings() -> Any:
    """The records behind copies that were not erased."""
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


def said_in(branch: Branch) -> tuple[Record, ...]:
    """All records of the branch that are no copies, oldest first."""
    rows = models.Record.objects.filter(conversation_id=branch.conversation.id)
    later = rows.filter(segment=branch.begins.segment, seq__gt=branch.begins.seq)
    return records_from(later.order_by("seq"))


def copied(turn: StoredTurn) -> tuple[Record, ...]:
    """The records that a branch from the turn would copy. BranchError: there can be none."""
    history, first = _left_by(*_end(turn))
    return tuple(_records(history, first))


def opened(turn: StoredTurn, *, by_ref: str, by: Actor) -> Branch:
    """Commit a branch from what the answer left that the turn was a part of.

    One that the builder has already stays as it is, in the segment before. BranchError: there can
    be no branch. HistoryConflictError: another process wrote to it.
    """
    last, end = _end(turn)
    history, first = _left_by(last, end)
    shown = tuple(_records(history, first))
    lore = _lore_after(last, end)
    where = last.conversation
    branch = conversations.conversation(
        branch_ref(where.npc_ref, by_ref),
        kind=where.kind,
        partner_ref=where.partner_ref,
        place_ref=where.place_ref,
        like=where,
    )
    meta = {
        "of": BRANCH,
        "by": by.name,
        "turn": last.number,
        "conversation": where.id,
        "event": last.event_record,
    }
    begin = windows(branch.id).end
    begin = begin.next_segment() if begin.seq else begin
    told = NewRecord(kind=RecordKind.SNAPSHOT, role="system", meta=meta)
    with one_change(f"opening a branch of NPC {where.npc_ref} from turn {last.number}", by=by):
        begin = replace(begin, totals=_totals(history, first))
        *_, begins = conversations.written_all(branch, begin, [*_copies(shown), told])
        remember_lore(branch, lore, turn=0)
        conversations.written_past(branch)
    event = next((record for record in shown if record.id == last.event_record), None)
    return Branch(conversation=branch, turn=last.number, begins=begins, event=event)


def _last_round(turn: StoredTurn) -> StoredTurn:
    """The last turn of the answer that this one was a part of, which has ended and has words."""
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
        raise BranchError(
            f"turn {last.number} is still under way; a branch goes on from one that has ended"
        )
    if last.manifest.erased:
        raise BranchError(f"the words of turn {last.number} were erased; there is nothing to go on")
    return last


ASKED_NEXT: Final = (" is asked instead", " is asked again")
"""With what the outcome of a failed round ends after which a model was asked once more."""


def goes_on(turn: StoredTurn) -> bool:
    """True if another round of the same answer followed: after tools, or asked otherwise."""
    return turn.outcome.startswith("used ") or turn.outcome.endswith(ASKED_NEXT)


def _end(turn: StoredTurn) -> tuple[StoredTurn, models.Record]:
    """The last turn of the answer that this one was a part of, and the record of its end.

    Each turn has written its end, in their order; the numbers in these are those of the game that
    a transcript came from.
    """
    last = _last_round(turn)
    where = last.conversation.id
    later = models.Turn.objects.filter(conversation_id=where, number__gt=last.number)
    later = later.exclude(state="open").exclude(outcome=WITHOUT_END)
    ends = turns.ends_of_turns(where).order_by("-segment", "-seq")[later.count() :]
    end = None if last.outcome == WITHOUT_END else ends.first()
    if end is None:
        raise BranchError(f"the end of turn {last.number} is not recorded; take another turn")
    return last, end


def _left_by(turn: StoredTurn, end: models.Record) -> tuple[History, int]:
    """The history when the turn had ended, and the index of the first message its prompt had."""
    cut = turn.manifest.cut if turn.manifest.segment == end.segment else None
    history = history_upto(end, cut=cut)
    return history, min(max(history.earlier, cut or 0), history.stop)


def _records(history: History, first: int) -> Iterator[Record]:
    for message in history.between(first, history.stop):
        record = record_of(message)
        assert record is not None  # the history of a conversation is made from records
        yield record


def _totals(history: History, first: int) -> MessageTotals:
    """The totals of what stands before the copies."""
    left = history.between(history.earlier, first)
    return MessageTotals(
        messages=first,
        users=history.earlier_users + sum(message.is_user for message in left),
        replies=history.earlier_replies + sum(message.is_reply for message in left),
    )


def _copies(records: Iterable[Record]) -> Iterator[NewRecord]:
    """What is said in the records, at another place of another conversation.

    Calls of tools get other ids: those of a call tell its place.
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
    """What lore remembered when the turn had ended: what the next one there began with.

    Where a builder took something back before that one, it is what the control has written down.
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
