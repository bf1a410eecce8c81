"""Decisions: what a decider is asked, committed before, and what it answered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from evennia_ai.errors import StoreError
from evennia_ai.history.records import NewRecord, Record, RecordKind
from evennia_ai.history.turn.sending import Handle, key_of, sent_messages, text_of
from evennia_ai.prompt.messages import Message
from evennia_ai.store import conversations, texts
from evennia_ai.store.conversations import ConversationRef
from evennia_ai.store.state import one_transaction

_DECISION: Final = "decision"


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedDecision:
    """A question that is committed: its record, and the messages to send."""

    record: Record
    messages: tuple[Message, ...]


def ask(
    conversation: ConversationRef,
    before: Sequence[Message],
    shown: Sequence[str],
    after: Sequence[Message],
    *,
    event: Record,
    model: str,
    schema: Mapping[str, Any] | None,
) -> AskedDecision:
    """Commit a question about `event`: texts, records of the history by their ids, texts.

    StoreError: nothing was committed, or a record was erased; so ask no model.
    """
    if event.segment < conversations.remembered_from(conversation):
        raise StoreError(f"record {event.id} was erased on request; nothing of it is sent")
    made = [text_of(message) for message in (*before, *after)]
    records = {record.id: record for record in conversations.records(shown)}
    stored = dict(texts.found(conversation, made))
    with one_transaction(f"asking a decider in {conversation}"):
        new = conversations.append(conversation, texts.missing(made, stored))
        stored |= {key_of(record): record for record in new}
        rendered = [Handle(record=stored[text.key], block="ordered") for text in made]
        history = [Handle(record=records[wanted], block="history") for wanted in shown]
        handles = [*rendered[: len(before)], *history, *rendered[len(before) :]]
        asking = _asking(handles, event=event, model=model, schema=schema)
        (record,) = conversations.append(conversation, [asking])
    return AskedDecision(record=record, messages=sent_messages(handles))


def tell(asked: AskedDecision, conversation: ConversationRef, *, outcome: str, reply: str) -> None:
    """Commit what came of a question, with the model's words where it said some."""
    meta = {"of": _DECISION, "asked": asked.record.place, "outcome": outcome}
    told = NewRecord(kind=RecordKind.RUN_END, role="assistant", body=reply, meta=meta)
    conversations.append(conversation, [told])


def _asking(
    handles: Sequence[Handle], *, event: Record, model: str, schema: Mapping[str, Any] | None
) -> NewRecord:
    meta: dict[str, Any] = {
        "of": _DECISION,
        "event": event.place,
        "model": model,
        "prompt": [handle.record.place for handle in handles],
    }
    if schema is not None:
        meta["schema"] = dict(schema)
    return NewRecord(kind=RecordKind.INVOKE, role="system", meta=meta)
