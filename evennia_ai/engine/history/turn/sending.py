"""Sending: a prompt becomes the messages that are sent, which are made only from stored records.

A draft has the manifest of a turn without the ids of records that do not exist yet: those of the
texts that the prompt rendered. The store commits these texts, each with the origins of its parts.
Then the draft becomes handles: stored records, and the block in which the prompt shows each. A
plain string, a message, or a record that is not stored cannot be sent. The list of tools is a
snapshot next to the messages. It is stored once in a segment until it changes.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from typing import Any, Final, NamedTuple

from evennia_ai.engine.errors import ReplayError
from evennia_ai.engine.history.projection import message_of, record_of
from evennia_ai.engine.history.records import (
    NewRecord,
    Record,
    RecordKind,
    canonical_json,
    content_sha256,
    make_storable,
)
from evennia_ai.engine.history.turn.manifest import RecordedMessage, TurnManifest
from evennia_ai.engine.lorebook.book import Unmatched
from evennia_ai.engine.prompt.cache_account import CacheAccount
from evennia_ai.engine.prompt.memo import Memo, Slot, kept
from evennia_ai.engine.prompt.messages import (
    Block,
    Message,
    ToolSpec,
    message_tokens,
    messages_sha256,
)
from evennia_ai.engine.prompt.prompt import Prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class Handle:
    """A stored record, and the block of the prompt in which it is shown."""

    record: Record
    block: Block
    injected: bool = False
    _message: Message | None = field(default=None, init=False, repr=False, compare=False)
    _recorded: RecordedMessage | None = field(default=None, init=False, repr=False, compare=False)

    def as_recorded(self, tokens: int) -> RecordedMessage:
        """Return the record as a manifest names it: the same object while its cost is the same."""
        known = self._recorded
        if known is None or known.tokens != tokens:
            known = RecordedMessage(self.record.id, self.block, self.injected, tokens)
            object.__setattr__(self, "_recorded", known)
        return known


class TextKey(NamedTuple):
    """The identity of a prompt's text. Equal texts of a segment share one record."""

    kind: RecordKind
    role: str
    content_sha256: str


class NewText(NamedTuple):
    """A rendered text as the record it becomes."""

    new: NewRecord
    key: TextKey


def sent_messages(handles: Iterable[Handle]) -> tuple[Message, ...]:
    """Return the messages to send, in order.

    Raises:
        TypeError: An item is not the handle of a stored record.
        ReplayError: A record has no words.
    """
    shown = list(handles)
    for handle in shown:
        if not isinstance(handle, Handle):
            raise TypeError(
                "a prompt is made of handles of stored records, not of"
                f" {type(handle).__name__}; append what shall be sent to the history and give"
                " its handle"
            )
    for record in [handle.record for handle in shown if not handle.record.body]:
        if record.is_erased:
            raise ReplayError(f"record {record.id} of the turn was erased on request")
    return tuple([handle._message or _shown(handle) for handle in shown])


def storable_messages(messages: Sequence[Message]) -> Sequence[Message]:
    """Return the messages with U+FFFD for characters that cannot be stored."""
    texts = [message for message in messages if message.record is None]
    if all(map(_is_storable, texts)):
        return messages
    return tuple(m if _is_storable(m) else _stored_form(m) for m in messages)


_TEXT: Final = Slot[NewText]("text")


def make_text(message: Message, *, before: str | None = None) -> NewText:
    """Return the record that a rendered message becomes.

    A staying text is kept for its place before the record at `before`, and shares no record.
    """
    if message.stays:
        return _new_text(message, {"stays": True, "of": message.of, "before": before})
    known = message.memo.get(_TEXT)
    if known is not None:
        return known
    made = _new_text(message, {})
    message.memo[_TEXT] = made
    return made


def text_key(record: Record) -> TextKey:
    """Return the key of a stored text."""
    return TextKey(record.kind, record.role, record.content_sha256)


def _shown(handle: Handle) -> Message:
    """Return the message of a handle, cached on the handle."""
    record = handle.record
    message = message_of(record)
    if message is None:
        raise ReplayError(f"record {record.id} is no message ({record.kind})")
    if handle.block != "history" or handle.injected:
        origin = message.origin if handle.injected else handle.block
        message = replace(message, block=handle.block, injected=handle.injected, origin=origin)
    object.__setattr__(handle, "_message", message)
    return message


def _new_text(message: Message, meta: dict[str, Any]) -> NewText:
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
    """True if the text can be stored unchanged. The text of a record always can."""
    return message.record is not None or (
        _can_be_stored(message.content) and _can_be_stored(message.name or "")
    )


def _can_be_stored(text: str) -> bool:
    return (text.isascii() and "\x00" not in text) or make_storable(text) == text


def _stored_form(message: Message) -> Message:
    """Return a storable copy with its own memo: cached values of the original do not fit it."""
    name = make_storable(message.name) if message.name else message.name
    return replace(message, content=make_storable(message.content), name=name, memo=Memo())


TOOLS = "tools"
"""The value of `of` in the meta of a tool list's snapshot."""


def tool_list_record(tools: Iterable[ToolSpec]) -> NewText:
    """Return the record of a list of tools."""
    body = canonical_json([[one.name, one.description, dict(one.parameters)] for one in tools])
    return _tools_text(body)


