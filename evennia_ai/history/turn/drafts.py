"""Drafts: a prompt on its way to be committed.

A draft has the whole manifest of a turn but for the ids of records that do not exist yet: those of
the texts the prompt was rendered to. The store commits the texts, and the draft becomes handles,
of which the messages are made that are sent, and the manifest that is kept.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from evennia_ai.history.projection import record_of
from evennia_ai.history.records import Record
from evennia_ai.history.turn.manifest import RecordedMessage, TurnManifest
from evennia_ai.history.turn.sending import Handle, NewText, TextKey, storable_messages, text_of
from evennia_ai.lorebook.book import Unmatched
from evennia_ai.prompt.cache_account import CacheAccount
from evennia_ai.prompt.memo import Slot
from evennia_ai.prompt.messages import Block, Message, costs, digest
from evennia_ai.prompt.prompt import Prompt

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
            line
            if isinstance(line, Handle)
            else Handle(record=stored[line.text.key], block=line.block, injected=line.injected)
            for line in self.lines
        )

    def tools_record(self, stored: Mapping[TextKey, Record]) -> str | None:
        """The id of the record of the tools, among those `stored` by their keys."""
        return None if self.tools is None else stored[self.tools.key].id

    def committed(
        self, handles: Sequence[Handle], *, segment: int, tools_record: str | None = None
    ) -> TurnManifest:
        """The manifest of the prompt that these handles make, which stands in this segment."""
        messages = tuple(
            RecordedMessage(
                record=handle.record.id,
                block=handle.block,
                tokens=tokens,
                injected=handle.injected,
            )
            for handle, tokens in zip(handles, self.tokens, strict=True)
        )
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
) -> Draft:
    """The draft of a prompt that is about to be sent to `model` and answers the record `event`.

    A message that names a record must be made from it; an adapter that changes a message's text
    takes its record away. `revisions` adds cards and books by origin; `account` is what the prompt
    shares with the one before; `silent` is what its activation of lore tells in bulk; `inputs` are
    the small values it was made from, `tools` is the list of the tools that goes with it.
    """
    messages = storable_messages(prompt.messages)
    manifest = replace(
        _manifest_of(prompt, messages, account),
        model=model,
        sent_sha256=sent_sha256,
        silent=tuple(silent),
        revisions={**_revisions(prompt), **(revisions or {})},
        inputs=inputs or {},
    )
    return Draft(
        lines=tuple(_line(message, event) for message in messages),
        tokens=costs(messages, prompt.counter),
        manifest=manifest,
        tools=tools,
    )


def _manifest_of(
    prompt: Prompt, messages: Sequence[Message], account: CacheAccount | None
) -> TurnManifest:
    """What the prompt itself says; `messages` are its own as they are stored."""
    return TurnManifest(
        messages=(),
        verdicts=prompt.told,
        tokens=prompt.tokens,
        limit_tokens=prompt.limit_tokens,
        by_origin=prompt.by_origin,
        breakpoints=prompt.breakpoints,
        stable_tokens=prompt.stable_tokens,
        cut=prompt.cut,
        layout=prompt.layout,
        counter=prompt.counter.name,
        sha256=prompt.sha256 if messages is prompt.messages else digest(messages),
        shared_tokens=account.shared_tokens if account else None,
        broken_by=account.broken_by if account else None,
        break_reason=account.reason if account else None,
        anchors=prompt.anchors,
    )


def _line(message: Message, event: Record | None) -> Handle | NewLine:
    if message.record is None:
        before = event.place if event else None
        text = text_of(message, before=before)
        return NewLine(text=text, block=message.block, injected=message.injected)
    known = message.memo.get(_HANDLE)
    if known is not None and _is_of(known, message):
        return known
    record = event if event and event.id == message.record else record_of(message)
    if record is None:
        raise TypeError(
            f"a message of the prompt names record {message.record} and was not made from it;"
            " make it with `message_of`, or take its record away"
        )
    handle = Handle(record=record, block=message.block, injected=message.injected)
    message.memo[_HANDLE] = handle
    return handle


def _is_of(handle: Handle, message: Message) -> bool:
    """Whether the handle shows the message where it is; copies elsewhere share what is known."""
    is_there = handle.block == message.block and handle.injected == message.injected
    return is_there and handle.record.id == message.record


def _revisions(prompt: Prompt) -> dict[str, str]:
    # What was said has no revision; only texts do, which have parts or an own one.
    texts = (message for message in prompt.messages if message.joined or message.revision)
    parts = (part for message in texts for part in message.parts)
    return {part.origin: str(part.revision) for part in parts if part.revision}
