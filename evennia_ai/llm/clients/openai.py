"""An OpenAI-compatible server as a `ChatModel`: the body that asks it, the reply in its answer.

What is not set is not sent. A "compatible" server may answer anything, so nothing is taken for
granted. Reasoning has fields of its own (`reasoning_content`, `reasoning`), which are never part of
the text. `remote` does the rest.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from evennia_ai.errors import MAX_CHARACTERS, ModelError, ModelRubbish
from evennia_ai.llm.chat import AnswerSchema, ChatMessage, ChatReply, ChatRequest, Usage
from evennia_ai.llm.clients.answers import (
    MOST_CALLS,
    Pieces,
    count_of,
    object_of,
    text_of,
    turned_down,
    words_of,
)
from evennia_ai.llm.clients.remote import RemoteChat
from evennia_ai.llm.profiles import Endpoint, Sampling
from evennia_ai.llm.tools import (
    UNREADABLE,
    WrittenCall,
    argument_object,
    made_calls,
    sendable,
    sendable_json,
)
from evennia_ai.net.bridge import AsyncBridge
from evennia_ai.net.http import json_object
from evennia_ai.prompt.messages import ToolCall, ToolSpec

STREAM_END: Final = "[DONE]"

_REASONING: Final = ("reasoning_content", "reasoning")
_ERROR_STATUSES: Final = range(400, 600)


@dataclass(slots=True, kw_only=True)
class _Call:
    """What of a call has come so far; the arguments come in pieces."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)

    def made(self) -> WrittenCall:
        return WrittenCall(id=self.id, name=self.name, arguments="".join(self.arguments))


@dataclass(slots=True, kw_only=True)
class _SaidByOpenAI:
    """What of a reply has come so far; `call_at` says where in `calls` the one of an index is."""

    pieces: Pieces
    model: str = ""
    text: list[str] = field(default_factory=list)
    calls: list[_Call] = field(default_factory=list)
    call_at: dict[int, int] = field(default_factory=dict)
    finish: str = ""
    usage: Usage | None = None
    reasoned: bool = False
    refusal: str = ""


def whole_reply(body: bytes, *, request: ChatRequest, endpoint: Endpoint) -> ChatReply:
    """The reply in a body; fails with a `ModelError` where there is none."""
    answer = json_object(body)
    if answer is None:
        raise ModelRubbish(endpoint.name, "the reply is not a JSON object")
    if problem := _own_error(answer, endpoint):
        raise problem
    said = _SaidByOpenAI(pieces=Pieces(server=endpoint.name))
    choices = said.pieces.of(answer.get("choices"), what="choices")
    if not choices:
        raise ModelRubbish(endpoint.name, "the reply has no choices")
    _add_message(said, object_of(choices[0].get("message")))
    _add_frame(said, answer, choices[0])
    return _made(said, request, endpoint)


class OpenAIStream:
    """Puts a reply together from the events of a stream."""

    def __init__(self, *, request: ChatRequest, endpoint: Endpoint) -> None:
        self._request = request
        self._endpoint = endpoint
        self._said = _SaidByOpenAI(pieces=Pieces(server=endpoint.name))
        self._ended = False

    @property
    def is_complete(self) -> bool:
        """Whether nothing of the text can follow."""
        return self._ended or bool(self._said.finish)

    def heard(self, data: str) -> str:
        """The text in one event, mostly a word or nothing."""
        if data.strip() == STREAM_END:
            self._ended = True
            return ""
        event = json_object(data)
        if event is None:
            raise ModelRubbish(self._endpoint.name, "a piece of the stream is not a JSON object")
        if problem := _own_error(event, self._endpoint):
            raise problem
        choice = next(iter(self._said.pieces.of(event.get("choices"), what="choices")), {})
        _add_frame(self._said, event, choice)
        return _add_message(self._said, object_of(choice.get("delta")))

    def reply(self) -> ChatReply:
        """The reply that all events make together."""
        return _made(self._said, self._request, self._endpoint)


