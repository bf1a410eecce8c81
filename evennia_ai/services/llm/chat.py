"""What is asked of a model and what it answers, the calls of tools in both, what a model can do.

A request holds the messages exactly as they go out: whoever builds it has already fitted them to
the provider (`roles.adapt`), because the prompt's hash covers the result. A call that a model made
is sent again with every later prompt, so what one server wrote must be fit for all: a call without
an id, or with a name no provider takes, would have each later request refused. Its arguments stay
as the model wrote them; whoever runs the call judges them.
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
    """One message as a provider takes it.

    One that was said once is sent with every later prompt, so what was worked out from it is kept.
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
        """What was worked out from it, as with the messages of a prompt.

        Made when it is first asked for: nothing is worked out from most that go out.
        """
        if self._memo is None:
            object.__setattr__(self, "_memo", Memo())
        assert self._memo is not None
        return self._memo

    def wire(self) -> bytes:
        """The message as canonical JSON bytes, those of a prompt's message that says the same."""
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
    """A message of a prompt without what only we know about it.

    It says the same, so the two share their bytes and what is worked out from them.
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
"""Which text of an NPC it is: an entry of lore, or one of the fields of its card."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A text of this turn's prompt that the offline responder may quote from."""

    label: str
    text: str
    kind: PassageKind = "lore"
    score: float = 0.0
    constant: bool = False
    """Whether it is active whatever is said."""
    keys: tuple[str, ...] = ()
    """What its author wants it to answer to, as written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSchema:
    """The form an answer must have: a JSON schema of an object, under a name."""

    name: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Thoughts:
    """What a provider wants back with the calls of a reply, as it came.

    It is opaque: nobody reads it, shows it or stores it. It is kept for the rounds of one turn and
    sent to the server that it came from, and to no other.
    """

    message: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the message that makes the calls."""
    calls: tuple[Mapping[str, Any], ...] = ()
    """Fields of each call, in their order."""


NO_THOUGHTS: Final = Thoughts()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """One call of a model."""

    messages: tuple[ChatMessage, ...]
    model: str
    max_tokens: int
    timeout_seconds: float
    """From asking to the complete reply, retries and queueing included."""
    sampling: Sampling = USUAL
    tools: tuple[ToolSpec, ...] = ()
    """Those the model may call, sorted by name."""
    schema: AnswerSchema | None = None
    """The form in which it must answer."""
    breakpoints: tuple[int, ...] = ()
    """Indexes of the messages after which a provider may keep what it read so far."""
    passages: tuple[Passage, ...] = ()
    speaker: str = ""
    """The name of the NPC that will say the reply."""
    question: str = ""
    """What was said to it."""
    asker: str = ""
    """What the NPC calls whoever said it."""
    place: str = ""
    """The name of the room it is in."""
    company: tuple[str, ...] = ()
    """What it calls the others it sees there, without the asker."""
    cache_key: str | None = None
    """Stable for one NPC, so that a router can ask the server that has its prompt cached.

    It is not sent: what is, is `Endpoint.session_key` of it.
    """
    thoughts: Mapping[str, Thoughts] = field(default_factory=dict, repr=False)
    """What goes with the calls of this turn, by the id of the first call of each message."""
    may_be_empty: bool = False
    """Whether a reply without a word is one: the model may have nothing to add to its acts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens as the provider counted them."""

    input_tokens: int
    """With those read from its cache and those written to it."""
    output_tokens: int
    """With hidden reasoning."""
    cached_tokens: int = 0
    written_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatReply:
    """What a model answered; `text` is raw and must go through `speech.spoken_text`.

    With `tool_calls` the text may be empty. Their arguments are the text the model wrote: nobody
    checked them yet. `is_fallback`: there was nothing to answer, and this is the line for that.
    """

    text: str
    model: str
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str = "stop"
    usage: Usage | None = None
    offline: bool = False
    is_fallback: bool = False
    thoughts: Thoughts | None = field(default=None, repr=False, compare=False)
    """What goes back with its calls."""
    prompt_cut: bool = False
    """Whether the server says that it left out a part of the prompt."""

    @property
    def is_cut(self) -> bool:
        """Whether its last words are missing, or may be."""
        return self.finish_reason in ("length", "unended")


