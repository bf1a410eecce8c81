"""What a server's answer may hold: values of any kind, how much of each, and the errors in it.

What does not fit counts as nothing. A server decides what it sends, and the size of a reply in
bytes alone does not bound the work with it: a megabyte holds three hundred thousand calls of tools.
What goes beyond a bound here is no reply, and the rest of it is not read. Another attempt is worth
it where things may be otherwise in a moment: too many requests, a broken server, a connection. A
request that was turned down or answered with rubbish is not sent again.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from evennia_ai.errors import ModelError, ModelRefused, ModelRubbish, ModelUnavailable
from evennia_ai.llm.chat import ChatReply, ChatRequest, Usage
from evennia_ai.llm.profiles import Endpoint
from evennia_ai.net.http import FailedAttempt, retry_after_seconds

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
    for field in ("error", "message", "detail"):
        if isinstance(said, dict) and field in said:
            said = said[field]
    return text_of(said)


@dataclass(slots=True, kw_only=True)
class Pieces:
    """Takes lists out of what a server sent, as long as it is not too much.

    `server` is the endpoint's name.
    """

    server: str
    left: int = MOST_PIECES
    left_argument_characters: int = MOST_ARGUMENT_CHARACTERS

    def of(self, value: object, *, what: str, most: int = MOST_BLOCKS) -> list[dict[str, Any]]:
        """The objects in a list, none where it is no list; ModelRubbish: there are too many."""
        if not isinstance(value, list):
            return []
        self.checked(len(value), what=what, most=most)
        self.left -= len(value)
        if self.left < 0:
            raise too_much(self.server, "pieces", MOST_PIECES)
        return [one for one in value if isinstance(one, dict)]

    def checked(self, count: int, *, what: str, most: int) -> None:
        """Fail with ModelRubbish where there are more than `most`."""
        if count > most:
            raise too_much(self.server, what, most)

    def take_arguments(self, text: str) -> str:
        """What is added to the arguments of a call; ModelRubbish: all of them are too long."""
        self.left_argument_characters -= len(text)
        if self.left_argument_characters < 0:
            raise too_much(self.server, "characters of arguments", MOST_ARGUMENT_CHARACTERS)
        return text


def too_much(server: str, what: str, most: int) -> ModelRubbish:
    """The error of a reply that holds more of something than it may."""
    return ModelRubbish(server, f"the reply has more than {most} {what}", too_much=True)


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
