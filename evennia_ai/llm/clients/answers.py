"""What a server's answer may hold: values of any kind, how much of each, and the errors in it.

What does not fit counts as nothing. A server decides what it sends, and the size of a reply in
bytes alone does not bound the work with it: a megabyte holds three hundred thousand calls of tools.
What goes beyond a bound here is no reply, and the rest of it is not read. Another attempt is worth
it where things may be otherwise in a moment: too many requests, a broken server, a connection. A
request that was turned down or answered with rubbish is not sent again.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from evennia_ai.errors import ModelError, ModelRefused, ModelRubbish, ModelUnavailable
from evennia_ai.llm.chat import ChatReply, ChatRequest, Usage, WrittenCall, made_calls
from evennia_ai.llm.profiles import Endpoint
from evennia_ai.net.http import FailedAttempt, json_object, retry_after_seconds
from evennia_ai.prompt.messages import ToolCall

MOST_CALLS: Final = 64
"""Calls of tools in one reply."""

MOST_ARGUMENT_CHARACTERS: Final = 100_000
"""Characters in the arguments of all calls of one reply."""

MOST_BLOCKS: Final = 1_024
"""Choices, parts of a message and blocks that stand in one list, or under indexes of their own."""

MOST_PIECES: Final = 100_000
"""Members of all lists that the events of one reply bring."""

MOST_UNSEEN_TOKENS: Final = 4_096
"""Tokens that a server may count beside what was sent: its own frames and instructions."""

LONG_PROMPT_BYTES: Final = 8_000
"""Some servers answer nothing to a prompt that is longer than their window; LM Studio is one."""

_TRANSIENT: Final = frozenset({408, 409, 425, 429})


def text_of(value: object) -> str:
    return value if isinstance(value, str) else ""


def count_of(value: object) -> int:
    return value if isinstance(value, int) and value >= 0 else 0


def object_of(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def words_of(body: object) -> str:
    """A server's own explanation, wherever in its error body it stands."""
    said = body
    for name in ("error", "message", "detail"):
        if isinstance(said, dict) and name in said:
            said = said[name]
    return text_of(said)


@dataclass(slots=True, kw_only=True)
class WrittenInPieces:
    """What of a call, or of another block of a reply, has come so far."""

    kind: str = ""
    id: str = ""
    name: str = ""
    written: list[str] = field(default_factory=list)
    """Text, of a call its arguments."""

    def call(self) -> WrittenCall:
        """The call that it is."""
        return WrittenCall(id=self.id, name=self.name, arguments="".join(self.written))


