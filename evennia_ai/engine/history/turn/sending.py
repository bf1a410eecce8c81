"""Sending: convert a prompt to the messages to send, which are made only from stored records.

A draft is a prompt with its manifest, before the texts that were made for it are stored as
records. The store stores these texts, each with the origins of its parts. Then the messages of the
draft become handles: stored records, each with the part of the prompt that shows it. A plain
string, a message, or a record that is not stored cannot be sent. The list of tools is stored and
sent with the messages. In a segment of the conversation it is stored again only if it changes.
"""

import json
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from itertools import compress
from operator import is_, not_
from typing import Any, Final, NamedTuple, TypeVar

from evennia_ai.engine.errors import ReplayError, StoreError
from evennia_ai.engine.history.projection import message_of, record_of
from evennia_ai.engine.history.records import (
    NewRecord,
    Record,
    RecordKind,
    canonical_json,
    content_sha256,
    make_storable,
)
from evennia_ai.engine.history.turn.manifest import (
    NO_MESSAGES,
    RecordedMessages,
    TurnManifest,
    runs_of,
)
from evennia_ai.engine.lorebook.book import Unmatched
from evennia_ai.engine.prompt.cache_account import CacheAccount
from evennia_ai.engine.prompt.memo import Memo, Slot, cached_values
from evennia_ai.engine.prompt.messages import (
    Block,
    Message,
    ToolSpec,
    messages_sha256,
)
from evennia_ai.engine.prompt.prompt import Prompt
from evennia_ai.engine.prompt.tokens import TokenCounter

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Handle:
    """A stored record that a prompt sends, and the part of the prompt in which it is."""

    record: Record
    block: Block
    injected: bool = False
    _message: Message | None = field(default=None, init=False, repr=False, compare=False)


class TextKey(NamedTuple):
    """The key of a text in a prompt. In a segment, texts with equal keys share one record."""

    kind: RecordKind
    role: str
    content_sha256: str


class NewText(NamedTuple):
    """A text made for a prompt: its key, and the new record in which it will be stored."""

    new: NewRecord
    key: TextKey


def sent_messages(handles: Iterable[Handle]) -> tuple[Message, ...]:
    """Return the messages to send for these records, in order.

    Raises:
        TypeError: An item is not the handle of a stored record.
        ReplayError: The words of a record were erased.
    """
    shown = list(handles)
    for handle in shown:
        if not isinstance(handle, Handle):
            raise TypeError(
                "a prompt is made of handles of stored records, not of"
                f" {type(handle).__name__}; append the text to the history, and pass the"
                " handle of its record"
            )
    for record in [handle.record for handle in shown if not handle.record.body]:
        if record.is_erased:
            raise ReplayError(f"record {record.id} of the turn was erased on request")
    return tuple([handle._message or _message_of_handle(handle) for handle in shown])


def storable_messages(messages: Sequence[Message]) -> Sequence[Message]:
    """Return messages with each character that cannot be stored replaced by U+FFFD."""
    texts = [message for message in messages if message.record is None]
    if all(map(_is_storable, texts)):
        return messages
    return tuple(m if _is_storable(m) else _stored_form(m) for m in messages)


_TEXT: Final = Slot[NewText]("text")


