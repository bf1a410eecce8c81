"""Projection: what of the records a prompt shows, and as which message.

A pure function of the records: the same records give the same bytes. It chooses and packs; it
never changes what happened.
"""

from collections.abc import Iterable
from typing import Final

from evennia_ai.history.records import Record, RecordKind
from evennia_ai.prompt.history import History
from evennia_ai.prompt.messages import Message, ToolCall

# What was said and done: the messages of the history.
CONVERSATION: Final = frozenset(
    {
        RecordKind.USER,
        RecordKind.ASSISTANT,
        RecordKind.TOOL_CALL,
        RecordKind.TOOL_RESULT,
        RecordKind.EVENT,
        RecordKind.REMINDER,
        RecordKind.SUMMARY,
    }
)
# Texts of a prompt that injection depth does not count.
BOOKKEEPING: Final = frozenset({RecordKind.CONTEXT_BLOCK, RecordKind.NOTE_ANCHOR})


def message_of(record: Record) -> Message | None:
    """The record as a message; None where it has nothing to say to a model."""
    counted = record.kind in CONVERSATION
    if not counted and record.kind not in BOOKKEEPING:
        return None
    return Message(
        role=record.role,
        content=record.body,
        name=record.name or None,
        counted=counted,
        origin=f"history:{record.id}",
        record=record.id,
        tool_calls=tuple(ToolCall(**call) for call in record.meta.get("tool_calls", ())),
        tool_call_id=record.meta.get("tool_call_id"),
    )


def project(
    records: Iterable[Record],
    *,
    earlier: int = 0,
    earlier_users: int = 0,
    earlier_replies: int = 0,
    kinds: frozenset[RecordKind] = CONVERSATION,
) -> History:
    """The history of these records, oldest first.

    `earlier` messages were left behind before the first one, `earlier_users` of them of role
    user and `earlier_replies` of role assistant. Context blocks are left out: each prompt
    shows its own turn's block alone.
    """
    shown = (message_of(record) for record in records if record.kind in kinds)
    return History(
        (message for message in shown if message is not None),
        earlier=earlier,
        earlier_users=earlier_users,
        earlier_replies=earlier_replies,
    )
