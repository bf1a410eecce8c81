"""Turns: a prompt is committed before the model is called, and its reply with the end of the turn.

One transaction before the call commits the manifest, and those texts of the prompt that are not
records yet. The manifest names every message by its record. The messages to send are made from
these records only.

A turn that was open when the server stopped is marked as interrupted at the next start. It is never
run again, and its open tool calls are closed.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, NamedTuple

from django.db import IntegrityError, connection
from django.db.models import Max

from evennia_ai import models
from evennia_ai.engine.errors import (
    HistoryConflictError,
    NotStoredError,
    StoreError,
    TurnClosedError,
)
from evennia_ai.engine.history.projection import record_of
from evennia_ai.engine.history.records import (
    NewRecord,
    Record,
    RecordKind,
    closing_results,
    cut_short_reply,
    make_storable,
)
from evennia_ai.engine.history.turn.manifest import TurnManifest
from evennia_ai.engine.history.turn.seals import SEAL
from evennia_ai.engine.history.turn.sending import Draft, SentMessages, text_key
from evennia_ai.engine.lorebook.activation.timers import LoreState
from evennia_ai.engine.prompt.cache_account import Sent
from evennia_ai.engine.prompt.messages import Message
from evennia_ai.store import memories, model_calls
from evennia_ai.store.core.inserting import Insert
from evennia_ai.store.core.snapshots import Snapshots, one_transaction, value_of
from evennia_ai.store.history import conversations
from evennia_ai.store.history.record_rows import ConversationRef, records_from, ref_of
from evennia_ai.store.history.sealing import make_portable
from evennia_ai.store.history.windows import (
    HISTORY,
    forget_lore,
    lore_states,
    missing_texts,
    remember_lore,
    remember_turn,
    stored_texts,
    windows,
)
from evennia_ai.store.model_calls import NewCall

TurnState = Literal["open", "done", "failed", "interrupted"]

# Kinds of records that may be incomplete when a turn is interrupted.
_LEFT_OPEN: Final = (
    RecordKind.ASSISTANT,
    RecordKind.TOOL_CALL,
    RecordKind.TOOL_RESULT,
    RecordKind.SPOKEN,
)


class Written(NamedTuple):
    """What this process wrote for a turn.

    The integrity seal (hash) at the end of the turn is made from it, without reading it back.
    """

    manifest: bytes
    """The manifest in the form in which the turn's database row stores it."""
    settled: SentMessages
    others: Sequence[Record]
    """Records that were not sent as messages, such as the list of tools."""

    @property
    def places(self) -> dict[str, str]:
        """Return the place of each record of the turn in its conversation, by record id."""
        known = dict(zip(self.settled.records, self.settled.places, strict=True))
        return known | {record.id: record.place for record in self.others}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTurn:
    """One turn of an NPC: its prompt and its end."""

    id: int
    npc_ref: str
    number: int
    """The number of the turn, counted for each NPC from 1 over all its conversations."""
    conversation: ConversationRef
    event_record: str | None
    """The id of the record that the turn answers; None for a turn without an event."""
    state: TurnState
    manifest: TurnManifest
    created_at: float
    ended_at: float | None = None
    outcome: str = ""
    written: Written | None = field(default=None, repr=False, compare=False)
    """What this process wrote when it began the turn; None for a turn that was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BegunTurn:
    """A turn that was just committed, with the messages to send.

    These are made from its records.
    """

    turn: StoredTurn
    messages: tuple[Message, ...]


def _load_next(npc_ref: str) -> int:
    newest = models.Turn.objects.filter(npc_ref=npc_ref).aggregate(newest=Max("number"))["newest"]
    return 1 + (newest or 0)


next_number: Final = Snapshots(HISTORY, _load_next)
"""Return the number of an NPC's next turn."""


def note_turns_written(npc_ref: str) -> None:
    """Drop the number of the next turn. Call it after writing turns without `begin_turn`."""
    next_number.note_change(npc_ref)