def _own_error(answer: Mapping[str, Any], endpoint: Endpoint) -> ModelError | None:
    """Some routers send an error with status 200, or in the middle of a stream."""
    error = answer.get("error")
    if not error:
        return None
    words = words_of(answer)
    code = object_of(error).get("code")
    if isinstance(code, int) and code in _ERROR_STATUSES:
        return turned_down(endpoint, code, words)
    said = endpoint.api_key.quoted(words) or "no reason given"
    return ModelRubbish(endpoint.name, f"the server sent an error: {said}")


def _add_frame(said: _SaidByOpenAI, answer: Mapping[str, Any], choice: Mapping[str, Any]) -> None:
    """What stands around the message: how it ended, which model, at what cost."""
    said.model = text_of(answer.get("model")) or said.model
    said.finish = text_of(choice.get("finish_reason")) or said.finish
    said.usage = _usage(answer.get("usage")) or said.usage


def _add_message(said: _SaidByOpenAI, message: Mapping[str, Any]) -> str:
    """A message, or what a stream adds to it; its text."""
    text = _message_text(message.get("content"), said.pieces)
    said.text.append(text)
    if len(said.refusal) < MAX_CHARACTERS:
        said.refusal += text_of(message.get("refusal"))
    said.reasoned = said.reasoned or any(message.get(name) for name in _REASONING)
    calls = said.pieces.of(message.get("tool_calls"), what="tool calls", most=MOST_CALLS)
    for place, call in enumerate(calls):
        index = call.get("index")
        _add_call(said, index if isinstance(index, int) else place, call)
    return text


def _add_call(said: _SaidByOpenAI, index: int, piece: Mapping[str, Any]) -> None:
    """Id and name come once, the arguments in pieces; another id under an index is a new call."""
    call_id = text_of(piece.get("id"))
    at = said.call_at.get(index)
    if at is None or (call_id and said.calls[at].id not in ("", call_id)):
        said.pieces.checked(len(said.calls) + 1, what="tool calls", most=MOST_CALLS)
        at = said.call_at[index] = len(said.calls)
        said.calls.append(_Call())
    call, function = said.calls[at], object_of(piece.get("function"))
    call.id = call.id or call_id
    call.name = call.name or text_of(function.get("name"))
    written = _argument_text(function.get("arguments"))
    call.arguments.append(said.pieces.take_arguments(written))


def _argument_text(arguments: object) -> str:
    """The arguments as text; some servers send the object itself."""
    if isinstance(arguments, dict):
        try:
            return json.dumps(arguments, ensure_ascii=False)
        except RecursionError:
            return ""
    return text_of(arguments)


def _made(said: _SaidByOpenAI, request: ChatRequest, endpoint: Endpoint) -> ChatReply:
    """The reply, if it says or does anything."""
    text = "".join(said.text)
    calls = made_calls([call.made() for call in said.calls], request)
    finish = endpoint.api_key.quoted(said.finish, most=40) or "stop"
    if not calls and not text.strip():
        raise ModelRubbish(endpoint.name, _why_empty(said, finish, endpoint))
    named = endpoint.api_key.quoted(said.model) or request.model or endpoint.model
    return ChatReply(
        text=text, model=named, tool_calls=calls, finish_reason=finish, usage=said.usage
    )


def _why_empty(said: _SaidByOpenAI, finish: str, endpoint: Endpoint) -> str:
    why = f"the text is empty (finish reason '{finish}')"
    if said.refusal:
        return f"{why}: the model refused: {endpoint.api_key.quoted(said.refusal)}"
    if said.reasoned:
        return f"{why}: the model only reasoned; allow more tokens for a reply"
    return why


def _message_text(content: object, pieces: Pieces) -> str:
    """The text of a message, which may be one string or a list of parts."""
    parts = pieces.of(content, what="parts of a message")
    texts = [part for part in parts if part.get("type") == "text"]
    return "".join(text_of(part.get("text")) for part in texts) or text_of(content)


def _usage(usage: object) -> Usage | None:
    """Tokens; what was read from a cache has two names, what was written to one only with some."""
    if not isinstance(usage, dict):
        return None
    details = object_of(usage.get("prompt_tokens_details"))
    cached = count_of(details.get("cached_tokens"))
    return Usage(
        input_tokens=count_of(usage.get("prompt_tokens")),
        output_tokens=count_of(usage.get("completion_tokens")),
        cached_tokens=cached or count_of(usage.get("prompt_cache_hit_tokens")),
        written_tokens=count_of(details.get("cache_write_tokens")),
    )


