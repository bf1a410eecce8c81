"""Requests to a model, its replies, and the interface of a model client.

A request holds the messages exactly as they are sent. `roles.adapt_messages` adapts them to the
server before the request is made, because the prompt's hash must cover the adapted messages. Every
later prompt sends a reply's tool calls again, also to other servers. A call without an id, or with
a name that some server refuses, would make all later requests fail. So this module repairs ids and
names. The arguments stay as the model wrote them; the code that runs the call checks them.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from typing import Any, Final, Literal, Protocol

from twisted.internet.defer import Deferred

from evennia_ai.engine.prompt.memo import Memo
from evennia_ai.engine.prompt.messages import (
    Message,
    Role,
    ToolCall,
    ToolSpec,
    canonical_line,
    lines_sha256,
)
from evennia_ai.services.llm.profiles import USUAL, Sampling


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMessage:
    """One message in the form that a server accepts.

    Every later prompt sends it again, so values computed from it are kept in `memo`.
    """

    role: Role
    content: str
    name: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    _memo: Memo | None = field(default=None, init=False, repr=False, compare=False)
    _wire: bytes | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def memo(self) -> Memo:
        """A cache of values computed from the message.

        Made at first use, because most messages need none.
        """
        if self._memo is None:
            object.__setattr__(self, "_memo", Memo())
        assert self._memo is not None
        return self._memo

    def wire(self) -> bytes:
        """Return the message as canonical JSON. It equals the bytes of the prompt's own message."""
        if self._wire is not None:
            return self._wire
        made = canonical_line(
            role=self.role,
            content=self.content,
            name=self.name,
            tool_calls=self.tool_calls,
            tool_call_id=self.tool_call_id,
        )
        object.__setattr__(self, "_wire", made)
        return made


def as_chat_message(message: Message) -> ChatMessage:
    """Return a prompt's message without the fields that only this package uses.

    Both messages share their bytes and the cache of computed values.
    """
    made = ChatMessage(
        role=message.role,
        content=message.content,
        name=message.name,
        tool_calls=message.tool_calls,
        tool_call_id=message.tool_call_id,
    )
    object.__setattr__(made, "_memo", message.memo)
    object.__setattr__(made, "_wire", message.wire())
    return made


PassageKind = Literal["lore", "description", "examples", "greeting"]
"""Where a passage comes from: an entry of a lorebook, or a field of the NPC's card."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A text of this turn's prompt that the offline responder may quote."""

    label: str
    text: str
    kind: PassageKind = "lore"
    score: float = 0.0
    constant: bool = False
    """True if the lorebook entry is active in every turn."""
    keys: tuple[str, ...] = ()
    """The keys of the lorebook entry, as the author wrote them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSchema:
    """A named JSON schema that an answer must match."""

    name: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Thoughts:
    """Hidden reasoning that a server wants to get back together with the tool calls of its reply.

    This package never reads, shows or stores its content. It is kept until the end of the turn, and
    only the server that sent it gets it back.
    """

    message: Mapping[str, Any] = field(default_factory=dict)
    """Fields to add to the message that contains the calls."""
    calls: tuple[Mapping[str, Any], ...] = ()
    """Fields to add to each call, in the order of the calls."""


NO_THOUGHTS: Final = Thoughts()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """One request to a model."""

    messages: tuple[ChatMessage, ...]
    model: str
    max_tokens: int
    timeout_seconds: float
    """The time limit for the complete reply, with waiting in the queue and all retries."""
    sampling: Sampling = USUAL
    tools: tuple[ToolSpec, ...] = ()
    """The tools that the model may call, sorted by name."""
    schema: AnswerSchema | None = None
    """The schema that the answer must match, or None for free text."""
    breakpoints: tuple[int, ...] = ()
    """Indexes of the messages after which a provider may cache the prompt so far."""
    passages: tuple[Passage, ...] = ()
    speaker: str = ""
    """The name of the NPC that will speak the reply."""
    question: str = ""
    """The line that the NPC answers."""
    asker: str = ""
    """The NPC's name for the person who said the line."""
    place: str = ""
    """The name of the room in which the NPC is."""
    company: tuple[str, ...] = ()
    """The NPC's names for the other people that it sees in the room, without the asker."""
    worn: tuple[str, ...] = ()
    """The names of the things that the NPC wears."""
    carried: tuple[str, ...] = ()
    """The names of the other things that the NPC has with it."""
    cache_key: str | None = None
    """A text that is the same in all requests of one NPC.

    With it, a router chooses the server that has the start of the NPC's prompt in its cache. A
    client sends a hash of it instead (`Endpoint.session_key`).
    """
    thoughts: Mapping[str, Thoughts] = field(default_factory=dict, repr=False)
    """Hidden reasoning from earlier replies of this turn.

    The key is the id of the first tool call of the message that it belongs to.
    """
    may_be_empty: bool = False
    """True if an empty reply is accepted, because after tool calls a model may have nothing to add.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The token counts that a provider reports."""

    input_tokens: int
    """Tokens of the prompt, including those read from and written to the provider's cache."""
    output_tokens: int
    """Tokens of the reply, including hidden reasoning."""
    cached_tokens: int = 0
    written_tokens: int = 0

    @property
    def prompt_tokens(self) -> int:
        """The tokens of the whole prompt, also if the server counts cached ones separately."""
        cached = self.cached_tokens + self.written_tokens
        return self.input_tokens if self.input_tokens >= cached else self.input_tokens + cached


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatReply:
    """The reply of a model to one request."""

    text: str
    """The raw text of the model.

    `speech.spoken_text` must clean it. It may be empty if there are tool calls.
    """
    model: str
    tool_calls: tuple[ToolCall, ...] = ()
    """The tool calls, with arguments as the model wrote them. They are not checked yet."""
    finish_reason: str = "stop"
    usage: Usage | None = None
    offline: bool = False
    is_fallback: bool = False
    """True if the text is the fallback line, because the offline responder had no answer."""
    thoughts: Thoughts | None = field(default=None, repr=False, compare=False)
    """Hidden reasoning that must be sent back together with the tool calls."""
    prompt_cut: bool = False
    """True if the server reports that it left out a part of the prompt."""

    @property
    def is_cut(self) -> bool:
        """True if the end of the text is missing or may be missing."""
        return self.finish_reason in ("length", "unended")


