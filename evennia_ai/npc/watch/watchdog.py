"""A watchdog that logs the stack of code that blocks the game (`EVENNIA_AI_SLOW_MS`).

Evennia's Server does everything in the reactor's thread, so slow code delays all players. A second
thread regularly sends a question to the reactor. If the answer is late, this thread logs what the
reactor's thread is running at that moment.
"""

import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any, Final

REPEAT_SECONDS: Final = 60.0
"""The same place in the code is logged at most once in this time."""
STACK_FRAMES: Final = 12

_ENDING_SECONDS: Final = 0.1


class Watchdog:
    """Watches the thread that creates it, which must be the reactor's thread."""

    def __init__(self, reactor: Any, *, slow_ms: int, log: Callable[[str], None]) -> None:
        """Prepare the watchdog.

        Args:
            slow_ms: How long the reactor may be blocked before that is logged.
            log: Called with the message, in the reactor's thread.
        """
        self._reactor: Final = reactor
        self._slow_seconds: Final = slow_ms / 1000
        self._log: Final = log
        self._watched: Final = threading.get_ident()
        self._is_over: Final = threading.Event()
        self._told_at: Final[dict[str, float]] = {}

    def begin(self) -> None:
        """Start watching."""
        threading.Thread(target=self._watch, name="evennia_ai: what is slow", daemon=True).start()

    def end(self) -> None:
        """Stop watching."""
        self._is_over.set()

    def _watch(self) -> None:
        while not self._is_over.wait(self._slow_seconds):
            lives, asked_at = threading.Event(), time.monotonic()
            self._reactor.callFromThread(lives.set)
            if lives.wait(self._slow_seconds):
                continue
            frame = sys._current_frames().get(self._watched)
            stack = traceback.extract_stack(frame) if frame else traceback.StackSummary()
            while not lives.wait(_ENDING_SECONDS):
                if self._is_over.is_set():  # a stopped reactor no longer answers
                    return
            self._tell(stack, 1000 * (time.monotonic() - asked_at))

    def _tell(self, stack: traceback.StackSummary, took_ms: float) -> None:
        now, place = time.monotonic(), "\n".join(f"{one.filename} {one.name}" for one in stack[-3:])
        if now - self._told_at.get(place, -REPEAT_SECONDS) < REPEAT_SECONDS:
            return
        self._told_at[place] = now
        lines = "".join(traceback.format_list(stack[-STACK_FRAMES:]))
        text = f"evennia_ai: the game was blocked for {took_ms:.0f} ms by this code:\n{lines}"
        self._reactor.callFromThread(self._log, text)
