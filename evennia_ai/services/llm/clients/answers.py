"""Read servers' answers with limits: values of any kind, how many of each, and errors.

Values that do not fit are ignored. A server decides what it sends, and the size in bytes does not
limit the work: a megabyte can hold three hundred thousand tool calls. Beyond a limit, the answer is
no reply, and the rest is not read. `llm.failures` judges failures.
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
"""The most characters in the arguments of all calls of one reply."""

MOST_BLOCKS: Final = 1_024
"""The most choices, parts of a message or blocks in one list."""

MOST_PIECES: Final = 100_000
"""The most members of all lists in the events of one reply."""

MOST_UNSEEN_TOKENS: Final = 4_096
"""How many tokens a server may count in addition to those that were sent.

They are its own template and instructions.
"""

MOST_THOUGHT_CHARACTERS: Final = 1_000_000
"""The most characters of hidden reasoning that goes back with the calls of one reply."""

LONG_PROMPT_BYTES: Final = 8_000
"""From this size on, an empty reply may mean that the prompt exceeds the window.

LM Studio is one server that does so.
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
    """The part of a call, or of another block of a reply, that has arrived."""

    kind: str = ""
    id: str = ""
    name: str = ""
    written: list[str] = field(default_factory=list)
    """Text; for a call its arguments."""
    kept: dict[str, Any] = field(default_factory=dict)
    """Fields that are sent back unchanged."""
    pieces: int = 0
    """In how many pieces a call arrived."""
    _depth: int = 0
    _in_string: bool = False
    _escapes: bool = False  # the next character is escaped

    def write(self, piece: str) -> None:
        """Add to the arguments of a call, and count their brackets."""
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
        """True if the arguments are complete: all brackets are closed."""
        return bool(self.written) and self._depth <= 0 and not self._in_string

    def call(self) -> WrittenCall:
        """Return the call.

        Some servers repeat the arguments: complete at the end, empty at the start, or growing with
        each piece. Of several objects, the last one counts.
        """
        arguments = "".join(self.written)
        if self.written and json_object(arguments) is None:
            last = self.written[-1] if json_object(self.written[-1]) is not None else ""
            arguments = _last_object(arguments) or last or arguments
        return WrittenCall(id=self.id, name=self.name, arguments=arguments)


