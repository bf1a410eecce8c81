"""A model that says what it is told to: for tests of this library and of games that use it."""

from collections.abc import Callable, Iterable
from typing import Final

from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.task import deferLater

from evennia_ai.llm.chat import ChatReply, ChatRequest, Listener, Usage
from evennia_ai.llm.errors import EndpointError
from evennia_ai.llm.resilience import Clock

Line = str | ChatReply | Exception
"""A reply's text, a whole reply, or the error to fail with."""


class ScriptedModel:
    """Answers with the lines it was given, in order, or with what a callable makes of a request.

    `requests` holds all that was asked. With `delay_seconds` and a `clock` the answer comes later.
    A script that has ended fails with `ScriptEndedError`: nothing is made up.
    """

    offline: Final = False

    def __init__(
        self,
        script: Iterable[Line] | Callable[[ChatRequest], Line],
        *,
        name: str = "scripted",
        delay_seconds: float = 0.0,
        clock: Clock | None = None,
    ) -> None:
        if delay_seconds and clock is None:
            raise EndpointError(name, "clock", "is missing: a delay needs one")
        self._line = script if callable(script) else _in_order(name, script)
        self._name = name
        self._delay_seconds = delay_seconds
        self._clock = clock
        self.requests: list[ChatRequest] = []
        self.closed = False

    @property
    def name(self) -> str:
        return self._name

    def complete(
        self, request: ChatRequest, *, listener: Listener | None = None
    ) -> Deferred[ChatReply]:
        """The next line of the script, now or after the delay."""
        self.requests.append(request)
        if self._clock is None or not self._delay_seconds:
            return self._answer(request)
        return deferLater(self._clock, self._delay_seconds, self._answer, request)

    def close(self) -> None:
        self.closed = True

    def _answer(self, request: ChatRequest) -> Deferred[ChatReply]:
        line = self._line(request)
        if isinstance(line, Exception):
            return fail(line)
        if isinstance(line, ChatReply):
            return succeed(line)
        return succeed(ChatReply(text=line, model=request.model, usage=_usage(request, line)))


class ScriptEndedError(AssertionError):
    """A scripted model was asked more often than its script has lines."""


def _in_order(name: str, script: Iterable[Line]) -> Callable[[ChatRequest], Line]:
    lines = iter((script,) if isinstance(script, str) else tuple(script))

    def next_line(request: ChatRequest) -> Line:
        ended = ScriptEndedError(f"model '{name}' has no line left for {request.question!r}")
        return next(lines, ended)

    return next_line


def _usage(request: ChatRequest, text: str) -> Usage:
    """Words, for want of tokens: the same request always costs the same."""
    said = sum(len(message.content.split()) for message in request.messages)
    return Usage(input_tokens=said, output_tokens=len(text.split()))
