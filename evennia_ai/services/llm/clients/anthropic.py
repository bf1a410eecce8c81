"""A client for Anthropic's Messages API.

It builds the request's body and reads the reply; `remote` has the code that all HTTP clients share.
Fields that are not set are not sent.

Leading system messages become `system` blocks. The API has no system messages elsewhere, so a later
one becomes a framed user message (`roles`). A tool's result is a block of a user message. Adjacent
messages of one role are merged. The first and the last message are always from the user.

Thinking has its own blocks, which never become text of the reply. They are sent back with the tool
calls that followed them. A model that thinks cannot be forced to call a tool, and its thinking
counts as tokens of the reply. The API's names for finish reasons and token counts are translated to
those of all clients.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, groupby, repeat, takewhile
from typing import Any, Final

from evennia_ai.engine.prompt.messages import ToolCall
from evennia_ai.services.llm.chat import (
    NO_THOUGHTS,
    AnswerSchema,
    ChatMessage,
    ChatRequest,
    Thoughts,
    Usage,
    WrittenCall,
    argument_object,
    sendable,
    sendable_json,
)
from evennia_ai.services.llm.clients.answers import (
    MOST_BLOCKS,
    MOST_CALLS,
    ReplyReader,
    WrittenInPieces,
    count_of,
    object_of,
    text_of,
)
from evennia_ai.services.llm.clients.remote import NO_KEY, RemoteChat
from evennia_ai.services.llm.profiles import Endpoint, Sampling
from evennia_ai.services.llm.roles import FILLERS, OPEN, RoleProfile, adapt_messages

MOST_BREAKPOINTS: Final = 4
ONE_SYSTEM: Final = RoleProfile(one_system=True)

ANSWER: Final = "Give your answer with this."
"""The description of the tool that the model calls to give an answer with a schema."""

Block = dict[str, Any]

_FILLER: Final[Block] = {"type": "text", "text": FILLERS["user"]}


def body_of(
    request: ChatRequest, *, model: str, stream: bool, session: str | None = None
) -> dict[str, Any]:
    """Return the body of a request.

    A field of `extra` never replaces a field that the request sets itself. A schema becomes a tool
    that the model must call, because every model supports tools. The input of that call is the
    answer.
    """
    system, messages = _conversation(request)
    body: dict[str, Any] = {
        **parameters_of(request, model=model),
        "messages": messages,
    }
    if system:
        body["system"] = system
    if tools := _tools(request):
        body["tools"] = tools
    if session is not None:
        body["metadata"] = {"user_id": session}
    if stream:
        body["stream"] = True
    return {**request.sampling.extra, **body}


def parameters_of(request: ChatRequest, *, model: str) -> dict[str, Any]:
    """Return the fields of the body without messages, tools and the fields of `extra`.

    The tool that stands for a schema is included; `body_of` adds it to the NPC's tools.
    """
    thinking = object_of(request.sampling.extra.get("thinking"))
    thinks = thinking.get("type", "disabled") != "disabled"
    parameters = {
        "model": request.model or model,
        "max_tokens": request.max_tokens + thinks * count_of(thinking.get("budget_tokens")),
        **_sampling(request.sampling, thinks=thinks),
    }
    if request.schema is not None:
        name = request.schema.name
        forced = {"type": "auto"} if thinks else {"type": "tool", "name": name}
        parameters["tools"] = [_schema_tool(request.schema)]
        parameters["tool_choice"] = forced
    return parameters


def _sampling(sampling: Sampling, *, thinks: bool) -> dict[str, Any]:
    """Return the fields that control how the model chooses words.

    The API has no seed and refuses blank stop sequences. With thinking, it requires the default
    temperature.
    """
    chosen = {
        "temperature": None if thinks else sampling.temperature,
        "top_p": sampling.top_p,
        "stop_sequences": [stop for stop in sampling.stop if stop.strip()] or None,
    }
    return {name: value for name, value in chosen.items() if value is not None}


def _tools(request: ChatRequest) -> list[dict[str, Any]]:
    tools = [_tool(tool.name, tool.description, tool.parameters) for tool in request.tools]
    if request.schema is not None:
        tools.append(_schema_tool(request.schema))
    return tools


def _schema_tool(schema: AnswerSchema) -> dict[str, Any]:
    return _tool(schema.name, ANSWER, schema.schema)


def _tool(name: str, description: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    described = sendable(description)
    return {"name": name, "description": described, "input_schema": sendable_json(schema)}


def _conversation(request: ChatRequest) -> tuple[list[Block], list[dict[str, Any]]]:
    """Return the system blocks and the other messages, with marks at the cache breakpoints."""
    leading = len(list(takewhile(_is_system, request.messages)))
    system, spoken = request.messages[:leading], _adapted_messages(request.messages[leading:])
    blocks = [_blocks(message, request) for message in (*system, *spoken)]
    _mark_breakpoints(blocks, request.breakpoints)
    turns = list(_turns(zip(spoken, blocks[leading:], strict=True)))
    first = [] if turns[0]["role"] == "user" else [{"role": "user", "content": [dict(_FILLER)]}]
    return [block for some in blocks[:leading] for block in some], first + turns


def _is_system(message: ChatMessage) -> bool:
    return message.role == "system"


def _adapted_messages(messages: Sequence[ChatMessage]) -> tuple[ChatMessage, ...]:
    """Return the messages, with speakers' names and frames of later system messages in the texts.

    Messages that were adapted before are returned unchanged, because a second frame would alter the
    first one. Their number stays the same, so the indexes of breakpoints stay valid.
    """
    later = any(map(_is_system, messages))
    return adapt_messages(messages, profile=ONE_SYSTEM if later else OPEN)


def _blocks(message: ChatMessage, request: ChatRequest) -> list[Block]:
    """Return the content blocks of one message.

    Empty texts are left out, because the API refuses them. Thinking is put before the text or call
    that it belongs to.
    """
    content = sendable(message.content)
    if message.role == "tool":
        return [{"type": "tool_result", "tool_use_id": message.tool_call_id, "content": content}]
    texts: list[Block] = [{"type": "text", "text": content}] if content.strip() else []
    if not message.tool_calls:
        return texts
    thoughts = request.thoughts.get(message.tool_calls[0].id, NO_THOUGHTS)
    blocks = [*thoughts.message.get(THOUGHT, ()), *texts]
    for call, kept in zip(message.tool_calls, chain(thoughts.calls, repeat({})), strict=False):
        used = {
            "type": "tool_use",
            "id": call.id,
            "name": call.name,
            "input": sendable_json(argument_object(call)),
        }
        blocks += [*kept.get(THOUGHT, ()), used]
    return blocks


def _mark_breakpoints(blocks: Sequence[list[Block]], breakpoints: Iterable[int]) -> None:
    """Mark the last block before each breakpoint for the provider's cache.

    If there are too many breakpoints, only the latest ones are marked.
    """
    for at in sorted(set(breakpoints))[-MOST_BREAKPOINTS:]:
        last = next((some[-1] for some in reversed(blocks[: at + 1]) if some), None)
        if last is not None:
            last["cache_control"] = {"type": "ephemeral"}


def _turns(spoken: Iterable[tuple[ChatMessage, list[Block]]]) -> Iterator[dict[str, Any]]:
    """Yield messages with alternating roles; the last one is always the user's.

    In each message, tool results come first.
    """
    role = "assistant"
    for role, group in groupby((pair for pair in spoken if pair[1]), key=_role_of):
        blocks = [block for _, some in group for block in some]
        yield {"role": role, "content": sorted(blocks, key=_is_after_results)}
    if role == "assistant":
        yield {"role": "user", "content": [dict(_FILLER)]}


def _role_of(pair: tuple[ChatMessage, list[Block]]) -> str:
    return "assistant" if pair[0].role == "assistant" else "user"


def _is_after_results(block: Block) -> bool:
    return bool(block["type"] != "tool_result")


THOUGHT: Final = "thought"
"""The key under which thinking blocks are kept with a text or a tool call."""

_THINKING: Final = ("thinking", "redacted_thinking")

_COUNTS: Final = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)

_KIND_OF_DELTA: Final = {"text_delta": "text", "thinking_delta": "thinking"}
"""The type of block that a delta belongs to, if the server did not start the block."""


class AnthropicReply(ReplyReader):
    """A reader of replies in the format of Anthropic's API.

    It accepts two blocks with the same index, and deltas of a block that was never started, because
    some servers send them.
    """

    def __init__(self, request: ChatRequest, endpoint: Endpoint) -> None:
        super().__init__(request, endpoint)
        self._blocks: list[tuple[int, WrittenInPieces]] = []
        # Maps an index to the newest block with that index.
        self._open: dict[int, WrittenInPieces] = {}
        self._counts: dict[str, Any] = {}
        self._calls = 0

    def take_answer(self, answer: Mapping[str, Any]) -> None:
        if not isinstance(answer.get("content"), list):
            self._refuse_openai(answer)
            raise self.unusable_reply("the reply has no content")
        self._take_frame(answer)
        for index, block in enumerate(self.objects_in(answer["content"], what="blocks")):
            self._begin_block(index, block)

    def take_event(self, event: Mapping[str, Any]) -> str:
        index = count_of(event.get("index"))
        match event.get("type"):
            case "content_block_start":
                return self._begin_block(index, object_of(event.get("content_block")))
            case "content_block_delta":
                return self._add_delta(index, object_of(event.get("delta")))
            case "message_start":
                self._take_frame(object_of(event.get("message")))
            case "message_delta":
                self._take_frame(object_of(event.get("delta")))
                self._take_usage(event.get("usage"))
            case "message_stop":
                self.ended = True
            case "error":
                raise self.own_error(event)
            case None:
                self._refuse_openai(event)
        return ""

    def _refuse_openai(self, answer: Mapping[str, Any]) -> None:
        if "choices" in answer:
            raise self.unusable_reply(
                'the server speaks as OpenAI; set client of the profile to "openai"'
            )

    def text(self) -> str:
        blocks = self._in_order()
        told = [one for one in blocks if self._is_answer(one)]
        told = told or [one for one in blocks if one.kind == "text"]
        return "".join(
            block.call().arguments if block.kind == "tool_use" else "".join(block.written)
            for block in told
        )

    def written_calls(self) -> Iterator[WrittenCall]:
        """Return the tool calls. A call without arguments gets an empty object."""
        calls = (block.call() for block in self._in_order() if self._is_call(block))
        return (call if call.arguments else replace(call, arguments="{}") for call in calls)

    def usage(self) -> Usage | None:
        """Return the token counts, or None if the server did not count the input.

        The API counts cached tokens separately from the input; they are added. Some servers leave
        out the event with the count of the input.
        """
        if "input_tokens" not in self._counts:
            return None
        counts = {name: count_of(self._counts.get(name)) for name in _COUNTS}
        cached, written = counts["cache_read_input_tokens"], counts["cache_creation_input_tokens"]
        return Usage(
            input_tokens=counts["input_tokens"] + cached + written,
            output_tokens=counts["output_tokens"],
            cached_tokens=cached,
            written_tokens=written,
        )

    def thoughts(self) -> Thoughts | None:
        """Return the thinking blocks, each with the text or the tool call that follows it."""
        thought: list[Block] = []
        message: dict[str, Any] = {}
        calls: list[dict[str, Any]] = []
        for block in self._in_order():
            if block.kind in _THINKING:
                written = {block.kind: "".join(block.written)} if block.kind == "thinking" else {}
                thought.append({"type": block.kind, **written, **block.kept})
                continue
            if self._is_call(block):
                calls.append({THOUGHT: thought} if thought else {})
            elif thought:
                message[THOUGHT] = [*message.get(THOUGHT, ()), *thought]
            thought = []
        return Thoughts(message=message, calls=tuple(calls)) if message or any(calls) else None

    def finish(self, calls: Sequence[ToolCall]) -> str:
        made = super().finish(calls)
        return (
            "stop" if made == "tool_calls" and not calls else made
        )  # This call was the answer to a schema, so it counts as the normal end.

    def _in_order(self) -> list[WrittenInPieces]:
        return [block for _, block in sorted(self._blocks, key=lambda one: one[0])]

    def _take_frame(self, message: Mapping[str, Any]) -> None:
        """Read the fields around the content blocks: model, stop reason and token counts."""
        self.model = text_of(message.get("model")) or self.model
        self.stop = text_of(message.get("stop_reason")) or self.stop
        self._take_usage(message.get("usage"))

    def _take_usage(self, usage: object) -> None:
        """Store the token counts so far. A later event repeats or raises them."""
        told = object_of(usage)
        self._counts |= {name: told[name] for name in _COUNTS if told.get(name) is not None}

    def _begin_block(self, index: int, block: Mapping[str, Any]) -> str:
        """Start a block. Return its text if the text belongs to the reply."""
        kind, name = text_of(block.get("type")), text_of(block.get("name"))
        made = WrittenInPieces(kind=kind, id=text_of(block.get("id")), name=name)
        if kind in _THINKING:
            self._keep_thinking(made, block)
        self._open[index] = made
        self._blocks.append((index, made))
        self.refuse_above(len(self._blocks), what="blocks", most=MOST_BLOCKS)
        if self._is_call(made):
            self._calls += 1
            self.refuse_above(self._calls, what="tool calls", most=MOST_CALLS)
        return self._write(made, _begun_text(kind, block))

    def _add_delta(self, index: int, delta: Mapping[str, Any]) -> str:
        """Add a delta to its block. Return its text if the text belongs to the reply."""
        block = self._open.get(index)
        kind = _KIND_OF_DELTA.get(text_of(delta.get("type")))
        if kind is not None and (block is None or block.kind != kind):
            self._begin_block(index, {"type": kind})
            block = self._open[index]
        if "partial_json" in delta and (block is None or block.kind in _KIND_OF_DELTA.values()):
            block = next((one for _, one in reversed(self._blocks) if self._is_call(one)), None)
        if block is None:
            return ""
        if block.kind in _THINKING:
            self._keep_thinking(block, delta)
        return self._write(block, text_of(delta.get("text")) or text_of(delta.get("partial_json")))

    def _keep_thinking(self, block: WrittenInPieces, piece: Mapping[str, Any]) -> None:
        """Store the content of a thinking block unchanged, with its signature or encrypted data."""
        block.written.append(self.count_thought(text_of(piece.get("thinking"))))
        for name in ("signature", "data"):
            if text := text_of(piece.get(name)):
                block.kept[name] = self.count_thought(text)

    def _write(self, block: WrittenInPieces, text: str) -> str:
        if self._is_call(block):
            self.count_arguments(text)
        block.written.append(text)
        return text if self._is_answer(block) else ""

    def _is_call(self, block: WrittenInPieces) -> bool:
        return block.kind == "tool_use" and not self._is_answer(block)

    def _is_answer(self, block: WrittenInPieces) -> bool:
        """True if the text of a block belongs to the reply.

        If the request has a schema, the reply is the input of the tool that stands for the schema.
        """
        schema = self.request.schema
        if schema is None:
            return block.kind == "text"
        return block.kind == "tool_use" and block.name == schema.name


def _begun_text(kind: str, block: Mapping[str, Any]) -> str:
    """Return the text that the start of a block contains.

    Some servers send the complete arguments of a call there.
    """
    if kind != "tool_use":
        return text_of(block.get("text"))
    begun = block.get("input")
    try:
        return json.dumps(begun, ensure_ascii=False) if begun else ""
    except RecursionError:
        return ""


API_VERSION: Final = "2023-06-01"
"""The version of the Messages API. The server requires it in a header."""


class AnthropicChat(RemoteChat):
    """A client for one server that uses the Messages API."""

    @property
    def address(self) -> str:
        return f"{self.endpoint.base_url.rstrip('/').removesuffix('/v1')}/v1/messages"

    def headers(self) -> dict[str, str]:
        key = self.endpoint.api_key.reveal() or NO_KEY
        return {"x-api-key": key, "anthropic-version": API_VERSION}

    def body(self, request: ChatRequest, *, stream: bool) -> dict[str, Any]:
        session = self.session_of(request)
        return body_of(request, model=self.endpoint.model, stream=stream, session=session)

    def reader(self, request: ChatRequest) -> AnthropicReply:
        return AnthropicReply(request, self.endpoint)
