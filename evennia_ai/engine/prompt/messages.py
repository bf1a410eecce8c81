"""Messages of a prompt, and the tools that are offered to a model.

Messages are immutable and shared: a message is the same object in the history and in every prompt
that contains it. Its tokens and its bytes are computed once and cached in it.

A time line is a line with the date and the minute at the end of a message. It is recorded with the
message, so later prompts show the same bytes. Only the model reads it: key search, memories,
`{{lastMessage}}` and the offline responder use the text without it. People cannot forge a time
line, because what a person says never has a second line.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final, Literal

from evennia_ai.engine.prompt.memo import KeptMemo, Memo, Slot, cached_or_made, typed_frozen_row
from evennia_ai.engine.prompt.tokens import TokenCounter

Role = Literal["system", "user", "assistant", "tool"]
ROLES: Final[tuple[Role, ...]] = ("system", "user", "assistant", "tool")
# The roles that a text of an author can have. Only results of tool calls have the role "tool".
TEXT_ROLES: Final[tuple[Role, ...]] = ("system", "user", "assistant")

Trust = Literal["author", "builder", "imported", "player"]
"""The kind of author of a text. It decides what the text may do."""

DepthCounts = Literal["messages", "speech"]
"""The messages that a depth counts: all, or all except those about arrivals and departures."""

# The kinds of events about arrivals and departures. The game itself writes their texts.
MOVEMENT: Final = frozenset({"arrive", "leave", "moved"})

_WIRE: Final = Slot[bytes]("wire")

Block = Literal["ordered", "history", "dynamic", "event", "tool"]

OF_DYNAMIC: Final = "dynamic"
OF_LORE: Final = "lore:"
"""The kinds of persistent texts that belong to lore or facts. A note's kind is its origin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of a message's content, and where its text comes from.

    `start` and `end` are offsets in code points.
    """

    origin: str
    start: int
    end: int
    revision: int = 0
    """The version number of the text at the origin; 0 if it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call of a tool, inside a message of the role assistant."""

    id: str
    name: str
    arguments: str
    """The arguments as the JSON text that the model wrote."""


@typed_frozen_row
class Message:
    """One message of a prompt."""

    role: Role
    content: str
    name: str | None = None
    """The name of the speaker. It is never part of `content`."""
    origin: str = ""
    """The origin of the content, such as `component:mood`, if it has only one."""
    record: str | None = None
    """The id of the durable record of this message; None if it has no record."""
    block: Block = "history"
    injected: bool = False
    """True for a text that was inserted into the history at an injection depth."""
    counted: bool = True
    """False for bookkeeping records, which injection depths do not count."""
    stays: bool = False
    """True for a persistent text, which one prompt sent and the history keeps."""
    of: str = ""
    """The kind of a persistent text: `dynamic`, `lore:<identity>` or `note:<number>`."""
    is_movement: bool = False
    """True if the message is a report of the game about an arrival or a departure."""
    revision: int = 0
    """The version number of the text at the origin."""
    joined: tuple[Part, ...] = ()
    """The parts of the content, if it has several origins."""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    memo: KeptMemo = field(default_factory=Memo, repr=False, compare=False)
    """Cached results that were computed from the message."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts of the content, each with its origin; at least one."""
        if self.joined:
            return self.joined
        origin = self.origin or self.block
        return (Part(origin=origin, start=0, end=len(self.content), revision=self.revision),)

    @property
    def origins(self) -> list[str]:
        """The origin of each part of the content."""
        if self.joined:
            return [part.origin for part in self.joined]
        return [self.origin or self.block]

    @property
    def stretches(self) -> list[tuple[str, str]]:
        """The origin and the text of each part of the content."""
        return [(part.origin, self.content[part.start : part.end]) for part in self.parts]

    @property
    def is_emptied(self) -> bool:
        """True if a regex script removed all words of the message, so prompts leave it out."""
        return not self.content and self.record is None and not self.tool_calls

    @property
    def is_user(self) -> bool:
        """True if the message was said to this NPC by a player or an NPC, or perceived by it."""
        return self.counted and self.role == "user"

    @property
    def is_reply(self) -> bool:
        """True if the message is a reply of the NPC. A message that calls tools is not a reply."""
        return self.counted and self.role == "assistant" and not self.tool_calls

    def wire(self) -> bytes:
        """Return the message as canonical JSON bytes. The hash of a prompt is made from them.

        The bytes contain only what a model sees: role, name, content, tool calls.
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
        """Return the tokens of the message, including the counter's overhead for each message.

        The result is cached in the message.
        """
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
    """Return the part of a message that a model sees, as JSON without blanks and with sorted keys.

    The line is joined from strings, because encoding a mapping takes four times as long and a
    prompt has hundreds of messages.
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
    """Return the SHA-256 of messages, each as the canonical JSON line of what a model sees."""
    return lines_sha256(cached_or_made(tuple(messages), _WIRE, Message.wire))


def lines_sha256(lines: Iterable[bytes]) -> str:
    """Return the SHA-256 of a list of messages, each given as a canonical JSON line."""
    return _lines_sha256(tuple(lines))


@lru_cache(maxsize=4)
def _lines_sha256(lines: tuple[bytes, ...]) -> str:
    """Return the SHA-256 of canonical JSON lines of messages, cached for the last calls.

    A turn computes the same hash twice: after composing, and after reading the records back.
    """
    return sha256(b"\n".join(lines)).hexdigest()


def message_tokens(messages: Sequence[Message], counter: TokenCounter) -> tuple[int, ...]:
    """Return the number of tokens of each message."""
    return tuple(cached_or_made(messages, counter.slot, lambda message: message.tokens(counter)))


def part_of(messages: Iterable[Message], origin: str) -> Part | None:
    """Return the first part of the messages whose text has this origin, or None."""
    parts = (part for message in messages for part in message.parts)
    return next((part for part in parts if part.origin == origin), None)


def said(
    role: Role, content: str, *, name: str | None = None, record: str | None = None
) -> Message:
    """Return something that was said as a message, in the form that the history has."""
    origin = f"history:{record}" if record else "history"
    return Message(role, content, name, origin, record)


def event_message(
    content: str, *, name: str | None = None, record: str | None = None, kind: str = ""
) -> Message:
    """Return the event that the NPC answers, as a message of its own after the history.

    Args:
        content: The text of the event.
        name: The speaker's name.
        record: The id of the event's record.
        kind: The kind of event.
    """
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
    """A tool that is offered to a model, with the schema of its arguments."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """The JSON schema of the tool's arguments. It describes an object."""


_BEGINS: Final = "\n[Now: "
_ENDS: Final = "]"
_LONGEST: Final = 60


def with_time_line(text: str, minute: str) -> str:
    """Return the text with a time line at its end; unchanged if `minute` is ""."""
    return f"{text}{_BEGINS}{minute}{_ENDS}" if minute else text


def without_time_line(text: str) -> str:
    """Return the text without the time line at its end, if it has one."""
    if not text.endswith(_ENDS):
        return text
    begins = text.rfind("\n", max(0, len(text) - _LONGEST))
    return text[:begins] if begins >= 0 and text.startswith(_BEGINS, begins) else text
