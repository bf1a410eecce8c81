"""A request as the body of an OpenAI-compatible chat completion; what is not set is not sent."""

import json
from collections.abc import Mapping
from typing import Any, Final

from evennia_ai.llm.chat import AnswerSchema, ChatMessage, ChatRequest, Sampling
from evennia_ai.llm.sendable import sendable, sendable_json
from evennia_ai.llm.tool_calls import UNREADABLE, argument_object
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
