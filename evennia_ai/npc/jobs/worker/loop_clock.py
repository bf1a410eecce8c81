"""Time and threads of an asyncio loop, in the form of Twisted's reactor."""

import asyncio
import time
from collections.abc import Callable
from typing import Any, Final


class Later:
    """A scheduled call, which can be cancelled."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, delay: float, call: Callable[[], Any]
    ) -> None:
        self._call: Final = call
        self._is_due = True
        self._handle: Final = loop.call_later(delay, self._made)

    def active(self) -> bool:
        """True if the call is still to come."""
        return self._is_due

    def cancel(self) -> None:
        """Cancel the call."""
        self._is_due = False
        self._handle.cancel()

    def _made(self) -> None:
        self._is_due = False
        self._call()


class LoopClock:
    """An asyncio loop as a `Clock`, and as the reactor that an `AsyncBridge` needs."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop: Final = loop

    def seconds(self) -> float:
        """Return seconds since 1970, like Twisted's reactor."""
        return time.time()

    def callLater(  # noqa: N802 - Twisted's own name
        self, delay: float, call: Callable[..., Any], /, *args: Any, **options: Any
    ) -> Later:
        """Call `call` in the loop after so many seconds."""
        return Later(self._loop, delay, lambda: call(*args, **options))

    def callFromThread(self, call: Callable[..., Any], /, *args: Any) -> object:  # noqa: N802
        """Call `call` in the loop, from any thread."""
        return self._loop.call_soon_threadsafe(call, *args)
