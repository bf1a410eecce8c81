"""What holds the game up is logged with its stack: `EVENNIA_AI_SLOW_MS`.

Evennia's Server does one thing at a time in its reactor, and whoever types waits until that thing
is done. A thread asks the reactor for a sign of life again and again. Where none comes in time, it
looks at what the reactor's thread runs just then.
"""

import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any, Final

REPEAT_SECONDS: Final = 60.0
"""How long nothing more is said of a place that was told."""
STACK_FRAMES: Final = 12

_ENDING_SECONDS: Final = 0.1


class Watchdog:
    """Watches the thread that makes it, which must be the reactor's, from `begin` to `end`."""

    def __init__(self, reactor: Any, *, slow_ms: int, log: Callable[[str], None]) -> None:
        """`slow_ms`: how long one thing may take; `log` is called in the reactor."""
        self._reactor: Final = reactor
        self._slow_seconds: Final = slow_ms / 1000
        self._log: Final = log
        self._watched: Final = threading.get_ident()
        self._is_over: Final = threading.Event()
        self._told_at: Final[dict[str, float]] = {}

    def begin(self) -> None:
        """Watch from now on."""
        threading.Thread(target=self._watch, name="evennia_ai: what is slow", daemon=True).start()

    def end(self) -> None:
        """Watch no longer."""
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
                if self._is_over.is_set():  # a reactor that ended gives no sign any more
                    return
            self._tell(stack, 1000 * (time.monotonic() - asked_at))

    def _tell(self, stack: traceback.StackSummary, took_ms: float) -> None:
        now, place = time.monotonic(), "\n".join(f"{one.filename} {one.name}" for one in stack[-3:])
        if now - self._told_at.get(place, -REPEAT_SECONDS) < REPEAT_SECONDS:
            return
        self._told_at[place] = now
        lines = "".join(traceback.format_list(stack[-STACK_FRAMES:]))
        text = f"evennia_ai: nobody was answered for {took_ms:.0f} ms, because of this:\n{lines}"
        self._reactor.callFromThread(self._log, text)
