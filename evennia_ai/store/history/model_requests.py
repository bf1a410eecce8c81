"""Requests to summarisers, observers and deciders, committed before a model is asked.

The messages of each request are records, like those of a turn, and so is the answer. The newest of
these records also contain the state: how earlier tries ended, and where the next one begins. So a
reload of the server loses nothing, and no separate table is needed.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from django.db.models import Max

from evennia_ai import models
from evennia_ai.engine.errors import HistoryConflictError, StaleError, StoreError
from evennia_ai.engine.history.compaction.planning import Breaker
from evennia_ai.engine.history.compaction.summaries import (
    NO_ATTEMPT,
    SummaryAttempt,
    parse_attempt,
    request_record,
)
from evennia_ai.engine.history.records import NewRecord, Record, RecordKind
from evennia_ai.engine.history.turn.sending import Handle, make_text, sent_messages, text_key
from evennia_ai.engine.prompt.messages import Message
from evennia_ai.store.core.snapshots import Snapshots, one_transaction
from evennia_ai.store.history import conversations, record_rows
from evennia_ai.store.history.conversations import conversations_of
from evennia_ai.store.history.record_rows import ConversationRef, record_from
from evennia_ai.store.history.windows import HISTORY, missing_texts, stored_texts, windows

_CONSOLIDATION: Final = "consolidation"
_DECISION: Final = "decision"
Place = tuple[int, int]
"""The place of a record: the number of its segment and its number in the segment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """A committed request to a model."""

    record: Record
    """The record of the request itself."""
    messages: tuple[Message, ...]
    """The messages to send, made from records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """The state of compaction in one conversation."""

    conversation: ConversationRef
    summary: Record | None
    """The newest summary."""
    attempt: SummaryAttempt
    """The newest attempt to compact the conversation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Consolidated:
    """How far memories were made from a conversation, and the state of the breaker after that."""

    upto: Place = (0, 0)
    breaker: Breaker = field(default_factory=Breaker)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """The result of asking a model what an NPC should remember."""

    outcome: str
    reply: str = ""
    model: str = ""
    memories: tuple[str, ...] = ()
    """The origins of the memories that were created or merged."""
    refused: int = 0
    state: Consolidated


# Summaries


def ask_for_summary(
    conversation: ConversationRef,
    request: Sequence[Message],
    *,
    asked_by: str,
    model: str,
    messages: int,
    segment: int,
) -> ModelRequest:
    """Commit a request for a summary.

    If an error is raised, nothing was committed, so do not call a model.

    Args:
        messages: The number of messages of `segment` that the summary covers.

    Raises:
        HistoryConflictError: the conversation has another segment by now, and may have been erased.
        StoreError: any other reason.
    """
    refuse_another_segment(conversation, segment)

    def asking(sent: Sequence[Handle]) -> NewRecord:
        prompt = [handle.record for handle in sent]
        return request_record(prompt, asked_by=asked_by, model=model, messages=messages)

    doing = f"asking for a summary of {conversation}"
    return _commit_request(conversation, request, asking=asking, doing=doing)


def commit_attempt(conversation: ConversationRef, attempt: NewRecord) -> None:
    """Commit the result of an attempt to compact a conversation."""
    conversations.append_records(conversation, [attempt])


def newest_attempt(conversation: ConversationRef) -> SummaryAttempt:
    """Return the newest attempt to compact a conversation.

    If there was none, return a successful one.
    """
    record = _newest(conversation, RecordKind.USAGE)
    return (parse_attempt(record) if record is not None else None) or NO_ATTEMPT


def compacted_of(npc_ref: str) -> tuple[Compacted, ...]:
    """Return the conversations of an NPC that were compacted, successfully or not, oldest first."""
    found = []
    for known in conversations_of(npc_ref):
        summary, attempt = _newest(known, RecordKind.SUMMARY), newest_attempt(known)
        if summary is not None or attempt is not NO_ATTEMPT:
            found.append(Compacted(conversation=known, summary=summary, attempt=attempt))
    return tuple(found)