@lru_cache(maxsize=256)
def _tools_text(body: str) -> NewText:
    """Return the record of a tool list's JSON. Cached: an NPC has the same tools in most turns."""
    new = NewRecord(kind=RecordKind.SNAPSHOT, role="system", body=body, meta={"of": TOOLS})
    return NewText(new, TextKey(new.kind, new.role, content_sha256(new)))


def parse_tools(record: Record) -> tuple[ToolSpec, ...]:
    """Return the tools in the record of a tool list."""
    return tuple(
        ToolSpec(name=name, description=description, parameters=parameters)
        for name, description, parameters in json.loads(record.body)
    )


_HANDLE: Final = Slot[Handle]("handle")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewLine:
    """A message of a draft whose text is not stored yet."""

    text: NewText
    block: Block
    injected: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A prompt whose texts are not committed yet."""

    lines: tuple[Handle | NewLine, ...]
    """Its messages in order, each the handle of a record or a new text."""
    tokens: tuple[int, ...]
    manifest: TurnManifest
    """Its manifest without the messages."""
    tools: NewText | None = None
    """The list of tools next to the messages."""

    @property
    def texts(self) -> tuple[NewText, ...]:
        """Return the texts to store before the prompt is sent, in order."""
        said = tuple(line.text for line in self.lines if isinstance(line, NewLine))
        return said if self.tools is None else (*said, self.tools)

    def handles(self, stored: Mapping[TextKey, Record]) -> tuple[Handle, ...]:
        """Return the prompt as handles, with the stored records of its texts by their keys."""
        return tuple(
            [
                line
                if isinstance(line, Handle)
                else _handle(stored[line.text.key], block=line.block, injected=line.injected)
                for line in self.lines
            ]
        )

    def tools_record(self, stored: Mapping[TextKey, Record]) -> str | None:
        """Return the id of the stored record of the tools, or None."""
        return None if self.tools is None else stored[self.tools.key].id

    def commit_manifest(
        self, handles: Sequence[Handle], *, segment: int, tools_record: str | None = None
    ) -> TurnManifest:
        """Return the complete manifest of the prompt with these handles."""
        shown = zip(handles, self.tokens, strict=True)
        messages = tuple([handle.as_recorded(tokens) for handle, tokens in shown])
        return replace(self.manifest, messages=messages, segment=segment, tools_record=tools_record)


def make_draft(
    prompt: Prompt,
    *,
    event: Record | None = None,
    model: str = "",
    revisions: Mapping[str, str] | None = None,
    account: CacheAccount | None = None,
    sent_sha256: str = "",
    silent: Sequence[Unmatched] = (),
    inputs: Mapping[str, Any] | None = None,
    tools: NewText | None = None,
    request: Mapping[str, Any] | None = None,
) -> Draft:
    """Return the draft of a prompt before it is sent.

    A message that names a record must be made from it. An adapter that changes the text of a
    message must remove its record.

    Args:
        prompt: The prompt.
        event: The record that it answers.
        model: The model.
        revisions: Revisions of cards and books by origin.
        account: The part of the prompt that is shared with the one before.
        sent_sha256: The hash of the bytes sent, if an adapter changed them.
        silent: Entries of the lore whose verdicts are stored in bulk.
        inputs: The small values from which the prompt was made.
        tools: The list of tools.
        request: Other parameters of the request.
    """
    messages = storable_messages(prompt.messages)
    figures = prompt.figures(account)
    if messages is not prompt.messages:
        figures["sha256"] = messages_sha256(messages)
    manifest = TurnManifest(
        messages=(),
        verdicts=prompt.touched,
        silent=tuple(silent),
        cut=prompt.cut,
        model=model,
        sent_sha256=sent_sha256,
        revisions={**_revisions(prompt), **(revisions or {})},
        inputs=inputs or {},
        request=request or {},
        anchors=prompt.anchors,
        **figures,
    )
    return Draft(
        lines=_lines(messages, event),
        tokens=message_tokens(messages, prompt.counter),
        manifest=manifest,
        tools=tools,
    )


def _lines(messages: Sequence[Message], event: Record | None) -> tuple[Handle | NewLine, ...]:
    """Return the messages as lines, reusing the handles of messages that were sent before."""
    known = kept(messages, _HANDLE)
    return tuple(
        [
            handle
            if handle is not None and handle._message is message
            else _make_line(message, event)
            for handle, message in zip(known, messages, strict=True)
        ]
    )


def _make_line(message: Message, event: Record | None) -> Handle | NewLine:
    if message.record is None:
        before = event.place if event else None
        text = make_text(message, before=before)
        return NewLine(text=text, block=message.block, injected=message.injected)
    record = event if event and event.id == message.record else record_of(message)
    if record is None:
        raise TypeError(
            f"a message of the prompt names record {message.record} and was not made from it;"
            " make it with `message_of`, or take its record away"
        )
    return _handle(record, block=message.block, injected=message.injected)


def _handle(record: Record, *, block: Block, injected: bool) -> Handle:
    """Return the handle of a record in a block, the same object while the block is the same."""
    known, made = record.memo.get(_HANDLE), Handle(record=record, block=block, injected=injected)
    if known is not None and known == made:
        return known
    record.memo[_HANDLE] = made
    return made


def _revisions(prompt: Prompt) -> dict[str, str]:
    # Spoken messages have no revision. Only texts have one, in their parts or of their own.
    texts = [message for message in prompt.messages if message.joined or message.revision]
    parts = (part for message in texts for part in message.parts)
    return {part.origin: str(part.revision) for part in parts if part.revision}