def _last_object(text: str) -> str:
    """Return the last of several JSON objects in `text`; "" if it contains anything else."""
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
    """Builds a reply from one body, or from the events of a stream.

    Subclasses implement the format of a provider. Lists are limited; each method fails with a
    `ModelError` if the answer is no reply.
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
        """True if nothing of the reply is missing."""
        return self.ended or bool(self.stop)

    @property
    def is_ending(self) -> bool:
        """True if only the usage is missing. Some servers send a reason to stop too early."""
        return self.is_complete

    @property
    def is_enough(self) -> bool:
        """True if a stream without an end mark contains a reply.

        Some servers send neither a reason to stop nor an end mark.
        """
        calls = [call.arguments.strip() for call in self.written_calls()]
        whole = all(not one or json_object(one) is not None for one in calls)
        return whole and bool(calls or self.text().strip())

    def whole(self, body: bytes, *, content_type: str = "") -> ChatReply:
        """Return the reply in a body."""
        answer = json_value(body)
        if isinstance(answer, list):  # Gemini puts an error into a list
            answer = next(iter(answer), None)
        if not isinstance(answer, dict) and self._is_in_lines(body):
            return self.reply()
        if not isinstance(answer, dict):
            start = readable_start(text_in(body))
            kind, words = map(self.quote_error, (content_type or "no type", start))
            sent = f"status 200, {kind}: {words or 'nothing'}"
            advice = "check base_url of the profile (is /v1 missing?)"
            raise self.rubbish(f"the reply is not a JSON object ({sent}); {advice}")
        if is_error(answer):
            raise self.own_error(answer)
        self.take_answer(answer)
        self.ended = True
        return self.reply()

    def _is_in_lines(self, body: bytes) -> bool:
        """True if a body was a stream with one JSON object per line, which was read."""
        text = text_in(body).strip()
        if json_object(text.partition("\n")[0]) is None:
            return False
        self._heard_lines(text)
        return True

    def heard(self, data: str) -> str:
        """Return the text in one event, mostly a word or nothing.

        Data without an object is ignored.

        Some servers leave out the blank line between two events.
        """
        if data[:1] != "{" and data.lstrip()[:1] != "{":
            return ""  # `ping`, `null`, `[DONE]`
        event = json_object(data)
        if event is None and "\n" in data.strip():
            return self._heard_lines(data)
        if event is None:
            raise self.rubbish("a piece of the stream is not a JSON object")
        if is_error(event):
            raise self.own_error(event)
        return self.take_event(event)

    def _heard_lines(self, text: str) -> str:
        """Return the text in several events, one per line."""
        self._pieces += text.count("\n")
        self.checked(self._pieces, what="pieces", most=MOST_PIECES)
        return "".join(self.heard(line) for line in text.split("\n"))

    def reply(self) -> ChatReply:
        """Return the complete reply.

        Raises:
            ModelError: it says and does nothing, or ended with an error.
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
        """Read a complete body."""

    @abstractmethod
    def take_event(self, event: Mapping[str, Any]) -> str:
        """Read one event, and return its text."""

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
        """Return the finish reason, in the words of all clients if it is a known one."""
        reason = self.endpoint.api_key.quote(self.stop, most=40)
        ending = ENDINGS.get(reason.lower())
        return reason if ending is None or isinstance(ending, Fault) else ending

    def why_empty(self) -> tuple[str, Fault]:
        """Return why a reply has no text, after a colon, and whose fault it is."""
        return "", Fault.MALFORMED

    def ended_early(self, fault: Fault, reason: str) -> ModelError:
        """Return the error for a reply that ended for this reason, so that it is incomplete."""
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
        """Return the error in an answer with status 200, or in the middle of a stream."""
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
        """Return a server's words for an error, without the key and without parts of the prompt."""
        return self.endpoint.api_key.quote(without_prompt(words, self.request))

    def rubbish(self, problem: str) -> ModelRubbish:
        """Return the error for an answer that is no reply."""
        return ModelRubbish(self.endpoint.name, problem)

    def listed(self, value: object, *, what: str, most: int = MOST_BLOCKS) -> list[dict[str, Any]]:
        """Return the objects in a list; empty if it is no list.

        Raises:
            ModelRubbish: there are too many.
        """
        if not isinstance(value, list):
            return []
        self.checked(len(value), what=what, most=most)
        self._pieces += len(value)
        self.checked(self._pieces, what="pieces", most=MOST_PIECES)
        return [one for one in value if isinstance(one, dict)]

    def taken_arguments(self, text: str) -> str:
        """Return `text` if the arguments of all calls are not too long.

        Raises:
            ModelRubbish: they are.
        """
        self._argument_characters += len(text)
        self.checked(
            self._argument_characters, what="characters of arguments", most=MOST_ARGUMENT_CHARACTERS
        )
        return text

    def thought(self, text: str) -> str:
        """Return `text` if all hidden reasoning is not too long.

        Raises:
            ModelRubbish: it is.
        """
        self._thought_characters += len(text)
        self.checked(
            self._thought_characters, what="characters of thoughts", most=MOST_THOUGHT_CHARACTERS
        )
        return text

    def checked(self, count: int, *, what: str, most: int) -> None:
        """Check that a count is not above `most`.

        Raises:
            ModelRubbish: it is.
        """
        if count > most:
            problem = f"the reply has more than {most} {what}"
            raise ModelRubbish(self.endpoint.name, problem, too_much=True)


def with_believable_usage(
    reply: ChatReply, request: ChatRequest, *, received_bytes: int
) -> ChatReply:
    """Return the reply, with token counts limited to what was sent and received.

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
    """A request to a model that got no reply."""

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
    """Return the failure of a response with an error status.

    Args:
        endpoint: The server.
        status: The status.
        words: The server's explanation for people.
        headers: The headers, with names in lower case.
        body: The response as JSON, or None.
        extra: The names of further fields in the request.
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
