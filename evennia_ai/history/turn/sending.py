"""Sending: the messages a model gets are made from stored records and from nothing else.

A handle is a stored record and where a prompt shows it; a plain string, a message, or a record
nobody stored cannot be sent. The texts a prompt was rendered to become records here, with where
each stretch of them came from. So does the list of tools: it goes beside the messages, as a
snapshot that is stored once in a segment for as long as it stays the same.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, NamedTuple

from evennia_ai.errors import ReplayError
from evennia_ai.history.projection import message_of
from evennia_ai.history.records import (
    NewRecord,
    Record,
    RecordKind,
    canonical_json,
    content_sha256,
    storable,
)
from evennia_ai.prompt.memo import Slot
from evennia_ai.prompt.messages import Block, Message, ToolSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Handle:
    """A stored record, in the block of the prompt where it is shown."""

    record: Record
    block: Block
    injected: bool = False


class TextKey(NamedTuple):
    """What tells a text of a prompt from every other; equal texts of a segment share a record."""

    kind: RecordKind
    role: str
    content_sha256: str


class NewText(NamedTuple):
    """A rendered text as the record it becomes."""

    new: NewRecord
    key: TextKey


def sent_messages(handles: Iterable[Handle]) -> tuple[Message, ...]:
    """The messages that are sent, in order.

    TypeError: something is no handle of a stored record. ReplayError: a record has no words.
    """
    shown = list(handles)
    for handle in shown:
        _check_sendable(handle)
    return tuple([_sent(handle) for handle in shown])


def storable_messages(messages: Sequence[Message]) -> Sequence[Message]:
    """The messages with what no database stores replaced; the same ones where there is nothing."""
    if all(_is_storable(message) for message in messages):
        return messages
    return tuple(m if _is_storable(m) else _stored_form(m) for m in messages)


_TEXT: Final = Slot[NewText]("text")


def text_of(message: Message, *, before: str | None = None) -> NewText:
    """The record that a rendered message becomes.

    A text that stays is kept for where it stands: before the record at the place `before`. No
    other one is equal to it.
    """
    if message.stays:
        return _text(message, {"stays": True, "of": message.of, "before": before})
    known = message.memo.get(_TEXT)
    if known is not None:
        return known
    made = _text(message, {})
    message.memo[_TEXT] = made
    return made


def key_of(record: Record) -> TextKey:
    """What tells this stored text from others."""
    return TextKey(record.kind, record.role, record.content_sha256)


def _check_sendable(handle: Handle) -> None:
    if not isinstance(handle, Handle):
        raise TypeError(
            f"a prompt is made of handles of stored records, not of {type(handle).__name__};"
            " append what shall be sent to the history and give its handle"
        )
    if handle.record.is_erased:
        raise ReplayError(f"record {handle.record.id} of the turn was erased on request")


def _sent(handle: Handle) -> Message:
    record = handle.record
    message = message_of(record)
    if message is None:
        raise ReplayError(f"record {record.id} is no message ({record.kind})")
    if handle.block == "history" and not handle.injected:
        return message
    origin = message.origin if handle.injected else handle.block
    return replace(message, block=handle.block, injected=handle.injected, origin=origin)


def _text(message: Message, meta: dict[str, Any]) -> NewText:
    meta["parts"] = [[p.origin, p.start, p.end, p.revision] for p in message.parts]
    if message.tool_calls:
        meta["tool_calls"] = [asdict(call) for call in message.tool_calls]
    if message.tool_call_id is not None:
        meta["tool_call_id"] = message.tool_call_id
    is_block = message.stays or message.block == "dynamic"
    new = NewRecord(
        kind=RecordKind.CONTEXT_BLOCK if is_block else RecordKind.COMPONENT_REV,
        role=message.role,
        name=message.name or "",
        body=message.content,
        meta=meta,
    )
    return NewText(new, TextKey(new.kind, new.role, content_sha256(new)))


def _is_storable(message: Message) -> bool:
    """Whether the text can be stored as it is; that of a record can."""
    return message.record is not None or (
        _can_be_stored(message.content) and _can_be_stored(message.name or "")
    )


def _can_be_stored(text: str) -> bool:
    return (text.isascii() and "\x00" not in text) or storable(text) == text


def _stored_form(message: Message) -> Message:
    """A copy of its own: nothing that is known about the other one is right for it."""
    return Message(
        role=message.role,
        content=storable(message.content),
        name=storable(message.name) if message.name else message.name,
        block=message.block,
        injected=message.injected,
        counted=message.counted,
        stays=message.stays,
        of=message.of,
        origin=message.origin,
        revision=message.revision,
        joined=message.joined,
        tool_calls=message.tool_calls,
        tool_call_id=message.tool_call_id,
    )


TOOLS = "tools"
"""What a snapshot of tools says that it is of."""


def tool_list(tools: Iterable[ToolSpec]) -> NewText:
    """The record that a list of tools becomes."""
    body = canonical_json([[one.name, one.description, dict(one.parameters)] for one in tools])
    new = NewRecord(kind=RecordKind.SNAPSHOT, role="system", body=body, meta={"of": TOOLS})
    return NewText(new, TextKey(new.kind, new.role, content_sha256(new)))