NEWER_LIMIT: Final = "max_completion_tokens"
"""What some models want in the place of `max_tokens`; set as a further field it replaces it."""


def body_of(request: ChatRequest, *, model: str, stream: bool) -> dict[str, Any]:
    """The body; a further field of the sampling never replaces what the request itself says."""
    body: dict[str, Any] = {
        "model": request.model or model,
        "messages": [_wire(message) for message in request.messages],
        **_sampling(request.sampling),
    }
    if NEWER_LIMIT not in request.sampling.extra:
        body["max_tokens"] = request.max_tokens
    if request.tools:
        body["tools"] = [_wire_tool(tool) for tool in request.tools]
    if request.schema is not None:
        body["response_format"] = _wire_schema(request.schema)
    if request.cache_key is not None:
        body["user"] = request.cache_key
    if stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return {**request.sampling.extra, **body}


def _sampling(sampling: Sampling) -> dict[str, Any]:
    chosen = {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "stop": list(sampling.stop) or None,
        "seed": sampling.seed,
    }
    return {name: value for name, value in chosen.items() if value is not None}


def _wire(message: ChatMessage) -> dict[str, Any]:
    wire: dict[str, Any] = {"role": message.role, "content": sendable(message.content)}
    if message.name is not None:
        wire["name"] = sendable(message.name)
    if message.tool_call_id is not None:
        wire["tool_call_id"] = message.tool_call_id
    if message.tool_calls:
        wire["tool_calls"] = [_wire_call(call) for call in message.tool_calls]
    return wire


def _wire_call(call: ToolCall) -> dict[str, Any]:
    """The call as it was made; arguments no server could read go out inside a JSON object."""
    read = argument_object(call)
    arguments = (
        json.dumps(read, ensure_ascii=False) if UNREADABLE in read else call.arguments or "{}"
    )
    function = {"name": call.name, "arguments": sendable(arguments)}
    return {"id": call.id, "type": "function", "function": function}


def _wire_tool(tool: ToolSpec) -> dict[str, Any]:
    function = {
        "name": tool.name,
        "description": sendable(tool.description),
        "parameters": sendable_json(tool.parameters),
    }
    return {"type": "function", "function": function}


def _wire_schema(schema: AnswerSchema) -> dict[str, Any]:
    return {
        "type": "json_schema",
        "json_schema": {
            "name": schema.name,
            "schema": sendable_json(schema.schema),
            "strict": _is_closed(schema.schema),
        },
    }


def _is_closed(schema: object) -> bool:
    """Whether every object in a schema has its fields and no others: strict servers want that."""
    if isinstance(schema, list):
        return all(map(_is_closed, schema))
    if not isinstance(schema, Mapping):
        return True
    fields = schema.get("properties")
    if isinstance(fields, Mapping):
        if schema.get("additionalProperties") is not False:
            return False
        if set(schema.get("required", ())) != set(fields):
            return False
    return all(map(_is_closed, schema.values()))


NO_KEY: Final = "none"
"""Sent where no key is configured: a server may want the header and look at nothing in it."""


class OpenAIChat(RemoteChat):
    """One endpoint that speaks the chat completions API."""

    def __init__(self, endpoint: Endpoint, bridge: AsyncBridge) -> None:
        super().__init__(_OpenAI(endpoint=endpoint), bridge)


@dataclass(frozen=True, slots=True, kw_only=True)
class _OpenAI:
    """The `Provider` of such servers."""

    endpoint: Endpoint

    @property
    def address(self) -> str:
        return f"{self.endpoint.base_url.rstrip('/')}/chat/completions"

    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.endpoint.api_key.reveal() or NO_KEY}"}

    def body(self, request: ChatRequest, *, stream: bool) -> dict[str, Any]:
        return body_of(request, model=self.endpoint.model, stream=stream)

    def whole(self, body: bytes, request: ChatRequest) -> ChatReply:
        return whole_reply(body, request=request, endpoint=self.endpoint)

    def streamed(self, request: ChatRequest) -> OpenAIStream:
        return OpenAIStream(request=request, endpoint=self.endpoint)
