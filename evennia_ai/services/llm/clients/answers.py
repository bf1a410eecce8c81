"""Read servers' answers within limits.

A server decides what it sends, so values of an unexpected type are ignored. A limit in bytes is not
enough: one megabyte can hold three hundred thousand tool calls. So the number of items is limited
too. An answer beyond a limit is refused, and its rest is not read. `llm.failures` finds the cause
of errors.
"""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from evennia_ai.engine.errors import Fault, ModelError, ModelRubbish, ModelUnavailable
from evennia_ai.engine.prompt.messages import ToolCall
from evennia_ai.services.llm.chat import (
    ChatReply,
    ChatRequest,
    Thoughts,
    Usage,
    WrittenCall,
    made_calls,
)
from evennia_ai.services.llm.clients.error_bodies import (
    is_error,
    readable_start,
    status_of,
    words_of,
)
from evennia_ai.services.llm.echoes import without_prompt
from evennia_ai.services.llm.failures import ENDINGS, UNENDED, failure
from evennia_ai.services.llm.profiles import Endpoint
from evennia_ai.services.net.http import (
    FailedAttempt,
    json_object,
    json_value,
    retry_after_seconds,
    text_in,
)

MOST_CALLS: Final = 64
"""The most tool calls in one reply."""

MOST_ARGUMENT_CHARACTERS: Final = 100_000
"""The most characters that the arguments of all tool calls of one reply may have together."""

MOST_BLOCKS: Final = 1_024
"""The most items in one list of an answer: choices, parts of a message or content blocks."""

MOST_PIECES: Final = 100_000
"""The most list items that all events of one streamed reply may have together."""

MOST_UNSEEN_TOKENS: Final = 4_096
"""How many tokens more than we sent a server may count, for its chat template and instructions."""

MOST_THOUGHT_CHARACTERS: Final = 1_000_000
"""The most characters of hidden reasoning that is kept, to be sent back with the tool calls."""

LONG_PROMPT_BYTES: Final = 8_000
"""The prompt size from which an empty reply may mean that the prompt exceeds the window.

LM Studio answers so.
"""


def text_of(value: object) -> str:
    return value if isinstance(value, str) else ""


def count_of(value: object) -> int:
    return value if isinstance(value, int) and value >= 0 else 0


