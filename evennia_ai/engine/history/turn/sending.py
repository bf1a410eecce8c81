"""Sending: from a prompt to the messages that go out, which are made from stored records alone.

A draft has the whole manifest of a turn but for the ids of records that do not exist yet: those of
the texts the prompt was rendered to. The store commits these texts, each with where its stretches
came from, and the draft becomes handles: stored records, and where the prompt shows each. A plain
string, a message, or a record nobody stored cannot be sent. The list of tools goes beside the
messages, as a snapshot that is stored once in a segment for as long as it stays the same.
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
    storable,
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
    """A stored record, in the block of the prompt where it is shown."""

    record: Record
    block: Block
    injected: bool = False
    _message: Message | None = field(default=None, init=False, repr=False, compare=False)
    _told: RecordedMessage | None = field(default=None, init=False, repr=False, compare=False)

    def told(self, tokens: int) -> RecordedMessage:
        """The record as a manifest names it; the same object as long as it costs as much."""
        known = self._told
        if known is None or known.tokens != tokens:
            known = RecordedMessage(self.record.id, self.block, self.injected, tokens)
            object.__setattr__(self, "_told", known)
        return known


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
    """The messages with what no database stores replaced; the same ones where there is nothing."""
    texts = [message for message in messages if message.record is None]
    if all(map(_is_storable, texts)):
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


def _shown(handle: Handle) -> Message:
    """The message of the handle's record, where the handle shows it; kept with the handle."""
    record = handle.record
    message = message_of(record)
    if message is None:
        raise ReplayError(f"record {record.id} is no message ({record.kind})")
    if handle.block != "history" or handle.injected:
        origin = message.origin if handle.injected else handle.block
        message = replace(message, block=handle.block, injected=handle.injected, origin=origin)
    object.__setattr__(handle, "_message", message)
    return message


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
    name = storable(message.name) if message.name else message.name
    return replace(message, content=storable(message.content), name=name, memo=Memo())


TOOLS = "tools"
"""What a snapshot of tools says that it is of."""


def tool_list(tools: Iterable[ToolSpec]) -> NewText:
    """The record that a list of tools becomes."""
    told = canonical_json([[one.name, one.description, dict(one.parameters)] for one in tools])
    return _tools_text(told)


@lru_cache(maxsize=256)
def _tools_text(body: str) -> NewText:
    """The same of its JSON, hashed once: an NPC's tools are the same in most turns."""
    new = NewRecord(kind=RecordKind.SNAPSHOT, role="system", body=body, meta={"of": TOOLS})
    return NewText(new, TextKey(new.kind, new.role, content_sha256(new)))


def tools_in(record: Record) -> tuple[ToolSpec, ...]:
    """Return the tools that the record of a list of tools names."""
    return tuple(
        ToolSpec(name=name, description=description, parameters=parameters)
        for name, description, parameters in json.loads(record.body)
    )


_HANDLE: Final = Slot[Handle]("handle")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewLine:
    """A message of a draft whose text becomes a record."""

    text: NewText
    block: Block
    injected: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A prompt whose texts are not committed yet."""

    lines: tuple[Handle | NewLine, ...]
    """Its messages in order, each a handle of a record or a text that becomes one."""
    tokens: tuple[int, ...]
    manifest: TurnManifest
    """All of its manifest but the messages."""
    tools: NewText | None = None
    """The list of tools that goes beside the messages."""

    @property
    def texts(self) -> tuple[NewText, ...]:
        """The texts that must be in the records before the prompt is sent, in its order."""
        said = tuple(line.text for line in self.lines if isinstance(line, NewLine))
        return said if self.tools is None else (*said, self.tools)

    def handles(self, stored: Mapping[TextKey, Record]) -> tuple[Handle, ...]:
        """The prompt as handles, its texts among the records that are `stored` by their keys."""
        return tuple(
            [
                line
                if isinstance(line, Handle)
                else _handle(stored[line.text.key], block=line.block, injected=line.injected)
                for line in self.lines
            ]
        )

    def tools_record(self, stored: Mapping[TextKey, Record]) -> str | None:
        """The id of the record of the tools, among those `stored` by their keys."""
        return None if self.tools is None else stored[self.tools.key].id

    def committed(
        self, handles: Sequence[Handle], *, segment: int, tools_record: str | None = None
    ) -> TurnManifest:
        """The manifest of the prompt that these handles make, which stands in this segment."""
        shown = zip(handles, self.tokens, strict=True)
        messages = tuple([handle.told(tokens) for handle, tokens in shown])
        return replace(self.manifest, messages=messages, segment=segment, tools_record=tools_record)


def draft_of(
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
    """The draft of a prompt that is about to be sent to `model` and answers the record `event`.

    A message that names a record must be made from it; an adapter that changes a message's text
    takes its record away. `revisions` adds cards and books by origin; `account` is what the prompt
    shares with the one before; `silent` is what its activation of lore tells in bulk; `inputs` are
    the small values it was made from, `tools` is the list of the tools that goes with it, `request`
    says how the model is asked otherwise.
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
    """The messages as lines; the handle of one that was sent before is known."""
    known = kept(messages, _HANDLE)
    return tuple(
        [
            handle if handle is not None and handle._message is message else _line(message, event)
            for handle, message in zip(known, messages, strict=True)
        ]
    )


def _line(message: Message, event: Record | None) -> Handle | NewLine:
    if message.record is None:
        before = event.place if event else None
        text = text_of(message, before=before)
        return NewLine(text=text, block=message.block, injected=message.injected)
    record = event if event and event.id == message.record else record_of(message)
    if record is None:
        raise TypeError(
            f"a message of the prompt names record {message.record} and was not made from it;"
            " make it with `message_of`, or take its record away"
        )
    return _handle(record, block=message.block, injected=message.injected)


def _handle(record: Record, *, block: Block, injected: bool) -> Handle:
    """The record shown there; made once as long as it is shown in the same place."""
    known, made = record.memo.get(_HANDLE), Handle(record=record, block=block, injected=injected)
    if known is not None and known == made:
        return known
    record.memo[_HANDLE] = made
    return made


def _revisions(prompt: Prompt) -> dict[str, str]:
    # What was said has no revision; only texts do, which have parts or an own one.
    texts = [message for message in prompt.messages if message.joined or message.revision]
    parts = (part for message in texts for part in message.parts)
    return {part.origin: str(part.revision) for part in parts if part.revision}