def begin_turn(
    conversation: ConversationRef,
    *,
    draft: Draft,
    sent: Sent | None = None,
    event: Record | None = None,
    lore: LoreState | None = None,
    recalled: Sequence[int] = (),
    at_hours: float = 0.0,
    client: str = "",
    composed_in: int | None = None,
) -> BegunTurn:
    """Commit a prompt before it is sent. Then call the model with the returned messages.

    Args:
        sent: The prompt as it is sent, with which the next prompt is compared to estimate the
            cached part. None if that is not needed.
        event: The record that the turn answers. It was committed when it was heard.
        lore: The state of the lore after this prompt; None if it is unchanged.
        client: The client of the people whom the turn answers. It becomes the conversation's origin
            if there is none.
        composed_in: The segment whose history the prompt shows; None for the newest.

    Raises:
        StoreError: nothing was committed, so do not call a model.
        HistoryConflictError: another process wrote first, or a builder undid something after the
            prompt was composed.
    """
    npc_ref = conversation.npc_ref
    # Read before the transaction, because on SQLite a read inside it may make the write fail.
    number, window = next_number(npc_ref), windows(conversation.id)
    known = lore_states(conversation.id)
    is_first = bool(client) and not conversations.origin_of(conversation)
    if event is not None and event.segment < window.remembered_from:
        raise StoreError(f"record {event.id} was erased on request; nothing of it is sent")
    if composed_in is not None and composed_in < window.controlled_from:
        raise HistoryConflictError(str(conversation))
    texts = draft.texts
    stored = stored_texts(conversation, texts)
    doing = f"beginning a turn of NPC {npc_ref}"
    with _read_again_after_a_conflict(conversation), one_transaction(doing):
        new = conversations.append_in_transaction(conversation, missing_texts(texts, stored))
        used = {**stored, **{text_key(record): record for record in new}}
        settled = draft.settle(used)
        manifest = draft.commit_manifest(
            settled, segment=window.end.segment, tools_record=draft.tools_record(used)
        )
        # The inputs name the first message of the history, which the prompt may not show.
        history = window.history
        first = record_of(history[history.earlier]) if len(history) else None
        tools = None if draft.tools is None else used[draft.tools.key]
        others = tuple([record for record in (first, tools) if record is not None])
        begun = _insert_turn(conversation, number, manifest, event, settled=settled, others=others)
        next_number.note_value(npc_ref, number + 1)
        remember_turn(
            conversation,
            used,
            cut=manifest.cut,
            anchors=manifest.anchors,
            sent=sent,
            settled=settled,
        )
        if is_first:
            conversations.set_origin(conversation, client)
        if lore is not None and lore != known:
            remember_lore(conversation, lore, turn=number)
        if recalled:
            memories.mark_recalled(npc_ref, recalled, at_hours=at_hours)
    return BegunTurn(turn=begun, messages=settled.messages)


@contextmanager
def _read_again_after_a_conflict(conversation: ConversationRef) -> Iterator[None]:
    """Drop the cached turns of an NPC after another process wrote some."""
    try:
        yield
    except HistoryConflictError:
        next_number.drop(conversation.npc_ref)
        forget_lore(conversation)
        raise


def finish_turn(
    turn: StoredTurn,
    new: Sequence[NewRecord],
    *,
    outcome: str = "answered",
    call: NewCall | None = None,
) -> tuple[Record, ...]:
    """Commit the reply's records and the end of the turn together, and return the records.

    Args:
        call: The model call that gave the reply.

    Raises:
        TurnClosedError: the turn has ended already, so the reply is not written.
    """
    return _end_turn(turn, new, state="done", outcome=outcome, call=call)


def fail_turn(
    turn: StoredTurn,
    outcome: str,
    *,
    new: Sequence[NewRecord] = (),
    call: NewCall | None = None,
) -> tuple[Record, ...]:
    """Commit that the turn failed and why, with the words that were said instead of a reply."""
    return _end_turn(turn, new, state="failed", outcome=outcome, call=call)


