"""A client for OpenAI-compatible servers.

It builds the request's body and reads the reply; `remote` has the code that all HTTP clients share.
Fields that are not set are not sent. A "compatible" server may answer anything, so every value is
checked. Reasoning comes in its own fields (`reasoning_content`, `reasoning`), which never become
text of the reply. Some providers want it back with the tool calls that followed it.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import Any, Final

from evennia_ai.engine.errors import MAX_CHARACTERS, Fault
from evennia_ai.engine.prompt.messages import ToolCall, ToolSpec
from evennia_ai.services.llm.chat import (
    NO_THOUGHTS,
    UNREADABLE,
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
    MOST_CALLS,
    ReplyReader,
    WrittenInPieces,
    count_of,
    object_of,
    text_of,
)
from evennia_ai.services.llm.clients.remote import NO_KEY, RemoteChat
from evennia_ai.services.llm.profiles import Endpoint, Sampling


def body_of(
    request: ChatRequest, *, model: str, stream: bool, session: str | None = None
) -> dict[str, Any]:
    """Return the body of a request.

    A field of `extra` never replaces a field that the request sets itself.
    """
    body: dict[str, Any] = {
        "messages": [_wire(message, request) for message in request.messages],
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
    """Return the fields of the body without messages, tools and the fields of `extra`."""
    parameters = {"model": request.model or model, **_sampling(request.sampling)}
    parameters[request.sampling.reply_limit] = request.max_tokens
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


def _wire(message: ChatMessage, request: ChatRequest) -> dict[str, Any]:
    wire: dict[str, Any] = {"role": message.role, "content": sendable(message.content)}
    if message.name is not None:
        wire["name"] = sendable(message.name)
    if message.tool_call_id is not None:
        wire["tool_call_id"] = message.tool_call_id
    if message.tool_calls:
        thoughts = request.thoughts.get(message.tool_calls[0].id, NO_THOUGHTS)
        calls = zip(message.tool_calls, chain(thoughts.calls, repeat({})), strict=False)
        wire |= thoughts.message
        wire["tool_calls"] = [_wire_call(call, kept) for call, kept in calls]
    return wire


def _wire_call(call: ToolCall, kept: Mapping[str, Any]) -> dict[str, Any]:
    """Return an earlier tool call of the model in the JSON form that the server expects.

    Args:
        call: The tool call. If its arguments are not JSON, they are sent inside a JSON object.
        kept: Extra fields that the server sent with the call and expects back.
    """
    read = argument_object(call)
    arguments = (
        json.dumps(read, ensure_ascii=False) if UNREADABLE in read else call.arguments or "{}"
    )
    function = {"name": call.name, "arguments": sendable(arguments)}
    beside = object_of(kept.get("function"))
    return {**kept, "id": call.id, "type": "function", "function": {**beside, **function}}


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
    """True if every object in a schema lists all its members as required and allows no others.

    Strict servers accept only such schemas.
    """
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

_TEXT_PARTS: Final = ("text", "output_text")
_REASONING: Final = ("reasoning_content", "reasoning")
# The fields of a tool call that this module builds. All other fields are sent back unchanged.
_OF_A_CALL: Final = frozenset({"id", "type", "index", "function"})
_OF_A_FUNCTION: Final = frozenset({"name", "arguments"})


class OpenAIReply(ReplyReader):
    """A reader of replies in the format of OpenAI's chat completions API."""

    def __init__(self, request: ChatRequest, endpoint: Endpoint) -> None:
        super().__init__(request, endpoint)
        self._texts: list[str] = []
        self._calls: list[WrittenInPieces] = []
        # Maps the server's index of a call to the index in `_calls`.
        self._call_at: dict[int, int] = {}
        self._tool_names: Final = {tool.name for tool in request.tools}
        self._has_deltas = False
        self._stops_early = False
        self._usage: Usage | None = None
        self._reasoned = False
        self._refusal = ""
        self._reasoning: list[str] = []
        self._details: list[dict[str, Any]] = []
        self._beside: dict[str, Any] = {}

    def take_answer(self, answer: Mapping[str, Any]) -> None:
        choices = self.objects_in(answer.get("choices"), what="choices")
        if not choices:
            self._refuse_anthropic(answer)
            raise self.unusable_reply("the reply has no choices")
        self._take_frame(answer, choices[0])
        self._take_message(_message_of(choices[0]), is_whole=True)

    def read_event(self, data: str) -> str:
        if data[:1] != "{" and data.strip() == STREAM_END:
            self.ended = True
            return ""
        return super().read_event(data)

    def take_event(self, event: Mapping[str, Any]) -> str:
        choices = self.objects_in(event.get("choices"), what="choices")
        self._refuse_anthropic(event)
        choice = min(choices, key=lambda one: count_of(one.get("index")), default={})
        self._take_frame(event, choice)
        message = object_of(choice.get("delta"))
        self._has_deltas = self._has_deltas or bool(message)
        if not self._has_deltas:  # If a stream has deltas, `message` only repeats the whole text.
            message = _message_of(choice)
        pieces = self._pieces
        text = self._take_message(message)
        # Some servers send the finish reason "stop" with every fragment.
        if text or pieces != self._pieces:
            self._stops_early = self._stops_early or bool(self.stop)
        return text

    def _refuse_anthropic(self, answer: Mapping[str, Any]) -> None:
        if answer.get("type") in ("message", "message_start") and "choices" not in answer:
            raise self.unusable_reply(
                'the server speaks as Anthropic; set client of the profile to "anthropic"'
            )

    @property
    def is_ending(self) -> bool:
        has_begun = bool(self._calls) or any(self._texts)
        return self.ended or (bool(self.stop) and has_begun and not self._stops_early)

    def text(self) -> str:
        return "".join(self._texts)

    def written_calls(self) -> Iterator[WrittenCall]:
        return (call.call() for call in self._calls)

    def usage(self) -> Usage | None:
        return self._usage

    def thoughts(self) -> Thoughts | None:
        """Return the reasoning fields that providers want back with the tool calls.

        DeepSeek and Kimi want `reasoning_content`; OpenRouter and Google have fields of their own.
        """
        message: dict[str, Any] = {**self._beside}
        if reasoning := "".join(self._reasoning):
            message["reasoning_content"] = reasoning
        if self._details:
            message["reasoning_details"] = self._details
        calls = tuple(call.kept for call in self._calls)
        return Thoughts(message=message, calls=calls) if message or any(calls) else None

    def why_empty(self) -> tuple[str, Fault]:
        if self._refusal:
            said = self.quote_error(self._refusal)
            return f": the model refused: {said}", Fault.POLICY
        advice = ": the model only reasoned; allow more tokens: reply_tokens of the profile"
        return advice * self._reasoned, Fault.MALFORMED

    def _take_frame(self, answer: Mapping[str, Any], choice: Mapping[str, Any]) -> None:
        """Read the fields around the message: finish reason, model and token counts.

        OpenRouter puts the error of a provider into the choice, next to the incomplete text.
        """
        if choice.get("error"):
            raise self.own_error({"error": choice["error"]}, otherwise=Fault.TEMPORARY)
        self.model = text_of(answer.get("model")) or self.model
        self.stop = text_of(choice.get("finish_reason")) or self.stop
        self._usage = _usage(answer.get("usage")) or self._usage
        # llama.cpp reports here that it cut the prompt.
        self.prompt_cut = self.prompt_cut or answer.get("truncated") is True

    def finish(self, calls: Sequence[ToolCall]) -> str:
        return "tool_calls" if self.stop == "function_call" else super().finish(calls)

    def _take_message(self, message: Mapping[str, Any], *, is_whole: bool = False) -> str:
        """Read a message, or a delta of a stream, and return the text that it adds."""
        text = self._message_text(message.get("content"))
        self._texts.append(text)
        if len(self._refusal) < MAX_CHARACTERS:
            self._refusal += text_of(message.get("refusal"))
        self._reasoned = self._reasoned or any(message.get(name) for name in _REASONING)
        self._reasoning.append(self.count_thought(text_of(message.get("reasoning_content"))))
        self._take_details(message.get("reasoning_details"))
        if beside := object_of(message.get("extra_content")):
            self._beside["extra_content"] = beside
        calls = self.objects_in(message.get("tool_calls"), what="tool calls", most=MOST_CALLS)
        # The older format of tool calls.
        if not calls and isinstance(message.get("function_call"), dict):
            calls = [{"function": message["function_call"]}]
        for place, piece in enumerate(calls):
            self._take_call(place, piece, is_whole=is_whole)
        return text

    def _take_details(self, details: object) -> None:
        """Read OpenRouter's list of reasoning parts.

        In a stream, the text of a part comes in fragments.
        """
        for part in self.objects_in(details, what="parts of reasoning"):
            last = self._details[-1] if self._details else {}
            self.count_thought(json.dumps(part))
            if not all(part.get(name) == last.get(name) for name in ("type", "index")):
                self._details.append(dict(part))
                continue
            pieces = {
                name: f"{text_of(last.get(name))}{part[name]}"
                for name in ("text", "summary", "data")
                if isinstance(part.get(name), str)
            }
            self._details[-1] = {**last, **part, **pieces}

    def _take_call(self, place: int, piece: Mapping[str, Any], *, is_whole: bool) -> None:
        """Read a tool call, or a fragment of one.

        Normally the first fragment has id and name, and the others have the arguments. But some
        servers send a new id with each fragment, repeat or split the name, or send all calls with
        index 0 and without ids.
        """
        function = object_of(piece.get("function"))
        call_id, name = text_of(piece.get("id")), text_of(function.get("name"))
        arguments = self.count_arguments(_argument_text(function.get("arguments")))
        has_index = isinstance(piece.get("index"), int)
        index = piece["index"] if has_index else place
        at = self._call_at.get(index)
        newest_first = range(len(self._calls) - 1, -1, -1)
        if call_id and not has_index:
            at = next((one for one in newest_first if self._calls[one].id == call_id), at)
        elif at is None and arguments and not name and not call_id and self._calls:
            # This server numbers fragments instead of calls.
            at = None if self._calls[-1].is_written else newest_first[0]
        call = None if at is None or is_whole else self._calls[at]
        if call is None or self._begins_another(call, call_id, name, arguments):
            self.refuse_above(len(self._calls) + 1, what="tool calls", most=MOST_CALLS)
            self._call_at[index] = len(self._calls)
            call = WrittenInPieces()
            self._calls.append(call)
        call.id = call.id or call_id
        if not name.startswith(call.name):  # The server sent the name in two halves.
            name = call.name + name if not call.written and name != call.name else call.name
        call.name = name or call.name
        call.write(arguments)
        kept = {name: one for name, one in piece.items() if name not in _OF_A_CALL and one}
        inner = {name: one for name, one in function.items() if name not in _OF_A_FUNCTION and one}
        if inner:
            kept["function"] = {**object_of(call.kept.get("function")), **inner}
        if kept:
            self.count_thought(json.dumps(kept))
            call.kept |= kept

    def _begins_another(
        self, call: WrittenInPieces, call_id: str, name: str, arguments: str
    ) -> bool:
        """True if a fragment with the same index as `call` belongs to another call."""
        if not name or not call.name:
            return False
        has_other_id = bool(call_id and call.id and call_id != call.id)
        if name != call.name:
            both = {call.name, name} <= self._tool_names
            is_rest = name.startswith(call.name) or call.name + name in self._tool_names
            is_unknown = not self._tool_names and not has_other_id
            return bool(call.written) or both or not (is_rest or is_unknown)
        if not call.is_written:
            return False
        # Some servers repeat arguments at the end if they came in fragments, but never if they came
        # complete.
        is_new = call.pieces == 1 or arguments != "".join(call.written)
        return has_other_id or (not call_id and bool(arguments) and is_new)

    def _message_text(self, content: object) -> str:
        """Return the text of a message, which may be a string or a list of parts."""
        if isinstance(content, str):
            return content
        if isinstance(content, list):
            content = [
                {"type": "text", "text": one} if isinstance(one, str) else one for one in content
            ]
        parts = self.objects_in(content, what="parts of a message")
        texts = [part for part in parts if part.get("type") in _TEXT_PARTS]
        return "".join(text_of(part.get("text")) for part in texts)


