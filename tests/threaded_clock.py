"""A clock for tests that other threads can call, like a reactor."""

from collections.abc import Callable
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

from twisted.internet.interfaces import IReactorFromThreads
from twisted.internet.task import Clock
from zope.interface import implementer


@implementer(IReactorFromThreads)
class ThreadedClock(Clock):
    """A clock that a test advances. Other threads can schedule calls on it."""

    def __init__(self) -> None:
        super().__init__()
        self._told: SimpleQueue[Callable[[], object]] = SimpleQueue()

    def callFromThread(self, call: Callable[..., object], *args: Any) -> None:
        self._told.put(partial(call, *args))

    def hear(self, *, at_most_seconds: float) -> bool:
        """Wait until another thread has scheduled a call. Return True if one did."""
        try:
            call = self._told.get(timeout=at_most_seconds)
        except Empty:
            return False
        call()
        self.advance(0)
        return True