def object_of(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


_BLANKS: Final = re.compile(r"\s*")
_CALL_MARK: Final = re.compile(r'[{}\[\]"\\]')


@dataclass(slots=True, kw_only=True)
class WrittenInPieces:
    """A tool call, or another block of a streamed reply, of which fragments arrive one by one."""

    kind: str = ""
    id: str = ""
    name: str = ""
    written: list[str] = field(default_factory=list)
    """The fragments of the text. For a tool call, the fragments of its arguments."""
    kept: dict[str, Any] = field(default_factory=dict)
    """Fields that are sent back to the server unchanged."""
    pieces: int = 0
    """How many fragments of a tool call have arrived."""
    _depth: int = 0
    _in_string: bool = False
    _escapes: bool = False  # True if the next character is escaped.

    def write(self, piece: str) -> None:
        """Add a fragment of a tool call's arguments, and update the depth of brackets."""
        self.pieces += 1
        if not piece:
            return
        self.written.append(piece)
        at = 1 if self._escapes else 0
        self._escapes = False
        while mark := _CALL_MARK.search(piece, at):
            at = mark.end()
            if mark[0] == '"':
                self._in_string = not self._in_string
            elif mark[0] == "\\":
                self._escapes = at == len(piece)
                at += 1
            elif not self._in_string:
                self._depth += 1 if mark[0] in "{[" else -1

    @property
    def is_written(self) -> bool:
        """True if the arguments are complete, that is, all brackets are closed."""
        return bool(self.written) and self._depth <= 0 and not self._in_string

    def call(self) -> WrittenCall:
        """Return the tool call made from all fragments.

        Some servers send the arguments several times: complete at the end, empty at the start, or
        longer with each fragment. So the last of several JSON objects counts.
        """
        arguments = "".join(self.written)
        if self.written and json_object(arguments) is None:
            last = self.written[-1] if json_object(self.written[-1]) is not None else ""
            arguments = _last_object(arguments) or last or arguments
        return WrittenCall(id=self.id, name=self.name, arguments=arguments)


def _last_object(text: str) -> str:
    """Return the last of several JSON objects in `text`, or "" if there is anything else in it."""
    decoder, begun, at = json.JSONDecoder(), 0, 0
    while at < len(text):
        begun = at
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return ""
        if not isinstance(value, dict):
            return ""
        blanks = _BLANKS.match(text, at)
        at = blanks.end() if blanks else at
    return text[begun:]


class ReplyReader(ABC):
    """A builder of a reply from one body, or from the events of a stream.

    Subclasses read the format of one protocol. Lists have limited lengths. Each method raises a
    `ModelError` if the answer is not a reply.
    """

    def __init__(self, request: ChatRequest, endpoint: Endpoint) -> None:
        self.request: Final = request
        self.endpoint: Final = endpoint
        self.model = ""
        self.stop = ""
        self.ended = False
        self.notes: list[str] = []
        """Messages for an admin about the reply."""
        self.prompt_cut = False
        self._pieces = 0
        self._thought_characters = 0
        self._argument_characters = 0

    @property
    def is_complete(self) -> bool:
        """True if the server has marked the reply as finished."""
        return self.ended or bool(self.stop)

    @property
    def is_ending(self) -> bool:
        """True if only the token counts are missing.

        Subclasses override it, because some servers send the finish reason too early.
        """
        return self.is_complete

    @property
    def is_enough(self) -> bool:
        """True if a stream that has no end mark contains a usable reply.

        Some servers send neither a finish reason nor an end mark.
        """
        calls = [call.arguments.strip() for call in self.written_calls()]
        whole = all(not one or json_object(one) is not None for one in calls)
        return whole and bool(calls or self.text().strip())

    def read_body(self, body: bytes, *, content_type: str = "") -> ChatReply:
        """Return the reply in an unstreamed response body."""
        answer = json_value(body)
        if isinstance(answer, list):  # Gemini puts an error object into a list.
            answer = next(iter(answer), None)
        if not isinstance(answer, dict) and self._is_in_lines(body):
            return self.reply()
        if not isinstance(answer, dict):
            start = readable_start(text_in(body))
            kind, words = map(self.quote_error, (content_type or "no type", start))
            sent = f"status 200, {kind}: {words or 'nothing'}"
            advice = "check base_url of the profile (is /v1 missing?)"
            raise self.unusable_reply(f"the reply is not a JSON object ({sent}); {advice}")
        if is_error(answer):
            raise self.own_error(answer)
        self.take_answer(answer)
        self.ended = True
        return self.reply()

    def _is_in_lines(self, body: bytes) -> bool:
        """Read a body that has one JSON object per line. Return False if it has another format."""
        text = text_in(body).strip()
        if json_object(text.partition("\n")[0]) is None:
            return False
        self._heard_lines(text)
        return True

    def read_event(self, data: str) -> str:
        """Read one event of a stream, and return the text that it adds to the reply.

        Data that is not a JSON object is ignored.

        Some servers leave out the blank line between two events.
        """
        if data[:1] != "{" and data.lstrip()[:1] != "{":
            return ""  # For example `ping`, `null` or `[DONE]`.
        event = json_object(data)
        if event is None and "\n" in data.strip():
            return self._heard_lines(data)
        if event is None:
            raise self.unusable_reply("a piece of the stream is not a JSON object")
        if is_error(event):
            raise self.own_error(event)
        return self.take_event(event)

    def _heard_lines(self, text: str) -> str:
        """Read several events, one per line, and return the text that they add."""
        self._pieces += text.count("\n")
        self.refuse_above(self._pieces, what="pieces", most=MOST_PIECES)
        return "".join(self.read_event(line) for line in text.split("\n"))

    def reply(self) -> ChatReply:
        """Return the reply made from everything that was read.

        Raises:
            ModelError: the reply has neither text nor tool calls, or it ended with an error.
        """
        endpoint, text = self.endpoint, self.text()
        calls = made_calls(self.written_calls(), self.request)
        finish = self.finish(calls) if self.is_complete else UNENDED
        ending = ENDINGS.get(finish.lower())
        if isinstance(ending, Fault):
            raise self.ended_early(ending, finish)
        if not calls and not text.strip() and not self.request.may_be_empty:
            why, fault = self.why_empty()
            if not why and _sent_bytes(self.request) > LONG_PROMPT_BYTES:
                why = ": the prompt may be longer than the server's window; ai/check asks it"
            problem = f"the text is empty (finish reason '{finish}'){why}"
            raise ModelRubbish(endpoint.name, problem, fault=fault)
        if ending is None:
            self.notes.append(
                f"model '{endpoint.name}' ended a reply with '{finish}', a reason that is not"
                " known here; the reply counts as complete"
            )
        return ChatReply(
            text=text,
            model=endpoint.api_key.quote(self.model) or self.request.model or endpoint.model,
            tool_calls=calls,
            finish_reason=finish,
            usage=self.usage(),
            thoughts=self.thoughts() if calls else None,
            prompt_cut=self.prompt_cut,
        )

    @abstractmethod
    def take_answer(self, answer: Mapping[str, Any]) -> None:
        """Read a complete, unstreamed body."""

    @abstractmethod
    def take_event(self, event: Mapping[str, Any]) -> str:
        """Read one event of a stream, and return the text that it adds."""

    @abstractmethod
    def text(self) -> str: ...

    @abstractmethod
    def written_calls(self) -> Iterable[WrittenCall]: ...

    @abstractmethod
    def usage(self) -> Usage | None: ...

    def thoughts(self) -> Thoughts | None:
        """Return the hidden reasoning that goes back with the calls, or None."""
        return None

    def finish(self, calls: Sequence[ToolCall]) -> str:
        """Return the finish reason.

        A known reason is translated into "stop", "length" or "tool_calls".
        """
        reason = self.endpoint.api_key.quote(self.stop, most=40)
        ending = ENDINGS.get(reason.lower())
        return reason if ending is None or isinstance(ending, Fault) else ending

    def why_empty(self) -> tuple[str, Fault]:
        """Return why a reply has no text, beginning with a colon, and the kind of fault."""
        return "", Fault.MALFORMED

    def ended_early(self, fault: Fault, reason: str) -> ModelError:
        """Return the error for a reply that the server ended early with this finish reason."""
        name = self.endpoint.name
        if fault is Fault.TEMPORARY:
            return ModelUnavailable(name, f"it broke off (finish reason '{reason}')")
        problem = (
            f"the provider's filter ended it (finish reason '{reason}'); change the prompt, or"
            " model of the profile"
        )
        return ModelRubbish(name, problem, fault=fault)

    def own_error(
        self, answer: Mapping[str, Any], *, otherwise: Fault = Fault.MALFORMED
    ) -> ModelError:
        """Return the error that a response with status 200 or an event of a stream contains."""
        extra, words = self.request.sampling.extra, words_of(answer)
        return failure(
            self.endpoint,
            status=status_of(answer),
            words=words,
            shown=without_prompt(words, self.request),
            body=answer,
            extra=extra,
            otherwise=otherwise,
        )

    def quote_error(self, words: str) -> str:
        """Return a server's error message without the key and without parts of the prompt."""
        return self.endpoint.api_key.quote(without_prompt(words, self.request))

    def unusable_reply(self, problem: str) -> ModelRubbish:
        """Return the error for an answer that is not a valid reply."""
        return ModelRubbish(self.endpoint.name, problem)

    def objects_in(
        self, value: object, *, what: str, most: int = MOST_BLOCKS
    ) -> list[dict[str, Any]]:
        """Return the objects in a list. Empty if `value` is not a list.

        Raises:
            ModelRubbish: the list is too long.
        """
        if not isinstance(value, list):
            return []
        self.refuse_above(len(value), what=what, most=most)
        self._pieces += len(value)
        self.refuse_above(self._pieces, what="pieces", most=MOST_PIECES)
        return [one for one in value if isinstance(one, dict)]

    def count_arguments(self, text: str) -> str:
        """Return `text`, and count it as arguments of tool calls.

        Raises:
            ModelRubbish: the arguments of all calls together are too long.
        """
        self._argument_characters += len(text)
        self.refuse_above(
            self._argument_characters, what="characters of arguments", most=MOST_ARGUMENT_CHARACTERS
        )
        return text

    def count_thought(self, text: str) -> str:
        """Return `text`, and count it as hidden reasoning.

        Raises:
            ModelRubbish: the reasoning of the whole reply is too long.
        """
        self._thought_characters += len(text)
        self.refuse_above(
            self._thought_characters, what="characters of thoughts", most=MOST_THOUGHT_CHARACTERS
        )
        return text

    def refuse_above(self, count: int, *, what: str, most: int) -> None:
        """Refuse a count that is higher than `most`.

        Raises:
            ModelRubbish: the count is too high.
        """
        if count > most:
            problem = f"the reply has more than {most} {what}"
            raise ModelRubbish(self.endpoint.name, problem, too_much=True)


def with_believable_usage(
    reply: ChatReply, request: ChatRequest, *, received_bytes: int
) -> ChatReply:
    """Return the reply, with its token counts reduced to what is possible.

    A token has at least one byte, so the bytes sent and received limit the counts. Hidden reasoning
    may have as many tokens as the request allows for the reply.

    A token has at least one byte. Hidden reasoning may take as many tokens as the request allows.
    """
    if reply.usage is None:
        return reply
    most_read = _sent_bytes(request) + MOST_UNSEEN_TOKENS
    most_written = max(0, request.max_tokens) + received_bytes
    usage = Usage(
        input_tokens=min(reply.usage.input_tokens, most_read),
        output_tokens=min(reply.usage.output_tokens, most_written),
        cached_tokens=min(reply.usage.cached_tokens, most_read),
        written_tokens=min(reply.usage.written_tokens, most_read),
    )
    return reply if usage == reply.usage else replace(reply, usage=usage)


def _sent_bytes(request: ChatRequest) -> int:
    offered = [[tool.name, tool.description, tool.parameters] for tool in request.tools]
    form = request.schema.schema if request.schema else None
    beside = json.dumps([offered, form], default=dict).encode()
    return len(beside) + sum(len(message.wire()) for message in request.messages)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedRequest(FailedAttempt):
    """The failure of one attempt to get a reply."""

    error: ModelError


def failed_with_status(
    endpoint: Endpoint,
    status: int,
    words: str,
    headers: Mapping[str, str],
    *,
    request: ChatRequest,
    body: object = None,
) -> FailedRequest:
    """Return the failure of a response that has an error status.

    Args:
        endpoint: The server and model that were asked.
        status: The HTTP status.
        words: The server's explanation for people.
        headers: The headers of the response, with names in lower case.
        body: The response as JSON, or None.
    """
    wait = retry_after_seconds(headers)
    error = failure(
        endpoint,
        status=status,
        words=words,
        shown=without_prompt(words, request),
        body=body,
        extra=request.sampling.extra,
        retry_in_seconds=wait,
    )
    is_worth_it = error.fault is not None and error.fault.is_worth_a_retry
    again = is_worth_it and headers.get("x-should-retry") != "false"
    return FailedRequest(error=error, again=again, after_seconds=wait)
