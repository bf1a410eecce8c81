"""Requests to a model, its replies, and the interface of a model client.

A request holds the messages exactly as they are sent: `roles.adapt_messages` has adapted them to
the server, because the hash of the prompt covers the result. A tool call of a reply is sent again
with every later prompt, also to other servers. A call without an id, or with a name that some
server refuses, would make each later request fail, so both are repaired here. The arguments stay as
the model wrote them; the code that runs the call checks them.
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
    """One message as a server takes it.

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
        """The values computed from it. It is made at the first use: most messages have none."""
        if self._memo is None:
            object.__setattr__(self, "_memo", Memo())
        assert self._memo is not None
        return self._memo

    def wire(self) -> bytes:
        """Return the message as canonical JSON, the bytes of the equal message of the prompt."""
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
    """Return a message of a prompt without our own fields.

    Both share their bytes and the values computed from them.
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
"""The source of a passage: an entry of lore, or a field of the NPC's card."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A text of this turn's prompt that the offline responder may quote."""

    label: str
    text: str
    kind: PassageKind = "lore"
    score: float = 0.0
    constant: bool = False
    """True if it is active in every turn."""
    keys: tuple[str, ...] = ()
    """The keys of the entry, as written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSchema:
    """A named JSON schema that an answer must match."""

    name: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Thoughts:
    """Hidden reasoning that a server wants back with the calls of its reply.

    It is opaque: it is never read, shown or stored. It is kept for the rounds of one turn, and only
    the server that sent it gets it back.
    """

    message: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the message that makes the calls."""
    calls: tuple[Mapping[str, Any], ...] = ()
    """Fields of each call, in their order."""


NO_THOUGHTS: Final = Thoughts()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """One request to a model."""

    messages: tuple[ChatMessage, ...]
    model: str
    max_tokens: int
    timeout_seconds: float
    """The time to the complete reply, retries and queueing included."""
    sampling: Sampling = USUAL
    tools: tuple[ToolSpec, ...] = ()
    """The tools that the model may call, sorted by name."""
    schema: AnswerSchema | None = None
    """The schema that the answer must match."""
    breakpoints: tuple[int, ...] = ()
    """Indexes of the messages after which a provider may cache the prompt so far."""
    passages: tuple[Passage, ...] = ()
    speaker: str = ""
    """The name of the NPC that will say the reply."""
    question: str = ""
    """The line that it answers."""
    asker: str = ""
    """The NPC's name for the person who said it."""
    place: str = ""
    """The name of its room."""
    company: tuple[str, ...] = ()
    """Its names for the other people it sees there, without the asker."""
    cache_key: str | None = None
    """Stable for one NPC, so that a router can choose the server that has its prompt cached.

    A client sends `Endpoint.session_key` of it instead.
    """
    thoughts: Mapping[str, Thoughts] = field(default_factory=dict, repr=False)
    """Hidden reasoning of this turn, by the id of the first call of each message."""
    may_be_empty: bool = False
    """True if an empty reply is accepted: after its acts, a model may have nothing to add."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The token counts of a provider."""

    input_tokens: int
    """Tokens of the prompt, with those read from and written to the provider's cache."""
    output_tokens: int
    """Tokens of the reply, with hidden reasoning."""
    cached_tokens: int = 0
    written_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatReply:
    """The reply of a model."""

    text: str
    """Raw text, which `speech.spoken_text` must clean. It may be empty if there are tool calls."""
    model: str
    tool_calls: tuple[ToolCall, ...] = ()
    """The calls, with arguments as the model wrote them: nobody has checked them yet."""
    finish_reason: str = "stop"
    usage: Usage | None = None
    offline: bool = False
    is_fallback: bool = False
    """True if there was nothing to answer and this is the line for that."""
    thoughts: Thoughts | None = field(default=None, repr=False, compare=False)
    """Hidden reasoning that goes back with its calls."""
    prompt_cut: bool = False
    """True if the server says that it left out a part of the prompt."""

    @property
    def is_cut(self) -> bool:
        """True if its last words are missing, or may be."""
        return self.finish_reason in ("length", "unended")


Listener = Callable[[str], None]
"""Called with each fragment of the raw text, on the reactor's thread, before the reply."""


class ChatModel(Protocol):
    """The interface of a model client. It never blocks."""

    @property
    def name(self) -> str: ...

    @property
    def offline(self) -> bool:
        """True if no language model is behind it."""

    def complete(
        self, request: ChatRequest, *, listener: Listener | None = None
    ) -> Deferred[ChatReply]:
        """Ask the model.

        Args:
            request: The messages and how to answer them.
            listener: Hears the text while it is written, if the model can stream. Unless the call
                fails, the fragments together are the start of the reply's text.

        Returns:
            The reply, later. The Deferred may be cancelled. It fails with a `ModelError`.
        """

    def close(self) -> None:
        """Give up connections. It is the last call."""


def sent_sha256(messages: Iterable[ChatMessage], *, tools: Iterable[ToolSpec] = ()) -> str:
    """Return the SHA-256 of the messages and of the tools sent with them.

    It equals the hash of the prompt if the adapter changed nothing and there are no tools.
    """
    found = lines_sha256([message._wire or message.wire() for message in messages])
    offered = [[tool.name, tool.description, tool.parameters] for tool in tools]
    return sha256(f"{found}\n{json.dumps(offered)}".encode()).hexdigest() if offered else found


NAME_CHARACTERS: Final = 64
UNREADABLE: Final = "unreadable_arguments"
"""The field that holds the arguments of an earlier call if they are not a JSON object."""

_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NOT_IN_NAME: Final = re.compile(r"[^A-Za-z0-9_-]")
_ID_CHARACTERS: Final = 9  # the one length that every provider takes


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenCall:
    """A tool call as a server sent it, not checked yet."""

    id: str = ""
    name: str = ""
    arguments: str = ""


def made_calls(written: Iterable[WrittenCall], request: ChatRequest) -> tuple[ToolCall, ...]:
    """Return the calls of a reply to `request`, in order, each with its own id.

    An id that is missing, malformed or used by an earlier call is replaced. The new id depends on
    the call and on everything said before it, so the same reply always gets the same ids. The
    reader of the reply has checked the number of calls.
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
    """Return the arguments of an earlier call for a server that wants an object."""
    read = read_arguments(call)
    return {UNREADABLE: call.arguments} if read is None else read


def _name(written: str) -> str:
    return _NOT_IN_NAME.sub("_", written.strip()[:NAME_CHARACTERS]) or "unnamed"


class _Before:
    """The hash of the messages before a reply, computed once and only if an id needs it."""

    def __init__(self, request: ChatRequest) -> None:
        self._request: Final = request

    @cached_property
    def sha256(self) -> str:
        return sent_sha256(self._request.messages)


def _stable_id(call: ToolCall, place: int, before: _Before) -> str:
    said = json.dumps([before.sha256, place, call.id, call.name, call.arguments])
    return sha256(said.encode()).hexdigest()[:_ID_CHARACTERS]


def sendable(text: str) -> str:
    """Return `text` with ? for half a surrogate pair, which a player's client can send."""
    return text.encode("utf-8", "replace").decode("utf-8")


def sendable_json(value: Any) -> Any:
    """Return a JSON value with all its texts sendable. The schema of a tool may list names."""
    return with_each_text(sendable, value)


def with_each_text(change: Callable[[str], str], value: Any) -> Any:
    """Return a JSON value with `change` applied to each text, names of members included."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {change(name): with_each_text(change, one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [with_each_text(change, one) for one in value]
    return value
