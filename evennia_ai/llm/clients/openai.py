"""An OpenAI-compatible server as a `ChatModel`: the body that asks it, the reply in its answer.

What is not set is not sent. A "compatible" server may answer anything, so nothing is taken for
granted. Reasoning has fields of its own (`reasoning_content`, `reasoning`), which are never part of
the text. `remote` does the rest.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from evennia_ai.errors import MAX_CHARACTERS
from evennia_ai.llm.chat import (
    UNREADABLE,
    AnswerSchema,
    ChatMessage,
    ChatRequest,
    Usage,
    WrittenCall,
    argument_object,
    sendable,
    sendable_json,
)
from evennia_ai.llm.clients.answers import (
    MOST_CALLS,
    ReplyReader,
    WrittenInPieces,
    count_of,
    object_of,
    text_of,
)
from evennia_ai.llm.clients.remote import NO_KEY, RemoteChat
from evennia_ai.llm.profiles import Endpoint, Sampling
from evennia_ai.prompt.messages import ToolCall, ToolSpec

NEWER_LIMIT: Final = "max_completion_tokens"
"""What some models want in the place of `max_tokens`; set as a further field it replaces it."""


def body_of(
    request: ChatRequest, *, model: str, stream: bool, session: str | None = None
) -> dict[str, Any]:
    """Return the body; a field of `extra` never replaces what the request itself says."""
    body: dict[str, Any] = {
        "messages": [_wire(message) for message in request.messages],
        **parameters_of(request, model=model),
    }
    if request.tools:
        body["tools"] = [_wire_tool(tool) for tool in request.tools]
    if session is not None:
        body |= {"user": session, "prompt_cache_key": session}
    if stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return {**request.sampling.extra, **body}


def parameters_of(request: ChatRequest, *, model: str) -> dict[str, Any]:
    """Return what the body says beside messages and tools, without the fields of `extra`."""
    parameters = {"model": request.model or model, **_sampling(request.sampling)}
    if NEWER_LIMIT not in request.sampling.extra:
        parameters["max_tokens"] = request.max_tokens
    if request.schema is not None:
        parameters["response_format"] = _wire_schema(request.schema)
    return parameters


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


STREAM_END: Final = "[DONE]"

_REASONING: Final = ("reasoning_content", "reasoning")
_ERROR_STATUSES: Final = range(400, 600)


class OpenAIReply(ReplyReader):
    """A reply of such a server."""

    def __init__(self, request: ChatRequest, endpoint: Endpoint) -> None:
        super().__init__(request, endpoint)
        self._texts: list[str] = []
        self._calls: list[WrittenInPieces] = []
        self._call_at: dict[int, int] = {}  # the index of a call -> its place among the calls
        self._usage: Usage | None = None
        self._reasoned = False
        self._refusal = ""

    def take_answer(self, answer: Mapping[str, Any]) -> None:
        choices = self.listed(answer.get("choices"), what="choices")
        if not choices:
            raise self.rubbish("the reply has no choices")
        self._take_frame(answer, choices[0])
        self._take_message(object_of(choices[0].get("message")))

    def heard(self, data: str) -> str:
        if data.strip() == STREAM_END:
            self.ended = True
            return ""
        return super().heard(data)

    def take_event(self, event: Mapping[str, Any]) -> str:
        choice = next(iter(self.listed(event.get("choices"), what="choices")), {})
        self._take_frame(event, choice)
        return self._take_message(object_of(choice.get("delta")))

    def text(self) -> str:
        return "".join(self._texts)

    def written_calls(self) -> Iterator[WrittenCall]:
        return (call.call() for call in self._calls)

    def usage(self) -> Usage | None:
        return self._usage

    def status_of(self, error: Mapping[str, Any]) -> int | None:
        """Some routers send an error with status 200."""
        code = error.get("code")
        return code if isinstance(code, int) and code in _ERROR_STATUSES else None

    def why_empty(self) -> str:
        if self._refusal:
            return f": the model refused: {self.endpoint.api_key.quoted(self._refusal)}"
        return ": the model only reasoned; allow more tokens for a reply" * self._reasoned

    def _take_frame(self, answer: Mapping[str, Any], choice: Mapping[str, Any]) -> None:
        """What stands around the message: how it ended, which model, at what cost."""
        self.model = text_of(answer.get("model")) or self.model
        self.stop = text_of(choice.get("finish_reason")) or self.stop
        self._usage = _usage(answer.get("usage")) or self._usage
        self.prompt_cut = self.prompt_cut or answer.get("truncated") is True  # llama.cpp

    def _take_message(self, message: Mapping[str, Any]) -> str:
        """A message, or what a stream adds to it; its text."""
        text = self._message_text(message.get("content"))
        self._texts.append(text)
        if len(self._refusal) < MAX_CHARACTERS:
            self._refusal += text_of(message.get("refusal"))
        self._reasoned = self._reasoned or any(message.get(name) for name in _REASONING)
        calls = self.listed(message.get("tool_calls"), what="tool calls", most=MOST_CALLS)
        for place, call in enumerate(calls):
            index = call.get("index")
            self._take_call(index if isinstance(index, int) else place, call)
        return text

    def _take_call(self, index: int, piece: Mapping[str, Any]) -> None:
        """Id and name come once, arguments in pieces; another id under an index is a new call."""
        call_id = text_of(piece.get("id"))
        at = self._call_at.get(index)
        if at is None or (call_id and self._calls[at].id not in ("", call_id)):
            self.checked(len(self._calls) + 1, what="tool calls", most=MOST_CALLS)
            at = self._call_at[index] = len(self._calls)
            self._calls.append(WrittenInPieces())
        call, function = self._calls[at], object_of(piece.get("function"))
        call.id = call.id or call_id
        call.name = call.name or text_of(function.get("name"))
        call.written.append(self.taken_arguments(_argument_text(function.get("arguments"))))

    def _message_text(self, content: object) -> str:
        """The text of a message, which may be one string or a list of parts."""
        parts = self.listed(content, what="parts of a message")
        texts = [part for part in parts if part.get("type") == "text"]
        return "".join(text_of(part.get("text")) for part in texts) or text_of(content)


def _argument_text(arguments: object) -> str:
    """The arguments as text; some servers send the object itself."""
    if isinstance(arguments, dict):
        try:
            return json.dumps(arguments, ensure_ascii=False)
        except RecursionError:
            return ""
    return text_of(arguments)


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


class OpenAIChat(RemoteChat):
    """One endpoint that speaks the chat completions API."""

    @property
    def address(self) -> str:
        return f"{self.endpoint.base_url.rstrip('/')}/chat/completions"

    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.endpoint.api_key.reveal() or NO_KEY}"}

    def body(self, request: ChatRequest, *, stream: bool) -> dict[str, Any]:
        session = self.session_of(request)
        return body_of(request, model=self.endpoint.model, stream=stream, session=session)

    def reader(self, request: ChatRequest) -> OpenAIReply:
        return OpenAIReply(request, self.endpoint)
