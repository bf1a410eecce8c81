"""A reactor for tests: calls from the bridge's thread wait until the test makes them."""

import traceback
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import get_ident
from time import monotonic, sleep
from typing import Any

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

PATIENCE_SECONDS = 60.0
"""How long a test waits for something that normally comes at once."""


class Handover:
    """A store of calls from other threads. `outcome_of` makes them in the test's own thread."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[tuple[Callable[..., Any], tuple[Any, ...]]] = SimpleQueue()
        self.called_from: set[int] = set()

    def callFromThread(self, call: Callable[..., Any], /, *args: Any) -> None:
        self.called_from.add(get_ident())
        self._calls.put((call, args))

    def outcome_of(self, deferred: Deferred[Any], within_seconds: float = PATIENCE_SECONDS) -> Any:
        """Return the outcome of `deferred`: its result, or the exception with which it fails."""
        outcomes: list[Any] = []
        deferred.addBoth(outcomes.append)
        ends = monotonic() + within_seconds
        while not outcomes:
            try:
                call, args = self._calls.get(timeout=max(0.001, ends - monotonic()))
            except Empty:
                raise AssertionError(f"nothing came within {within_seconds:g} seconds") from None
            call(*args)
        outcome = outcomes[0]
        return outcome.value if isinstance(outcome, Failure) else outcome

    def make_next_call(self, within_seconds: float = PATIENCE_SECONDS) -> None:
        """Make one call as soon as it arrives."""
        call, args = self._calls.get(timeout=within_seconds)
        call(*args)

    def waits_for_a_call(self, within_seconds: float = PATIENCE_SECONDS) -> bool:
        """True if a call arrives. It is not made yet."""
        ends = monotonic() + within_seconds
        while self._calls.empty() and monotonic() < ends:
            sleep(0.005)
        return not self._calls.empty()

    def make_waiting_calls(self) -> None:
        """Make the calls that have arrived."""
        while not self._calls.empty():
            call, args = self._calls.get()
            call(*args)


def told_of(problem: BaseException) -> str:
    """Return everything that a log could show of an exception."""
    return "".join(traceback.format_exception(problem)) + repr(problem) + repr(vars(problem))
