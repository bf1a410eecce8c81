"""Attempts: what came of the tries to compact a conversation, read from its records.

The breaker lives in them, so a reload forgets no failure and needs no table of its own.
"""

from dataclasses import dataclass

from evennia_ai import models
from evennia_ai.errors import HistoryConflictError
from evennia_ai.history.compaction.summaries import NO_ATTEMPT, Attempt, asking_record, attempt_from
from evennia_ai.history.records import NewRecord, Record, RecordKind
from evennia_ai.history.turn.sending import Handle, key_of, sent_messages, text_of
from evennia_ai.prompt.messages import Message
from evennia_ai.store import conversations, texts
from evennia_ai.store.conversations import ConversationRef, conversations_of
from evennia_ai.store.record_rows import record_from
from evennia_ai.store.state import one_transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request for a summary that is committed: its record, and the messages to send."""

    record: Record
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """What compaction did to one conversation: its newest summary, and its newest try."""

    conversation: ConversationRef
    summary: Record | None
    attempt: Attempt


def newest_attempt(conversation: ConversationRef) -> Attempt:
    """The newest try to compact the conversation; one that went well where there was none."""
    record = _newest(conversation, RecordKind.USAGE)
    return (attempt_from(record) if record is not None else None) or NO_ATTEMPT


def compacted_of(npc_ref: str) -> tuple[Compacted, ...]:
    """The conversations of an NPC that somebody tried to compact, as they were opened."""
    found = []
    for known in conversations_of(npc_ref):
        summary, attempt = _newest(known, RecordKind.SUMMARY), newest_attempt(known)
        if summary is not None or attempt is not NO_ATTEMPT:
            found.append(Compacted(conversation=known, summary=summary, attempt=attempt))
    return tuple(found)


def ask(
    conversation: ConversationRef,
    request: tuple[Message, ...],
    *,
    asked_by: str,
    model: str,
    messages: int,
    segment: int,
) -> Asked:
    """Commit a request for a summary of so many messages; what is sent is made from its records.

    The messages are those of `segment`. HistoryConflictError: the conversation has left it since,
    and may have been erased. StoreError: another reason. Nothing was committed, so ask no model.
    """
    if conversations.segment(conversation) != segment:
        raise HistoryConflictError(str(conversation))
    made = [text_of(message) for message in request]
    stored = dict(texts.found(conversation, made))
    with one_transaction(f"asking for a summary of {conversation}"):
        new = conversations.append(conversation, texts.missing(made, stored))
        stored |= {key_of(record): record for record in new}
        prompt = [stored[text.key] for text in made]
        asking = asking_record(prompt, asked_by=asked_by, model=model, messages=messages)
        (record,) = conversations.append(conversation, [asking])
    handles = [Handle(record=one, block="ordered") for one in prompt]
    return Asked(record=record, messages=sent_messages(handles))


def tell(conversation: ConversationRef, attempt: NewRecord) -> None:
    """Commit what came of a try."""
    conversations.append(conversation, [attempt])


def _newest(conversation: ConversationRef, kind: RecordKind) -> Record | None:
    rows = models.Record.objects.filter(conversation_id=conversation.id, kind=kind.value)
    row = rows.order_by("-segment", "-seq").first()
    return None if row is None or record_from(row).is_erased else record_from(row)
