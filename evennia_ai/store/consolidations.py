"""Consolidations: what a model was asked to observe in a conversation, and up to where it was.

Records like those of a turn: the request is committed before the model is asked, what came of it
after. The newest of them says where the next one begins and how the tries before went, so a reload
forgets neither.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from evennia_ai import models
from evennia_ai.errors import HistoryConflictError
from evennia_ai.history.compaction.planning import Breaker
from evennia_ai.history.records import NewRecord, Record, RecordKind
from evennia_ai.history.turn.sending import Handle, key_of, sent_messages, text_of
from evennia_ai.prompt.messages import Message
from evennia_ai.store import conversations, texts
from evennia_ai.store.conversations import ConversationRef
from evennia_ai.store.record_rows import record_from
from evennia_ai.store.snapshots import Snapshots
from evennia_ai.store.state import one_transaction
from evennia_ai.store.windows import HISTORY

_OF: Final = "consolidation"
Place = tuple[int, int]
"""Segment and number of a record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Consolidated:
    """Up to which record a conversation was observed, and the breaker after the newest try."""

    upto: Place = (0, 0)
    breaker: Breaker = field(default_factory=Breaker)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedToObserve:
    """A request that is committed: its record, and the messages to send."""

    record: Record
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What came of a request. `memories` are the origins of those that were made or merged."""

    outcome: str
    reply: str = ""
    model: str = ""
    memories: tuple[str, ...] = ()
    refused: int = 0
    state: Consolidated


def newest(conversation: ConversationRef) -> Consolidated:
    """How far the conversation was observed; warm, this makes no query."""
    return _newest.read(conversation.id)


def ask(
    conversation: ConversationRef,
    request: Sequence[Message],
    *,
    model: str,
    segment: int,
    schema: Mapping[str, Any] | None,
) -> AskedToObserve:
    """Commit a request about messages of `segment`; what is sent is made from its records.

    HistoryConflictError: the conversation has left it since, and may have been erased. StoreError:
    another reason. Nothing was committed, so ask no model.
    """
    if conversations.segment(conversation) != segment:
        raise HistoryConflictError(str(conversation))
    made = [text_of(message) for message in request]
    stored = dict(texts.found(conversation, made))
    with one_transaction(f"asking what to remember of {conversation}"):
        new = conversations.append(conversation, texts.missing(made, stored))
        stored |= {key_of(record): record for record in new}
        prompt = [stored[text.key] for text in made]
        meta: dict[str, Any] = {
            "of": _OF,
            "model": model,
            "prompt": [record.place for record in prompt],
        }
        if schema is not None:
            meta["schema"] = dict(schema)
        asking = NewRecord(kind=RecordKind.INVOKE, role="system", meta=meta)
        (record,) = conversations.append(conversation, [asking])
    handles = [Handle(record=one, block="ordered") for one in prompt]
    return AskedToObserve(record=record, messages=sent_messages(handles))


def tell(conversation: ConversationRef, observed: Observed, *, asked: Record | None) -> None:
    """Commit what came of it."""
    state = observed.state
    meta = {
        "of": _OF,
        "asked": asked.place if asked is not None else None,
        "outcome": observed.outcome,
        "model": observed.model,
        "memories": list(observed.memories),
        "refused": observed.refused,
        "upto": list(state.upto),
        "failures": state.breaker.failures,
        "opened_at": state.breaker.opened_at,
    }
    told = NewRecord(kind=RecordKind.RUN_END, role="assistant", body=observed.reply, meta=meta)
    with one_transaction(f"telling what was remembered of {conversation}"):
        conversations.append(conversation, [told])
        _newest.wrote(conversation.id, state)


def place_of(record: Record) -> Place:
    """Where a record stands."""
    return record.segment, record.seq


def _load(conversation_id: int) -> Consolidated:
    rows = models.Record.objects.filter(
        conversation_id=conversation_id,
        kind=RecordKind.RUN_END.value,
        meta__contains=f'"of":"{_OF}"',
    )
    row = rows.order_by("-segment", "-seq").first()
    if row is None:
        return Consolidated()
    meta = record_from(row).meta
    segment, seq = meta["upto"]
    breaker = Breaker(failures=meta["failures"], opened_at=meta["opened_at"])
    return Consolidated(upto=(segment, seq), breaker=breaker)


_newest: Final = Snapshots(HISTORY, _load)