def _newest(conversation: ConversationRef, kind: RecordKind) -> Record | None:
    rows = models.Record.objects.filter(conversation_id=conversation.id, kind=kind.value)
    row = rows.order_by("-segment", "-seq").first()
    return None if row is None or record_from(row).is_erased else record_from(row)


# Observations


def ask_to_observe(
    conversation: ConversationRef,
    request: Sequence[Message],
    *,
    model: str,
    segment: int,
    schema: Mapping[str, Any] | None,
) -> ModelRequest:
    """Commit a request to find what an NPC should remember from messages of `segment`.

    If an error is raised, nothing was committed, so do not call a model.

    Raises:
        HistoryConflictError: the conversation has another segment by now, and may have been erased.
        StoreError: any other reason.
    """
    refuse_another_segment(conversation, segment)

    def asking(sent: Sequence[Handle]) -> NewRecord:
        return _request_record(sent, schema, of=_CONSOLIDATION, model=model)

    doing = f"asking what to remember of {conversation}"
    return _commit_request(conversation, request, asking=asking, doing=doing)


def commit_observation(
    conversation: ConversationRef, observed: Observed, *, asked: str | None
) -> None:
    """Commit the result of an observation.

    Args:
        asked: The place of the request's record.
    """
    state = observed.state
    meta = {
        "of": _CONSOLIDATION,
        "asked": asked,
        "outcome": observed.outcome,
        "model": observed.model,
        "memories": list(observed.memories),
        "refused": observed.refused,
        "upto": list(state.upto),
        "failures": state.breaker.failures,
        "opened_at": state.breaker.opened_at,
    }
    told = NewRecord(kind=RecordKind.RUN_END, role="assistant", body=observed.reply, meta=meta)
    with one_transaction(f"storing what was remembered from {conversation}"):
        conversations.append_records(conversation, [told])
        consolidated.note_value(conversation.id, state)


def unobserved_rooms(person_ref: str, *, npc_ref: str | None = None) -> tuple[ConversationRef, ...]:
    """Return the room conversations in which a person spoke after the last observation."""
    lines = models.Record.objects.filter(
        conversation__kind="room",
        kind__in=[kind.value for kind in conversations.OF_SOMEBODY],
        meta__contains=f'"speaker":{json.dumps(person_ref)}',
    )
    lines = lines if npc_ref is None else lines.filter(conversation__npc_ref=npc_ref)
    newest = lines.values("conversation").annotate(newest=Max("pk")).order_by("conversation")
    return tuple(
        conversations.conversation_by_number(row.conversation_id)
        for row in models.Record.objects.filter(pk__in=[one["newest"] for one in newest])
        if (row.segment, row.seq) > consolidated(row.conversation_id).upto
    )


def mark_observed(person_ref: str, *, npc_ref: str | None = None) -> tuple[int, ...]:
    """Mark a person's words in rooms as read by memory jobs, so that NPCs learn nothing from them.

    The results of memory jobs that are running now, in the game or in workers, are refused.

    Returns:
        The numbers of the conversations that were marked.
    """
    found = unobserved_rooms(person_ref, npc_ref=npc_ref)
    for where in found:
        end = windows(where.id).end
        state = replace(consolidated(where.id), upto=(end.segment, end.seq))
        observed = Observed(outcome="a person who spoke was forgotten", state=state)
        commit_observation(where, observed, asked=None)
    return tuple(where.id for where in found)


def refuse_observed(conversation_id: int, *, since: tuple[int, int]) -> None:
    """Check in the database how far memory jobs have read a conversation.

    Args:
        since: The place up to which it was read when the caller's job began.

    Raises:
        StaleError: another job has read further, or a person who spoke was forgotten.
    """
    upto = _load_consolidated(conversation_id).upto
    if upto != since:
        raise StaleError(
            f"another memory job has read conversation {conversation_id} in the meantime"
        )


