"""A bar on a terminal for what takes its time; a pipe and quick work get nothing."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn
from rich.progress import Progress as Bar

from evennia_ai.foreign.documents import Progress, silent

PATIENCE_SECONDS: Final = 0.3


class PatientBar:
    """A bar that appears when the work has taken a while, and leaves nothing behind."""

    def __init__(self, console: Console, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._start = clock()
        self._bar = Bar(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            console=console,
            transient=True,
        )
        self._task: TaskID | None = None

    def __call__(self, what: str, done: int, total: int) -> None:
        """Show how far the work is."""
        if self._task is None:
            if self._clock() - self._start < PATIENCE_SECONDS:
                return
            self._bar.start()
            self._task = self._bar.add_task(what, total=total)
        self._bar.update(self._task, description=what, completed=done, total=total)

    def close(self) -> None:
        """Take the bar away."""
        if self._task is not None:
            self._bar.stop()


@contextmanager
def shown_progress() -> Iterator[Progress]:
    """Where progress is told to while the body runs: a bar on standard error, or nowhere."""
    if not sys.stderr.isatty():
        yield silent
        return
    bar = PatientBar(Console(stderr=True))
    try:
        yield bar
    finally:
        bar.close()
