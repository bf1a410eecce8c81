"""Anthropic's Messages API as a `ChatModel`: where it is asked, with which key, and the body.

What is not set is not sent. System messages at the beginning become `system` blocks; the API takes
no others, so a later one goes framed, as `roles` does it. A tool's result is a block of a user
message. Neighbours of one role are one message; the first and the last message are a user's.
`anthropic_reply` reads what comes back, `remote` does the rest.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, takewhile
from typing import Any, Final

from evennia_ai.llm.chat import ChatMessage, ChatReply, ChatRequest
from evennia_ai.llm.clients.anthropic_reply import AnthropicStream, whole_reply
from evennia_ai.llm.clients.remote import RemoteChat
from evennia_ai.llm.profiles import Endpoint, Sampling
from evennia_ai.llm.roles import FILLERS, OPEN, RoleProfile, adapt
from evennia_ai.llm.tools import argument_object, sendable, sendable_json
from evennia_ai.net.bridge import AsyncBridge

MOST_BREAKPOINTS: Final = 4
ONE_SYSTEM: Final = RoleProfile(one_system=True)

ANSWER: Final = "Give your answer with this."
"""What the tool is for whose input is the answer to a schema."""

Block = dict[str, Any]

_FILLER: Final[Block] = {"type": "text", "text": FILLERS["user"]}


def body_of(request: ChatRequest, *, model: str, stream: bool) -> dict[str, Any]:
    """The body; a further field of the sampling never replaces what the request itself says.

    A schema is a tool that must be called: every model takes that, and the answer is its input.
    """
    system, messages = _conversation(request)
    body: dict[str, Any] = {
        "model": request.model or model,
        "max_tokens": request.max_tokens,
        "messages": messages,
        **_sampling(request.sampling),
    }
    if system:
        body["system"] = system
    if tools := _tools(request):
        body["tools"] = tools
    if request.schema is not None:
        body["tool_choice"] = {"type": "tool", "name": request.schema.name}
    if request.cache_key is not None:
        body["metadata"] = {"user_id": request.cache_key}
    if stream:
        body["stream"] = True
    return {**request.sampling.extra, **body}


def _sampling(sampling: Sampling) -> dict[str, Any]:
    """There is no seed, and a stop sequence must have something to see in it."""
    chosen = {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "stop_sequences": [stop for stop in sampling.stop if stop.strip()] or None,
    }
    return {name: value for name, value in chosen.items() if value is not None}


def _tools(request: ChatRequest) -> list[dict[str, Any]]:
    tools = [_tool(tool.name, tool.description, tool.parameters) for tool in request.tools]
    if request.schema is not None:
        tools.append(_tool(request.schema.name, ANSWER, request.schema.schema))
    return tools


def _tool(name: str, description: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    described = sendable(description)
    return {"name": name, "description": described, "input_schema": sendable_json(schema)}


def _conversation(request: ChatRequest) -> tuple[list[Block], list[dict[str, Any]]]:
    """The system blocks and the messages, with their cache breakpoints."""
    leading = len(list(takewhile(_is_system, request.messages)))
    system, spoken = request.messages[:leading], _spoken(request.messages[leading:])
    blocks = [_blocks(message) for message in (*system, *spoken)]
    _mark(blocks, request.breakpoints)
    turns = list(_turns(zip(spoken, blocks[leading:], strict=True)))
    first = [] if turns[0]["role"] == "user" else [{"role": "user", "content": [dict(_FILLER)]}]
    return [block for some in blocks[:leading] for block in some], first + turns


def _is_system(message: ChatMessage) -> bool:
    return message.role == "system"


def _spoken(messages: Sequence[ChatMessage]) -> tuple[ChatMessage, ...]:
    """What follows the system messages, with speakers and frames in the texts.

    Messages that were fitted already stay as they are, one for one, so the breakpoints hold; a
    second frame would undo the first.
    """
    later = any(map(_is_system, messages))
    return adapt(messages, profile=ONE_SYSTEM if later else OPEN)


def _blocks(message: ChatMessage) -> list[Block]:
    """The blocks of one message; an empty text is none, for the API refuses it."""
    content = sendable(message.content)
    if message.role == "tool":
        return [{"type": "tool_result", "tool_use_id": message.tool_call_id, "content": content}]
    texts: list[Block] = [{"type": "text", "text": content}] if content.strip() else []
    calls: list[Block] = [
        {
            "type": "tool_use",
            "id": call.id,
            "name": call.name,
            "input": sendable_json(argument_object(call)),
        }
        for call in message.tool_calls
    ]
    return texts + calls


def _mark(blocks: Sequence[list[Block]], breakpoints: Iterable[int]) -> None:
    """Mark the last block up to each breakpoint; the latest ones, where there are too many."""
    for at in sorted(set(breakpoints))[-MOST_BREAKPOINTS:]:
        last = next((some[-1] for some in reversed(blocks[: at + 1]) if some), None)
        if last is not None:
            last["cache_control"] = {"type": "ephemeral"}


def _turns(spoken: Iterable[tuple[ChatMessage, list[Block]]]) -> Iterator[dict[str, Any]]:
    """User and assistant in turn, from user to user; the results of tools stand first."""
    role = "assistant"
    for role, group in groupby((pair for pair in spoken if pair[1]), key=_role_of):
        blocks = [block for _, some in group for block in some]
        yield {"role": role, "content": sorted(blocks, key=_stands_behind)}
    if role == "assistant":
        yield {"role": "user", "content": [dict(_FILLER)]}


def _role_of(pair: tuple[ChatMessage, list[Block]]) -> str:
    return "assistant" if pair[0].role == "assistant" else "user"


def _stands_behind(block: Block) -> bool:
    return bool(block["type"] != "tool_result")


API_VERSION: Final = "2023-06-01"
"""The only one there is of the Messages API; the server wants it said."""

NO_KEY: Final = "none"
"""Sent where no key is configured: a server may want the header and look at nothing in it."""


class AnthropicChat(RemoteChat):
    """One endpoint that speaks the Messages API."""

    def __init__(self, endpoint: Endpoint, bridge: AsyncBridge) -> None:
        super().__init__(_Anthropic(endpoint=endpoint), bridge)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Anthropic:
    """The `Provider` of such servers."""

    endpoint: Endpoint

    @property
    def address(self) -> str:
        return f"{self.endpoint.base_url.rstrip('/').removesuffix('/v1')}/v1/messages"

    def headers(self) -> dict[str, str]:
        key = self.endpoint.api_key.reveal() or NO_KEY
        return {"x-api-key": key, "anthropic-version": API_VERSION}

    def body(self, request: ChatRequest, *, stream: bool) -> dict[str, Any]:
        return body_of(request, model=self.endpoint.model, stream=stream)

    def whole(self, body: bytes, request: ChatRequest) -> ChatReply:
        return whole_reply(body, request=request, endpoint=self.endpoint)

    def streamed(self, request: ChatRequest) -> AnthropicStream:
        return AnthropicStream(request=request, endpoint=self.endpoint)