def _load_consolidated(conversation_id: int) -> Consolidated:
    rows = models.Record.objects.filter(
        conversation_id=conversation_id,
        kind=RecordKind.RUN_END.value,
        meta__contains=f'"of":"{_CONSOLIDATION}"',
    )
    row = rows.order_by("-segment", "-seq").first()
    if row is None:
        return Consolidated()
    meta = record_from(row).meta
    segment, seq = meta["upto"]
    breaker = Breaker(failures=meta["failures"], opened_at=meta["opened_at"])
    return Consolidated(upto=(segment, seq), breaker=breaker)


consolidated: Final = Snapshots(HISTORY, _load_consolidated)
"""Return how far memory jobs have read a conversation, by its number.

No query is made if the value is in memory.
"""


# Decisions


def ask_to_decide(
    conversation: ConversationRef,
    before: Sequence[Message],
    shown: Sequence[str],
    after: Sequence[Message],
    *,
    event: Record,
    model: str,
    schema: Mapping[str, Any] | None,
) -> ModelRequest:
    """Commit a question about `event` to a decider.

    It consists of texts, records of the history by their ids, and more texts.

    Raises:
        StoreError: nothing was committed, or a record was erased. Do not call a model.
    """
    if event.segment < windows(conversation.id).remembered_from:
        raise StoreError(f"record {event.id} was erased on request; nothing of it is sent")
    records = {record.id: record for record in record_rows.records(shown)}
    history = [Handle(record=records[wanted], block="history") for wanted in shown]

    def asking(sent: Sequence[Handle]) -> NewRecord:
        return _request_record(sent, schema, of=_DECISION, event=event.place, model=model)

    return _commit_request(
        conversation,
        (*before, *after),
        asking=asking,
        doing=f"asking a decider in {conversation}",
        history=history,
        at=len(before),
    )


def commit_decision(
    conversation: ConversationRef, asked: ModelRequest, *, outcome: str, reply: str
) -> None:
    """Commit the result of a question to a decider, with the model's reply if there was one."""
    meta = {"of": _DECISION, "asked": asked.record.place, "outcome": outcome}
    told = NewRecord(kind=RecordKind.RUN_END, role="assistant", body=reply, meta=meta)
    conversations.append_records(conversation, [told])


# Functions that all kinds of requests share


def _commit_request(
    conversation: ConversationRef,
    request: Sequence[Message],
    *,
    asking: Callable[[Sequence[Handle]], NewRecord],
    doing: str,
    history: Sequence[Handle] = (),
    at: int = 0,
) -> ModelRequest:
    """Commit the texts of a request, and the record of the request.

    Args:
        history: Records that are sent before the text with the index `at`.
    """
    made = [make_text(message) for message in request]
    stored = dict(stored_texts(conversation, made))
    with one_transaction(doing):
        new = conversations.append_records(conversation, missing_texts(made, stored))
        stored |= {text_key(record): record for record in new}
        sent = [Handle(record=stored[text.key], block="ordered") for text in made]
        sent[at:at] = history
        (record,) = conversations.append_records(conversation, [asking(sent)])
    return ModelRequest(record=record, messages=sent_messages(sent))


def _request_record(
    sent: Sequence[Handle], schema: Mapping[str, Any] | None, **meta: Any
) -> NewRecord:
    """Return the record of a request. It contains the places of the records that were sent."""
    meta["prompt"] = [handle.record.place for handle in sent]
    if schema is not None:
        meta["schema"] = dict(schema)
    return NewRecord(kind=RecordKind.INVOKE, role="system", meta=meta)


def refuse_another_segment(conversation: ConversationRef, segment: int) -> None:
    """Check that a conversation is still in this segment.

    After an erasure it is in another one, and then a model's words about it must not be stored.

    Raises:
        HistoryConflictError: the conversation is in another segment.
    """
    if windows(conversation.id).end.segment != segment:
        raise HistoryConflictError(str(conversation))
