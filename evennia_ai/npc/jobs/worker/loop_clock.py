"""Time and threads of an asyncio loop, as what is written for Twisted's reactor asks for them."""

import asyncio
import time
from collections.abc import Callable
from typing import Any, Final


class Later:
    """A call that is made later, unless it is cancelled."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, delay: float, call: Callable[[], Any]
    ) -> None:
        self._call: Final = call
        self._is_due = True
        self._handle: Final = loop.call_later(delay, self._made)

    def active(self) -> bool:
        """True if it is still to be made."""
        return self._is_due

    def cancel(self) -> None:
        """Have it not made."""
        self._is_due = False
        self._handle.cancel()

    def _made(self) -> None:
        self._is_due = False
        self._call()


class LoopClock:
    """A loop as a `Clock`, and as what an `AsyncBridge` needs of a reactor."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop: Final = loop

    def seconds(self) -> float:
        """Seconds since 1970, as Twisted's reactor tells them."""
        return time.time()

    def callLater(  # noqa: N802 - Twisted's own name
        self, delay: float, call: Callable[..., Any], /, *args: Any, **options: Any
    ) -> Later:
        """Have `call` made in the loop after so many seconds."""
        return Later(self._loop, delay, lambda: call(*args, **options))

    def callFromThread(self, call: Callable[..., Any], /, *args: Any) -> object:  # noqa: N802
        """Have `call` made in the loop, from any thread."""
        return self._loop.call_soon_threadsafe(call, *args)