Listener = Callable[[str], None]
"""A function that gets each fragment of the raw text, on the reactor's thread, before the reply."""


class ChatModel(Protocol):
    """The interface of a model client. Its methods never block."""

    @property
    def name(self) -> str: ...

    @property
    def offline(self) -> bool:
        """True if this client answers without a language model."""

    def complete(
        self, request: ChatRequest, *, listener: Listener | None = None
    ) -> Deferred[ChatReply]:
        """Send a request to the model.

        Args:
            request: The messages and how to answer them.
            listener: Gets fragments of the text while the model writes, if the model can stream.
                Unless the call fails, the fragments together are the start of the reply's text.

        Returns:
            A Deferred of the reply. It may be cancelled, and it fails with a `ModelError`.
        """

    def close(self) -> None:
        """Close the connections. No other method is called afterwards."""


def sent_sha256(messages: Iterable[ChatMessage], *, tools: Iterable[ToolSpec] = ()) -> str:
    """Return the SHA-256 of the messages, and of tools that are sent with them.

    It equals the prompt's hash if there are no tools and no message was changed for the server.
    """
    found = lines_sha256([message._wire or message.wire() for message in messages])
    offered = [[tool.name, tool.description, tool.parameters] for tool in tools]
    return sha256(f"{found}\n{json.dumps(offered)}".encode()).hexdigest() if offered else found


NAME_CHARACTERS: Final = 64
UNREADABLE: Final = "unreadable_arguments"
"""The name under which unreadable arguments of an earlier call are sent, inside a JSON object."""

_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NOT_IN_NAME: Final = re.compile(r"[^A-Za-z0-9_-]")
_ID_CHARACTERS: Final = 9  # The only length of an id that every provider accepts.


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenCall:
    """A tool call as a server sent it, before ids and names are repaired."""

    id: str = ""
    name: str = ""
    arguments: str = ""


def made_calls(written: Iterable[WrittenCall], request: ChatRequest) -> tuple[ToolCall, ...]:
    """Return the tool calls of a reply to `request`, in order, each with a unique id.

    An id that is missing, malformed or used by an earlier call is replaced. The new id depends on
    the call and on everything said before it, so the same reply always gets the same ids.
    `ReplyReader` has already limited the number of calls.
    """
    before = _Before(request)
    used = {call.id for message in request.messages for call in message.tool_calls}
    made: list[ToolCall] = []
    for place, call in enumerate(written):
        one = ToolCall(id=call.id, name=_name(call.name), arguments=call.arguments)
        if not _ID.fullmatch(one.id) or one.id in used:
            one = replace(one, id=_stable_id(one, place, before))
        used.add(one.id)
        made.append(one)
    return tuple(made)


def read_arguments(call: ToolCall) -> dict[str, Any] | None:
    """Return the arguments of a call as an object, or None if they are not a JSON object."""
    try:
        arguments = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        return None
    return arguments if isinstance(arguments, dict) else None


def argument_object(call: ToolCall) -> dict[str, Any]:
    """Return the arguments of an earlier call as an object.

    Arguments that are not a JSON object are put into one, because some servers require it.
    """
    read = read_arguments(call)
    return {UNREADABLE: call.arguments} if read is None else read


def _name(written: str) -> str:
    return _NOT_IN_NAME.sub("_", written.strip()[:NAME_CHARACTERS]) or "unnamed"


class _Before:
    """The hash of the messages before a reply. It is computed once, when an id needs it."""

    def __init__(self, request: ChatRequest) -> None:
        self._request: Final = request

    @cached_property
    def sha256(self) -> str:
        return sent_sha256(self._request.messages)


def _stable_id(call: ToolCall, place: int, before: _Before) -> str:
    said = json.dumps([before.sha256, place, call.id, call.name, call.arguments])
    return sha256(said.encode()).hexdigest()[:_ID_CHARACTERS]


def sendable(text: str) -> str:
    """Return `text` with ? for each lone surrogate, which UTF-8 cannot encode.

    A player's client can send such characters.
    """
    return text.encode("utf-8", "replace").decode("utf-8")


def sendable_json(value: Any) -> Any:
    """Return a JSON value in which lone surrogates of all texts are replaced by ?.

    The schema of a tool may contain names that players chose.
    """
    return with_each_text(sendable, value)


def with_each_text(change: Callable[[str], str], value: Any) -> Any:
    """Return a JSON value with `change` applied to each text and each member's name."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {change(name): with_each_text(change, one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [with_each_text(change, one) for one in value]
    return value
