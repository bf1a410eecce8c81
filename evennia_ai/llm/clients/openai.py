"""Any OpenAI-compatible server as a `ChatModel`: where it is asked, with which key, and the body.

What is not set is not sent. `openai_reply` reads what comes back, `remote` does the rest.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from evennia_ai.llm.chat import AnswerSchema, ChatMessage, ChatReply, ChatRequest, Sampling
from evennia_ai.llm.clients.openai_reply import OpenAIStream, whole_reply
from evennia_ai.llm.clients.remote import RemoteChat
from evennia_ai.llm.endpoint import Endpoint
from evennia_ai.llm.fitting.tool_calls import UNREADABLE, argument_object, sendable, sendable_json
from evennia_ai.net.bridge import AsyncBridge
from evennia_ai.prompt.messages import ToolCall, ToolSpec

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