def interrupt_turn(
    turn: StoredTurn, outcome: str, *, call: NewCall | None = None
) -> tuple[Record, ...]:
    """Commit that the server stops during the turn."""
    return _end_turn(turn, (), state="interrupted", outcome=outcome, call=call)


def close_interrupted(*, begun_before: float | None = None) -> int:
    """Mark turns as interrupted that an earlier process left open, and return their number.

    Call it before the first turn of this process, or pass the time of the process's start.

    Raises:
        StoreError: some turns may still be open.
    """
    with one_transaction("looking for interrupted turns"):
        left = models.Turn.objects.filter(state="open").select_related("conversation")
        if begun_before is not None:
            left = left.filter(created_at__lt=begun_before)
        stale = [turn_from(row) for row in left.order_by("pk")]
    for turn in stale:
        _end_turn(turn, (), state="interrupted", outcome="the server stopped before the reply")
    return len(stale)


def add_records(turn: StoredTurn, new: Sequence[NewRecord]) -> tuple[Record, ...]:
    """Commit more records of a running turn, and return them.

    Raises:
        TurnClosedError: the turn has ended meanwhile, for example because its conversation was
            erased.
    """
    # Read before the transaction, because on SQLite a read inside it may make the write fail.
    windows(turn.conversation.id)
    with one_transaction(f"adding to turn {turn.number} of NPC {turn.npc_ref}"):
        _set_state(turn, state="open")
        return conversations.append_in_transaction(turn.conversation, new)


def commit_spoken(turn: StoredTurn, text: str) -> None:
    """Commit the first part of a reply, which the NPC says before the rest has arrived."""
    said = NewRecord(
        kind=RecordKind.SPOKEN, role="assistant", body=text, meta={"turn": turn.number}
    )
    add_records(turn, [said])


def last_turn(npc_ref: str) -> StoredTurn | None:
    """Return the newest turn of an NPC in any state, or None."""
    row = turn_rows(npc_ref).order_by("-number").first()
    return None if row is None else turn_from(row)


def get_turn(npc_ref: str, number: int) -> StoredTurn:
    """Return one turn of an NPC.

    Raises:
        NotStoredError: the NPC has had no turn with this number.
    """
    row = turn_rows(npc_ref).filter(number=number).first()
    if row is None:
        raise NotStoredError(f"turn of NPC {npc_ref}", number)
    return turn_from(row)


def _end_turn(
    turn: StoredTurn,
    new: Sequence[NewRecord],
    *,
    state: TurnState,
    outcome: str,
    call: NewCall | None = None,
) -> tuple[Record, ...]:
    """Commit the end of a turn with its seal.

    If there is no reply, open tool calls and speech are closed first.

    The seal is made from the manifest in the database, because an erasure may have changed it
    meanwhile.
    """
    doing = f"ending turn {turn.number} of NPC {turn.npc_ref}"
    ended = replace(turn, state=state, outcome=make_storable(outcome), ended_at=time.time())
    with _read_again_after_a_conflict(turn.conversation), one_transaction(doing):
        row = _set_state(turn, state=ended.state, outcome=ended.outcome, ended_at=ended.ended_at)
        is_as_written = turn.written is not None and turn.written.manifest == row
        sealed = make_portable(
            ended,
            turn.manifest if is_as_written else TurnManifest.from_row(row),
            event=turn.event_record,
            known=turn.written.places if turn.written is not None else {},
        )
        end = NewRecord(
            kind=RecordKind.RUN_END,
            role="system",
            body=outcome,
            meta={"turn": turn.number, "state": state, SEAL: sealed.seal},
        )
        closing = () if state == "done" else _closing_records(turn, outcome)
        written = conversations.append_in_transaction(turn.conversation, [*closing, *new, end])
        if call is not None:
            model_calls.add_call(call)
    return written[len(closing) : -1]


