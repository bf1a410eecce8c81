"""The reply in what Anthropic's Messages API sent: in one body, or in the events of a stream.

Thinking has blocks of its own, which are never part of the text. The words of the API (reasons to
stop, kinds of errors, what counts as input) become those that all clients use.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from evennia_ai.errors import ModelError, ModelRubbish
from evennia_ai.llm.chat import ChatReply, ChatRequest, Usage
from evennia_ai.llm.clients.answers import (
    MOST_BLOCKS,
    MOST_CALLS,
    Pieces,
    count_of,
    object_of,
    text_of,
    turned_down,
    words_of,
)
from evennia_ai.llm.profiles import Endpoint
from evennia_ai.llm.tools import WrittenCall, made_calls
from evennia_ai.net.http import json_object

_FINISH: Final = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}

_COUNTS: Final = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)

_ERROR_STATUS: Final = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


@dataclass(slots=True, kw_only=True)
class _Block:
    """A block of a reply; what a call wrote is the JSON of its input."""

    kind: str
    id: str = ""
    name: str = ""
    written: list[str] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class _SaidByAnthropic:
    """What of a reply has come so far; the blocks by their index."""

    request: ChatRequest
    endpoint: Endpoint
    pieces: Pieces
    model: str = ""
    blocks: dict[int, _Block] = field(default_factory=dict)
    stop: str = ""
    usage: dict[str, Any] = field(default_factory=dict)
    calls: int = 0


def whole_reply(body: bytes, *, request: ChatRequest, endpoint: Endpoint) -> ChatReply:
    """The reply in a body; fails with a `ModelError` where there is none."""
    answer = json_object(body)
    if answer is None:
        raise ModelRubbish(endpoint.name, "the reply is not a JSON object")
    if answer.get("error"):
        raise _own_error(answer, endpoint)
    if not isinstance(answer.get("content"), list):
        raise ModelRubbish(endpoint.name, "the reply has no content")
    said = _nothing_said(request, endpoint)
    _add_frame(said, answer)
    blocks = said.pieces.of(answer["content"], what="blocks")
    for index, block in enumerate(blocks):
        _begin(said, index, block)
    return _made(said)


class AnthropicStream:
    """Puts a reply together from the events of a stream."""

    def __init__(self, *, request: ChatRequest, endpoint: Endpoint) -> None:
        self._said = _nothing_said(request, endpoint)
        self._ended = False

    @property
    def is_complete(self) -> bool:
        """Whether nothing of the reply is missing."""
        return self._ended or bool(self._said.stop)

    def heard(self, data: str) -> str:
        """The text in one event, mostly a word or nothing."""
        event, said = json_object(data), self._said
        if event is None:
            raise ModelRubbish(said.endpoint.name, "a piece of the stream is not a JSON object")
        match event.get("type"):
            case "content_block_start":
                block = object_of(event.get("content_block"))
                return _begin(said, count_of(event.get("index")), block)
            case "content_block_delta":
                return _go_on(said, count_of(event.get("index")), object_of(event.get("delta")))
            case "message_start":
                _add_frame(said, object_of(event.get("message")))
            case "message_delta":
                _add_frame(said, object_of(event.get("delta")))
                _add_usage(said, event.get("usage"))
            case "message_stop":
                self._ended = True
            case "error":
                raise _own_error(event, said.endpoint)
        return ""

    def reply(self) -> ChatReply:
        """The reply that all events make together."""
        return _made(self._said)


def _nothing_said(request: ChatRequest, endpoint: Endpoint) -> _SaidByAnthropic:
    return _SaidByAnthropic(request=request, endpoint=endpoint, pieces=Pieces(server=endpoint.name))


def _own_error(answer: Mapping[str, Any], endpoint: Endpoint) -> ModelError:
    """An error that came with status 200, or in the middle of a stream."""
    words = words_of(answer)
    status = _ERROR_STATUS.get(text_of(object_of(answer.get("error")).get("type")))
    if status is not None:
        return turned_down(endpoint, status, words)
    said = endpoint.api_key.quoted(words) or "no reason given"
    return ModelRubbish(endpoint.name, f"the server sent an error: {said}")


def _add_frame(said: _SaidByAnthropic, message: Mapping[str, Any]) -> None:
    """What stands around the blocks: which model, how it ended, at what cost."""
    said.model = text_of(message.get("model")) or said.model
    said.stop = text_of(message.get("stop_reason")) or said.stop
    _add_usage(said, message.get("usage"))


def _add_usage(said: _SaidByAnthropic, usage: object) -> None:
    """Counts as they are known so far: a later event repeats or raises those before it."""
    told = object_of(usage)
    said.usage |= {name: told[name] for name in _COUNTS if told.get(name) is not None}


def _begin(said: _SaidByAnthropic, index: int, block: Mapping[str, Any]) -> str:
    """A block with what it holds already; its text, if that is part of the reply's."""
    made = _Block(
        kind=text_of(block.get("type")),
        id=text_of(block.get("id")),
        name=text_of(block.get("name")),
    )
    said.blocks[index] = made
    said.pieces.checked(len(said.blocks), what="blocks", most=MOST_BLOCKS)
    if _is_call(made, said.request):
        said.calls += 1
        said.pieces.checked(said.calls, what="tool calls", most=MOST_CALLS)
    return _write(said, made, _begun_text(made, block))