class ReplyReader(ABC):
    """Puts a reply together from one body, or from the events of a stream.

    How a provider writes it is a subclass's matter. Lists are taken as long as they are not too
    much; each method fails with a `ModelError` where what came is no reply.
    """

    def __init__(self, request: ChatRequest, endpoint: Endpoint) -> None:
        self.request: Final = request
        self.endpoint: Final = endpoint
        self.model = ""
        self.stop = ""
        self.ended = False
        self.prompt_cut = False
        self._pieces = 0
        self._argument_characters = 0

    @property
    def is_complete(self) -> bool:
        """Whether nothing of the reply is missing."""
        return self.ended or bool(self.stop)

    def whole(self, body: bytes) -> ChatReply:
        """The reply in a body."""
        self.take_answer(self._object(body, "the reply"))
        return self.reply()

    def heard(self, data: str) -> str:
        """The text in one event, mostly a word or nothing."""
        return self.take_event(self._object(data, "a piece of the stream"))

    def reply(self) -> ChatReply:
        """The reply that all that came makes together, if it says or does anything."""
        endpoint, text = self.endpoint, self.text()
        calls = made_calls(self.written_calls(), self.request)
        finish = self.finish(calls)
        if not calls and not text.strip():
            why = self.why_empty()
            if not why and _sent_bytes(self.request) > LONG_PROMPT_BYTES:
                why = ": the prompt may be longer than the server's window; ai/check asks it"
            raise self.rubbish(f"the text is empty (finish reason '{finish}'){why}")
        return ChatReply(
            text=text,
            model=endpoint.api_key.quoted(self.model) or self.request.model or endpoint.model,
            tool_calls=calls,
            finish_reason=finish,
            usage=self.usage(),
            prompt_cut=self.prompt_cut,
        )

    @abstractmethod
    def take_answer(self, answer: Mapping[str, Any]) -> None:
        """Take in a whole body."""

    @abstractmethod
    def take_event(self, event: Mapping[str, Any]) -> str:
        """Take in one event; its text."""

    @abstractmethod
    def text(self) -> str: ...

    @abstractmethod
    def written_calls(self) -> Iterable[WrittenCall]: ...

    @abstractmethod
    def usage(self) -> Usage | None: ...

    @abstractmethod
    def status_of(self, error: Mapping[str, Any]) -> int | None:
        """The status that an error in an answer stands for, None where it says none."""

    def finish(self, calls: Sequence[ToolCall]) -> str:
        """How the reply ended, in the words that all clients use."""
        return self.endpoint.api_key.quoted(self.stop, most=40) or "stop"

    def why_empty(self) -> str:
        """What is known of a reply without a text, behind a colon."""
        return ""

    def own_error(self, answer: Mapping[str, Any]) -> ModelError:
        """An error that came with status 200, or in the middle of a stream."""
        words, status = words_of(answer), self.status_of(object_of(answer.get("error")))
        if status is not None:
            return turned_down(self.endpoint, status, words)
        said = self.endpoint.api_key.quoted(words) or "no reason given"
        return self.rubbish(f"the server sent an error: {said}")

    def rubbish(self, problem: str) -> ModelRubbish:
        """The error of an answer that is no reply."""
        return ModelRubbish(self.endpoint.name, problem)

    def listed(self, value: object, *, what: str, most: int = MOST_BLOCKS) -> list[dict[str, Any]]:
        """The objects in a list, none where it is no list; ModelRubbish: there are too many."""
        if not isinstance(value, list):
            return []
        self.checked(len(value), what=what, most=most)
        self._pieces += len(value)
        self.checked(self._pieces, what="pieces", most=MOST_PIECES)
        return [one for one in value if isinstance(one, dict)]

    def taken_arguments(self, text: str) -> str:
        """What is added to the arguments of a call; ModelRubbish: all of them are too long."""
        self._argument_characters += len(text)
        self.checked(
            self._argument_characters, what="characters of arguments", most=MOST_ARGUMENT_CHARACTERS
        )
        return text

    def checked(self, count: int, *, what: str, most: int) -> None:
        """Fail with ModelRubbish where there are more than `most`."""
        if count > most:
            problem = f"the reply has more than {most} {what}"
            raise ModelRubbish(self.endpoint.name, problem, too_much=True)

    def _object(self, written: bytes | str, what: str) -> dict[str, Any]:
        answer = json_object(written)
        if answer is None:
            raise self.rubbish(f"{what} is not a JSON object")
        if answer.get("error"):
            raise self.own_error(answer)
        return answer


def with_believable_usage(
    reply: ChatReply, request: ChatRequest, *, received_bytes: int
) -> ChatReply:
    """The reply, its tokens no more than what was sent and received can be.

    A token is a byte at least. A model may reason unseen as far as the request lets it write.
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


def turned_down(
    endpoint: Endpoint, status: int, words: str, *, retry_in_seconds: float | None = None
) -> ModelRefused | ModelUnavailable:
    """The error that an answer with a status of failure is, in the server's own words."""
    said = endpoint.api_key.quoted(words) or "no reason given"
    if status in _TRANSIENT or status >= 500:
        return ModelUnavailable(
            endpoint.name,
            f"status {status}: {said}",
            status=status,
            retry_in_seconds=retry_in_seconds,
        )
    return ModelRefused(endpoint.name, status, said)


def failed_with_status(
    endpoint: Endpoint, status: int, words: str, headers: Mapping[str, str]
) -> FailedRequest:
    """What an answer with a status of failure is; `headers` have names in small letters."""
    wait = retry_after_seconds(headers)
    error = turned_down(endpoint, status, words, retry_in_seconds=wait)
    again = isinstance(error, ModelUnavailable) and headers.get("x-should-retry") != "false"
    return FailedRequest(error=error, again=again, after_seconds=wait)