def _message_of(choice: Mapping[str, Any]) -> dict[str, Any]:
    """Return the message of a choice. Servers use different names for this member."""
    message = object_of(choice.get("message")) or object_of(choice.get("delta"))
    return message or {"content": choice.get("text")}


def _argument_text(arguments: object) -> str:
    """Return the arguments of a call as text. Some servers send a JSON object instead."""
    if isinstance(arguments, dict):
        try:
            return json.dumps(arguments, ensure_ascii=False)
        except RecursionError:
            return ""
    return text_of(arguments)


def _usage(usage: object) -> Usage | None:
    """Return the token counts.

    Servers use two names for cached tokens. Few report the tokens written to a cache. xAI and
    Google count hidden reasoning only in the total.
    """
    if not isinstance(usage, dict):
        return None
    details = object_of(usage.get("prompt_tokens_details"))
    hits = count_of(usage.get("prompt_cache_hit_tokens"))
    cached = count_of(details.get("cached_tokens")) or hits
    asked, said = count_of(usage.get("prompt_tokens")), count_of(usage.get("completion_tokens"))
    hidden = count_of(usage.get("total_tokens")) - asked - said
    if hidden == cached:  # Some servers count cached tokens in the total, but not in the prompt.
        hidden = 0
    return Usage(
        input_tokens=asked,
        output_tokens=said + max(0, hidden),
        cached_tokens=cached,
        written_tokens=count_of(details.get("cache_write_tokens")),
    )


class OpenAIChat(RemoteChat):
    """A client for one server that uses the chat completions API."""

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
