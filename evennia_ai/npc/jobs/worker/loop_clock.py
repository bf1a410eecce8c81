"""The clock and threads of an asyncio loop, with the methods of Twisted's reactor."""

import asyncio
import time
from collections.abc import Callable
from typing import Any, Final


class Later:
    """A scheduled call that can be cancelled, like Twisted's `IDelayedCall`."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, delay: float, call: Callable[[], Any]
    ) -> None:
        self._call: Final = call
        self._is_due = True
        self._handle: Final = loop.call_later(delay, self._made)

    def active(self) -> bool:
        """True if the call has been neither made nor cancelled."""
        return self._is_due

    def cancel(self) -> None:
        """Cancel the call."""
        self._is_due = False
        self._handle.cancel()

    def _made(self) -> None:
        self._is_due = False
        self._call()


class LoopClock:
    """An asyncio loop in the role of a `Clock`, and of the reactor for an `AsyncBridge`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop: Final = loop

    def seconds(self) -> float:
        """Return seconds since 1970, like Twisted's reactor."""
        return time.time()

    def callLater(  # noqa: N802 - Twisted's own name
        self, delay: float, call: Callable[..., Any], /, *args: Any, **options: Any
    ) -> Later:
        """Schedule a call in the loop after a delay in seconds."""
        return Later(self._loop, delay, lambda: call(*args, **options))

    def callFromThread(self, call: Callable[..., Any], /, *args: Any) -> object:  # noqa: N802
        """Schedule a call in the loop. Any thread may call this."""
        return self._loop.call_soon_threadsafe(call, *args)