def make_text(message: Message, *, before: str | None = None) -> NewText:
    """Return the new record for a message that was made for a prompt.

    A persistent text has its place before the record at `before`, so it does not share a record
    with equal texts.
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
    """Return the key that identifies the text of a stored record."""
    return TextKey(record.kind, record.role, record.content_sha256)


def _message_of_handle(handle: Handle) -> Message:
    """Return the message of a stored record as the prompt shows it. It is cached."""
    record = handle.record
    message = message_of(record)
    if message is None:
        raise ReplayError(f"record {record.id} is not a message ({record.kind})")
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
    """True if a message can be stored unchanged.

    This is always the case for the text of a record.
    """
    return message.record is not None or (
        _can_be_stored(message.content) and _can_be_stored(message.name or "")
    )


def _can_be_stored(text: str) -> bool:
    return (text.isascii() and "\x00" not in text) or make_storable(text) == text


def _stored_form(message: Message) -> Message:
    """Return a copy of a message that can be stored, with characters replaced.

    The copy has its own memo, because values cached for the original would be wrong.
    """
    name = make_storable(message.name) if message.name else message.name
    return replace(message, content=make_storable(message.content), name=name, memo=Memo())


TOOLS = "tools"
"""The value of `of` in the meta of a record that contains a list of tools."""


def tool_list_record(tools: Iterable[ToolSpec]) -> NewText:
    """Return the new record for a list of tools."""
    body = canonical_json([[one.name, one.description, dict(one.parameters)] for one in tools])
    return _tools_text(body)


@lru_cache(maxsize=256)
def _tools_text(body: str) -> NewText:
    """Return the new record for a list of tools, given as JSON.

    It is cached, because an NPC has the same tools in most turns.
    """
    new = NewRecord(kind=RecordKind.SNAPSHOT, role="system", body=body, meta={"of": TOOLS})
    return NewText(new, TextKey(new.kind, new.role, content_sha256(new)))


def parse_tools(record: Record) -> tuple[ToolSpec, ...]:
    """Return the tools that the model was offered, read from the record that stores the list."""
    return tuple(
        ToolSpec(name=name, description=description, parameters=parameters)
        for name, description, parameters in json.loads(record.body)
    )


_HANDLE: Final = Slot[Handle]("handle")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewLine:
    """A message of a prompt whose text is not stored as a record yet."""

    text: NewText
    block: Block
    injected: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SentMessages:
    """The messages of a committed prompt, as columns.

    Most messages of the next prompt are the same objects at the same indexes. That prompt takes
    their values from these columns without looking at the messages.
    """

    composed: tuple[Message, ...] = ()
    """The messages as they were composed."""
    messages: tuple[Message, ...] = ()
    """The messages to send, which were made from stored records only."""
    records: tuple[str, ...] = ()
    """The id of the record of each message."""
    places: tuple[str, ...] = ()
    """The place of this record."""
    ways: tuple[tuple[Block, bool], ...] = ()
    """The block of each message, and whether it was injected."""
    tokens: tuple[int, ...] = ()
    counter: TokenCounter | None = None
    """The counter of these tokens."""
    texts: tuple[int, ...] = ()
    """The indexes of texts that authors or the game made. Another prompt never takes them over."""

    def differing(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Return the indexes of those messages that are not taken over from these."""
        same = [*map(is_, messages, self.composed)]
        for index in self.texts[: bisect_left(self.texts, len(same))]:
            same[index] = False
        differing = compress(range(len(same)), map(not_, same))
        return (*differing, *range(len(same), len(messages)))


