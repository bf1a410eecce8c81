"""Messages of a prompt, from the history or made by the pipeline; tools as a model reads of them.

Messages are immutable and shared: one that was said once is the same object in the history and in
every prompt that holds it, and what is costly about it (its tokens, its bytes) is kept with it.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final, Literal

from evennia_ai.engine.prompt.memo import KeptMemo, Memo, Slot, each, typed_frozen_row
from evennia_ai.engine.prompt.tokens import TokenCounter

Role = Literal["system", "user", "assistant", "tool"]
ROLES: Final[tuple[Role, ...]] = ("system", "user", "assistant", "tool")
# What a text can be given as; a tool's message belongs to the call it answers.
TEXT_ROLES: Final[tuple[Role, ...]] = ("system", "user", "assistant")

Trust = Literal["author", "builder", "imported", "player"]
"""Who wrote a text, which decides what it may do."""

DepthCounts = Literal["messages", "speech"]
"""What a depth counts: every message of the history, or all but those of who came or went."""

# Kinds of events that the game tells of in its own words, with the names of places in them.
MOVEMENT: Final = frozenset({"arrive", "leave", "moved"})

_WIRE: Final = Slot[bytes]("wire")

Block = Literal["ordered", "history", "dynamic", "event", "tool"]

OF_DYNAMIC: Final = "dynamic"
OF_LORE: Final = "lore:"
"""What texts that stay are of; notes are of their own origin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Where one stretch of a message's content comes from.

    `start` and `end` count code points of the content; `revision` is the origin's own revision
    number, 0 where it has none.
    """

    origin: str
    start: int
    end: int
    revision: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call an assistant message makes; `arguments` is the JSON text the model wrote."""

    id: str
    name: str
    arguments: str


@typed_frozen_row
class Message:
    """One message of a prompt.

    `name` is the speaker's name, never part of `content`. `injected` marks what was put into the
    history by depth. `counted` is false for bookkeeping records (context blocks, note anchors)
    that injection depth does not count. `stays` marks a text that was made for one prompt and
    remains in the history at that place; `of` says what it is of: `dynamic`, `lore:<mark>` or
    `note:<number>`. `is_movement` marks what the game told of who came or went. `record` is the id
    of the durable record behind it. `origin` and `revision` say where the whole content comes from,
    `joined` where its stretches do; `parts` tells both.
    """

    role: Role
    content: str
    name: str | None = None
    origin: str = ""
    record: str | None = None
    block: Block = "history"
    injected: bool = False
    counted: bool = True
    stays: bool = False
    of: str = ""
    is_movement: bool = False
    revision: int = 0
    joined: tuple[Part, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    memo: KeptMemo = field(default_factory=Memo, repr=False, compare=False)
    """What was worked out from it."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """Where each stretch of the content comes from."""
        if self.joined:
            return self.joined
        origin = self.origin or self.block
        return (Part(origin=origin, start=0, end=len(self.content), revision=self.revision),)

    @property
    def origins(self) -> list[str]:
        """The origin of each part."""
        if self.joined:
            return [part.origin for part in self.joined]
        return [self.origin or self.block]

    @property
    def stretches(self) -> list[tuple[str, str]]:
        """Origin and text of each part."""
        return [(part.origin, self.content[part.start : part.end]) for part in self.parts]

    @property
    def is_user(self) -> bool:
        """Whether somebody said it to the NPC, or it happened before its eyes."""
        return self.counted and self.role == "user"

    @property
    def is_reply(self) -> bool:
        """Whether the NPC said it; a message that calls tools is not its reply yet."""
        return self.counted and self.role == "assistant" and not self.tool_calls

    def wire(self) -> bytes:
        """The message as canonical JSON bytes: what the prompt's hash covers.

        Only what a model can see is in it: role, name, content, tool calls.
        """
        known = self.memo.get(_WIRE)
        if known is None:
            known = self.memo[_WIRE] = canonical_line(
                role=self.role,
                content=self.content,
                name=self.name,
                tool_calls=self.tool_calls,
                tool_call_id=self.tool_call_id,
            )
        return known

    def tokens(self, counter: TokenCounter) -> int:
        """Tokens of this message with the counter's cost per message; counted once, kept."""
        known = self.memo.get(counter.slot)
        if known is not None:
            return known
        arguments = [call.arguments for call in self.tool_calls] if self.tool_calls else ()
        made = counter.of_message(self.content, name=self.name, more=arguments)
        self.memo[counter.slot] = made
        return made


_json: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def canonical_line(
    *,
    role: Role,
    content: str,
    name: str | None,
    tool_calls: Sequence[ToolCall],
    tool_call_id: str | None,
) -> bytes:
    """What a model can see of a message, as JSON without blanks, its fields sorted by name.

    Put together of texts: JSON of a mapping takes four times as long, and a prompt has hundreds.
    """
    fields = [f'"content":{_json(content)}']
    if name is not None:
        fields.append(f'"name":{_json(name)}')
    fields.append(f'"role":{_json(role)}')
    if tool_call_id is not None:
        fields.append(f'"tool_call_id":{_json(tool_call_id)}')
    if tool_calls:
        calls = [[call.id, call.name, call.arguments] for call in tool_calls]
        fields.append(f'"tool_calls":{_json(calls)}')
    return f"{{{','.join(fields)}}}".encode("utf-8", "surrogatepass")


def messages_sha256(messages: Iterable[Message]) -> str:
    """The hash of messages as a model sees them, one canonical JSON line each."""
    return lines_sha256(each(tuple(messages), _WIRE, Message.wire))


def lines_sha256(lines: Iterable[bytes]) -> str:
    """The same of their canonical lines."""
    return _lines_sha256(tuple(lines))


@lru_cache(maxsize=4)
def _lines_sha256(lines: tuple[bytes, ...]) -> str:
    """A prompt's hash is asked for when it is composed and when its records were read back."""
    return sha256(b"\n".join(lines)).hexdigest()


def message_tokens(messages: Sequence[Message], counter: TokenCounter) -> tuple[int, ...]:
    """The tokens of each message."""
    return tuple(each(messages, counter.slot, lambda message: message.tokens(counter)))


def part_of(messages: Iterable[Message], origin: str) -> Part | None:
    """The first stretch of messages that comes from this origin."""
    parts = (part for message in messages for part in message.parts)
    return next((part for part in parts if part.origin == origin), None)


def said(
    role: Role, content: str, *, name: str | None = None, record: str | None = None
) -> Message:
    """A message of the conversation, as the history holds it."""
    origin = f"history:{record}" if record else "history"
    return Message(role, content, name, origin, record)


def event_message(
    content: str, *, name: str | None = None, record: str | None = None, kind: str = ""
) -> Message:
    """The event being answered, of this kind, as a message of its own after the history."""
    return Message(
        role="user",
        content=content,
        name=name,
        block="event",
        is_movement=kind in MOVEMENT,
        record=record,
        origin="event",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool a model may call; `parameters` is the JSON schema of its arguments, an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]