Listener = Callable[[str], None]
"""Is given the raw text of a reply piece by piece, on the reactor's thread, before the reply."""


class ChatModel(Protocol):
    """Something that answers a request, at once or later, but never by waiting.

    `offline` is true where no language model is behind it. A `listener` hears the reply while it
    is written, where the model can stream; what it heard is the start of the reply's text, unless
    the call fails. The Deferred fails with a `errors.ModelError` and may be cancelled. `close` is
    the last call.
    """

    @property
    def name(self) -> str: ...

    @property
    def offline(self) -> bool: ...

    def complete(
        self, request: ChatRequest, *, listener: Listener | None = None
    ) -> Deferred[ChatReply]: ...

    def close(self) -> None: ...


def sent_sha256(messages: Iterable[ChatMessage], *, tools: Iterable[ToolSpec] = ()) -> str:
    """Hash of what goes out; the prompt's own hash where the adapter changed nothing.

    It covers the list of tools, where one goes with the messages.
    """
    found = lines_sha256([message._wire or message.wire() for message in messages])
    offered = [[tool.name, tool.description, tool.parameters] for tool in tools]
    return sha256(f"{found}\n{json.dumps(offered)}".encode()).hexdigest() if offered else found


NAME_CHARACTERS: Final = 64
UNREADABLE: Final = "unreadable_arguments"
"""The field in which arguments go out that are no JSON object."""

_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NOT_IN_NAME: Final = re.compile(r"[^A-Za-z0-9_-]")
_ID_CHARACTERS: Final = 9  # the one length that every provider takes


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenCall:
    """A call as a server sent it; nothing of it was checked."""

    id: str = ""
    name: str = ""
    arguments: str = ""


def made_calls(written: Iterable[WrittenCall], request: ChatRequest) -> tuple[ToolCall, ...]:
    """The calls of a reply to `request`, in order, each with an id of its own.

    An id that is missing, malformed or used by an earlier call is replaced by one that depends on
    the call and on all that was said before it: the same reply always has the same ids. How many
    there may be was checked where they were read.
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
    """The arguments of a call as an object, None where they are none."""
    try:
        arguments = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        return None
    return arguments if isinstance(arguments, dict) else None


def argument_object(call: ToolCall) -> dict[str, Any]:
    """The same for servers that read them when they are sent again."""
    read = read_arguments(call)
    return {UNREADABLE: call.arguments} if read is None else read


def _name(written: str) -> str:
    return _NOT_IN_NAME.sub("_", written.strip()[:NAME_CHARACTERS]) or "unnamed"


class _Before:
    """The hash of what was said before the calls of a reply, made once and only where needed."""

    def __init__(self, request: ChatRequest) -> None:
        self._request: Final = request

    @cached_property
    def sha256(self) -> str:
        return sent_sha256(self._request.messages)


def _stable_id(call: ToolCall, place: int, before: _Before) -> str:
    said = json.dumps([before.sha256, place, call.id, call.name, call.arguments])
    return sha256(said.encode()).hexdigest()[:_ID_CHARACTERS]


def sendable(text: str) -> str:
    """`text` with a question mark for half a surrogate pair: a player's client can send one."""
    return text.encode("utf-8", "replace").decode("utf-8")


def sendable_json(value: Any) -> Any:
    """A JSON value with all its texts sendable: a tool's schema may list names of the game."""
    return with_each_text(sendable, value)


def with_each_text(change: Callable[[str], str], value: Any) -> Any:
    """A JSON value with this done to each of its texts, names of members among them."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {change(name): with_each_text(change, one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [with_each_text(change, one) for one in value]
    return value