NOTHING_SENT: Final = SentMessages()


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A prompt before it is sent. Not all of its texts are stored yet."""

    composed: tuple[Message, ...]
    lines: Mapping[int, Handle | NewLine]
    """The messages that `before` does not have, by their index, in order.

    Each is a stored record or a new text.
    """
    before: SentMessages
    """The messages of the previous prompt, from which all others are taken over."""
    counter: TokenCounter
    manifest: TurnManifest
    """The manifest of the prompt without its messages."""
    tools: NewText | None = None
    """The list of tools that is sent with the messages."""

    @property
    def texts(self) -> tuple[NewText, ...]:
        """Return the new texts that must be stored before the prompt is sent, in order."""
        said = tuple(line.text for line in self.lines.values() if isinstance(line, NewLine))
        return said if self.tools is None else (*said, self.tools)

    def settle(self, stored: Mapping[TextKey, Record]) -> SentMessages:
        """Return the messages to send, which are made from records only.

        Args:
            stored: The records of the new texts by their keys.

        Raises:
            StoreError: A message differs from its record, so nothing may be sent.
            ReplayError: The words of a record were erased.
        """
        handles = {
            index: line
            if isinstance(line, Handle)
            else _handle(stored[line.text.key], block=line.block, injected=line.injected)
            for index, line in self.lines.items()
        }
        made = dict(zip(handles, sent_messages(handles.values()), strict=True))
        composed, before = self.composed, self.before
        for index, message in made.items():
            if message.wire() != composed[index].wire():
                raise StoreError(
                    "a message of the composed prompt differs from the record that it names;"
                    " nothing was written and no model is asked"
                )
        count = len(composed)
        return SentMessages(
            composed=composed,
            messages=_taken_over(before.messages, made, count),
            records=_taken_over(
                before.records, {i: handle.record.id for i, handle in handles.items()}, count
            ),
            places=_taken_over(
                before.places, {i: handle.record.place for i, handle in handles.items()}, count
            ),
            ways=_taken_over(
                before.ways, {i: (one.block, one.injected) for i, one in handles.items()}, count
            ),
            tokens=_taken_over(
                before.tokens, {i: composed[i].tokens(self.counter) for i in handles}, count
            ),
            counter=self.counter,
            texts=tuple([i for i in handles if _is_text(composed[i])]),
        )

    def tools_record(self, stored: Mapping[TextKey, Record]) -> str | None:
        """Return the id of the stored record with the list of tools; None without tools."""
        return None if self.tools is None else stored[self.tools.key].id

    def commit_manifest(
        self, settled: SentMessages, *, segment: int, tools_record: str | None = None
    ) -> TurnManifest:
        """Return the manifest of the prompt with these messages."""
        messages = RecordedMessages(
            records=settled.records, runs=runs_of(settled.ways), tokens=settled.tokens
        )
        return replace(self.manifest, messages=messages, segment=segment, tools_record=tools_record)


def _taken_over(before: tuple[T, ...], made: Mapping[int, T], count: int) -> tuple[T, ...]:
    """Return a column of `count` values: those in `made` by their index, the others of before."""
    known = len(before)
    values = [*before[:count], *(made[index] for index in range(known, count))]
    for index, value in made.items():
        values[index] = value
    return tuple(values)


def _is_text(message: Message) -> bool:
    """True if authors or the game made the text of a message, so that it may have revisions."""
    return message.record is None or bool(message.joined or message.revision)


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
    before: SentMessages = NOTHING_SENT,
) -> Draft:
    """Return a prompt as a draft, which can be stored and then sent.

    A message that names a record must have the text of that record. An adapter that changes the
    text of a message must remove its record.

    Args:
        prompt: The prompt.
        event: The record that the prompt answers.
        model: The name of the model.
        revisions: Revisions of cards and books by origin.
        account: The part of the prompt that equals the previous prompt.
        sent_sha256: The hash of the bytes sent, if an adapter changed them.
        silent: Lore entries whose verdicts are stored in groups.
        inputs: The small values that the prompt was made from.
        tools: The list of tools.
        request: Other parameters of the request.
        before: The messages of the previous prompt of the conversation.
    """
    before = before if before.counter is prompt.counter else NOTHING_SENT
    differing = before.differing(prompt.messages)
    messages, figures = prompt.messages, prompt.figures(account)
    made = [messages[index] for index in differing]
    if (storable := storable_messages(made)) is not made:
        messages = _taken_over(messages, dict(zip(differing, storable, strict=True)), len(messages))
        figures["sha256"] = messages_sha256(messages)
    manifest = TurnManifest(
        messages=NO_MESSAGES,
        verdicts=prompt.touched,
        silent=tuple(silent),
        cut=prompt.cut,
        model=model,
        sent_sha256=sent_sha256,
        revisions={**_revisions(made), **(revisions or {})},
        inputs=inputs or {},
        request=request or {},
        anchors=prompt.anchors,
        **figures,
    )
    return Draft(
        composed=messages,
        lines=dict(zip(differing, _lines(storable, event), strict=True)),
        before=before,
        counter=prompt.counter,
        manifest=manifest,
        tools=tools,
    )


def _lines(messages: Sequence[Message], event: Record | None) -> Iterator[Handle | NewLine]:
    """Yield the messages of a draft. Messages that were sent before reuse their handles."""
    known = cached_values(messages, _HANDLE)
    for message, handle in zip(messages, known, strict=True):
        if handle is not None and handle._message is message:
            yield handle
        else:
            yield _make_line(message, event)


def _make_line(message: Message, event: Record | None) -> Handle | NewLine:
    if message.record is None:
        before = event.place if event else None
        text = make_text(message, before=before)
        return NewLine(text=text, block=message.block, injected=message.injected)
    record = event if event and event.id == message.record else record_of(message)
    if record is None:
        raise TypeError(
            f"a message of the prompt names record {message.record} and was not made from it;"
            " make it with `message_of`, or set its record to None"
        )
    return _handle(record, block=message.block, injected=message.injected)


def _handle(record: Record, *, block: Block, injected: bool) -> Handle:
    """Return the handle of a record in one part of the prompt, reused if nothing changed."""
    known, made = record.memo.get(_HANDLE), Handle(record=record, block=block, injected=injected)
    if known is not None and known == made:
        return known
    record.memo[_HANDLE] = made
    return made


def _revisions(messages: Iterable[Message]) -> dict[str, str]:
    # Texts made for a prompt have a revision, either the whole message or each of its parts. All
    # other messages have none and are skipped.
    texts = [message for message in messages if message.joined or message.revision]
    parts = (part for message in texts for part in message.parts)
    return {part.origin: str(part.revision) for part in parts if part.revision}
