"""The progress bar of long imports: late on a terminal, never in a pipe."""

import io
import sys

from rich.console import Console

from evennia_ai.cli.terminal import PATIENCE_SECONDS, PatientBar, shown_progress
from evennia_ai.engine.foreign.documents import ignore_progress


class Clock:
    """A clock that the test sets by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def a_terminal() -> tuple[Console, io.StringIO]:
    file = io.StringIO()
    return Console(file=file, force_terminal=True, width=60), file


def test_quick_work_shows_no_bar() -> None:
    console, printed = a_terminal()
    bar = PatientBar(console, clock=Clock())
    for done in range(10):
        bar("assets", done, 10)
    bar.close()
    assert printed.getvalue() == ""


def test_slow_work_shows_a_bar() -> None:
    console, printed = a_terminal()
    clock = Clock()
    bar = PatientBar(console, clock=clock)
    bar("card file", 0, 1)
    clock.now = PATIENCE_SECONDS
    bar("lore [entries]", 3, 10)
    bar.close()
    assert "lore [entries]" in printed.getvalue()
    assert "3/10" in printed.getvalue()


def test_pipe_gets_no_bar(monkeypatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with shown_progress() as progress:
        assert progress is ignore_progress
