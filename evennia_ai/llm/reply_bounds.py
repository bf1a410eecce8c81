"""How much of anything one reply may hold, checked before any of it is worked on.

A server decides what it sends. The size of a reply in bytes alone does not bound the work with it:
a megabyte holds three hundred thousand calls of tools. What goes beyond a bound here is no reply,
and the rest of it is not read.
"""

import json
from dataclasses import dataclass, replace
from typing import Any, Final

from evennia_ai.errors import ModelRubbish
from evennia_ai.llm.chat import ChatReply, ChatRequest, Usage

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