def _closing_records(turn: StoredTurn, outcome: str) -> tuple[NewRecord, ...]:
    """Return records that close tool calls without a result and a reply without an end."""
    rows = models.Record.objects.filter(
        conversation_id=turn.conversation.id,
        kind__in=_LEFT_OPEN,
        pk__gt=int(turn.event_record or 0),
    )
    since = records_from(rows.order_by("pk"))
    return (*closing_results(since, outcome=outcome), *cut_short_reply(since, turn=turn.number))


_CHANGE: Final = f'UPDATE "{models.Turn._meta.db_table}" SET '  # noqa: S608
_WHERE_OPEN: Final = " WHERE id = %s AND state = 'open' RETURNING manifest"


def _set_state(turn: StoredTurn, **values: Any) -> bytes:
    """Change the row of a running turn, and return the manifest in it.

    Raises:
        TurnClosedError: the turn has ended.
    """
    columns = ", ".join(f'"{column}" = %s' for column in values)
    with connection.cursor() as cursor:
        cursor.execute(f"{_CHANGE}{columns}{_WHERE_OPEN}", [*values.values(), turn.id])
        row = cursor.fetchone()
    if row is None:
        raise TurnClosedError(
            f"turn {turn.number} of NPC {turn.npc_ref} has ended already; nothing was written"
        )
    return bytes(row[0])


class _NewRow(NamedTuple):
    """The columns of a turn's row before it is written."""

    npc_ref: str
    number: int
    conversation_id: int
    event_record_id: int | None
    state: TurnState
    manifest: bytes
    is_erased: bool
    prompt_sha256: str
    tokens: int
    cut: int
    model: str
    outcome: str
    created_at: float


_insert: Final = Insert(models.Turn, _NewRow._fields)


def _insert_turn(
    conversation: ConversationRef,
    number: int,
    manifest: TurnManifest,
    event: Record | None,
    *,
    settled: SentMessages,
    others: Sequence[Record],
) -> StoredTurn:
    """Write a turn inside the current transaction, and return it.

    If an error is raised, the transaction must be rolled back.
    """
    row = _NewRow(
        npc_ref=conversation.npc_ref,
        number=number,
        conversation_id=conversation.id,
        event_record_id=int(event.id) if event else None,
        state="open",
        manifest=manifest.to_row(),
        is_erased=False,
        prompt_sha256=manifest.sha256,
        tokens=manifest.tokens,
        cut=manifest.cut,
        model=manifest.model,
        outcome="",
        created_at=time.time(),
    )
    try:
        (pk,) = _insert([row])
    except IntegrityError as error:
        raise HistoryConflictError(f"the turns of NPC {conversation.npc_ref}") from error
    return StoredTurn(
        id=pk,
        npc_ref=row.npc_ref,
        number=number,
        conversation=conversation,
        event_record=event.id if event else None,
        state=row.state,
        manifest=manifest,
        created_at=row.created_at,
        written=Written(row.manifest, settled, others),
    )


def turn_rows(npc_ref: str) -> Any:
    """Return the rows of an NPC's turns, joined with their conversations.

    Only for use in the store.
    """
    return models.Turn.objects.filter(npc_ref=npc_ref).select_related("conversation")


def ends_of_turns(conversation_id: int) -> Any:
    """Return the rows of records that end turns. Only for use in the store.

    Other requests, such as observations, end with records of the same kind that name no turn.
    """
    ends = models.Record.objects.filter(kind=RecordKind.RUN_END.value, meta__contains='"turn":')
    return ends.filter(conversation_id=conversation_id)


def turn_from(row: models.Turn) -> StoredTurn:
    """Return the turn of a row that was read together with its conversation."""
    return value_of(
        StoredTurn,
        row,
        conversation=ref_of(row.conversation),
        event_record=str(row.event_record_id) if row.event_record_id else None,
        manifest=TurnManifest.from_row(row.manifest),
        written=None,
    )