def _begun_text(made: _Block, block: Mapping[str, Any]) -> str:
    """What a block holds at its beginning; some servers send a whole call there."""
    if made.kind != "tool_use":
        return text_of(block.get("text"))
    begun = block.get("input")
    try:
        return json.dumps(begun, ensure_ascii=False) if begun else ""
    except RecursionError:
        return ""


def _go_on(said: _SaidByAnthropic, index: int, delta: Mapping[str, Any]) -> str:
    """What an event adds to a block; its text, if that is part of the reply's."""
    block = said.blocks.get(index)
    if block is None:
        return ""
    return _write(said, block, text_of(delta.get("text")) or text_of(delta.get("partial_json")))


def _write(said: _SaidByAnthropic, block: _Block, text: str) -> str:
    if _is_call(block, said.request):
        said.pieces.take_arguments(text)
    block.written.append(text)
    return text if _is_answer(block, said.request) else ""


def _is_call(block: _Block, request: ChatRequest) -> bool:
    return block.kind == "tool_use" and not _is_answer(block, request)


def _is_answer(block: _Block, request: ChatRequest) -> bool:
    """Whether a block is said; a schema is answered with the input of a tool."""
    if request.schema is None:
        return block.kind == "text"
    return block.kind == "tool_use" and block.name == request.schema.name


def _made(said: _SaidByAnthropic) -> ChatReply:
    """The reply, if it says or does anything."""
    request, endpoint = said.request, said.endpoint
    blocks = [said.blocks[index] for index in sorted(said.blocks)]
    answers = [block for block in blocks if _is_answer(block, request)]
    told = answers or [block for block in blocks if block.kind == "text"]
    text = "".join(piece for block in told for piece in block.written)
    done = (block for block in blocks if _is_call(block, request))
    calls = made_calls(map(_written_call, done), request)
    finish = _FINISH.get(said.stop, endpoint.api_key.quoted(said.stop, most=40)) or "stop"
    if finish == "tool_calls" and not calls:
        finish = "stop"  # the call was the answer to a schema
    if not calls and not text.strip():
        why = f"the text is empty (finish reason '{finish}')"
        raise ModelRubbish(endpoint.name, why)
    return ChatReply(
        text=text,
        model=endpoint.api_key.quoted(said.model) or request.model or endpoint.model,
        tool_calls=calls,
        finish_reason=finish,
        usage=_usage(said.usage),
    )


def _written_call(block: _Block) -> WrittenCall:
    return WrittenCall(id=block.id, name=block.name, arguments="".join(block.written) or "{}")


def _usage(usage: Mapping[str, Any]) -> Usage | None:
    """Tokens; the API counts those read from a cache and written to it beside the input.

    None where the input is not counted: some servers leave the beginning of a stream out.
    """
    if "input_tokens" not in usage:
        return None
    cached = count_of(usage.get("cache_read_input_tokens"))
    written = count_of(usage.get("cache_creation_input_tokens"))
    return Usage(
        input_tokens=count_of(usage.get("input_tokens")) + cached + written,
        output_tokens=count_of(usage.get("output_tokens")),
        cached_tokens=cached,
        written_tokens=written,
    )
