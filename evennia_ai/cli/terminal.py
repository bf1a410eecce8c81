"""Output for a terminal: the trace coloured by origin, and a progress bar.

The coloured trace has the same facts as the plain text. The bar is shown only on a terminal and
only if the work takes a while.
"""

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from rich.console import Console, Group
from rich.panel import Panel
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn
from rich.progress import Progress as Bar
from rich.table import Table
from rich.text import Text

from evennia_ai.engine.foreign.documents import Progress, ignore_progress
from evennia_ai.engine.prompt.report import (
    Report,
    ReportMessage,
    describe_break,
    final_verdicts,
    token_shares,
)
from evennia_ai.engine.prompt.trace import Verdict
from evennia_ai.engine.text.columns import escape_controls, first_line

STYLES: Final[Mapping[str, str]] = {
    "component": "cyan",
    "lore": "magenta",
    "note": "yellow",
    "history": "green",
    "block": "blue",
    "event": "bright_red",
    "tools": "bright_magenta",
    "framing": "white",
}
# The columns of a panel's frame and padding.
_SIDES: Final = 6


def show_trace(report: Report, *, heads: Sequence[str]) -> None:
    """Print the trace of one prompt."""
    console = Console(highlight=False)
    console.print(
        Panel(
            Group(*_account(report, cells=console.width - _SIDES)),
            title=Text(escape_controls(" / ".join(heads) or "prompt")),
        ),
        _messages(report),
        _verdicts(report),
    )


def _account(report: Report, *, cells: int) -> Iterable[Text]:
    parts = token_shares(report, cells=cells)
    bar, legend = Text(), Text()
    for share in parts:
        style = STYLES.get(share.kind, "white")
        bar.append("█" * share.cells, style=style)
        legend.append(f"■ {share.label} {share.tokens}  ", style=style)
    bar.append("░" * (cells - len(bar)), style="dim")
    percent = 100 * report.tokens // max(report.limit_tokens, 1)
    yield Text(
        f"{report.tokens} of {report.limit_tokens} tokens ({percent} %), layout {report.layout},"
        f" counted by {report.counter}"
    )
    yield bar
    yield legend
    spots = ", ".join(str(spot) for spot in report.breakpoints) or "nowhere"
    yield Text(f"cache breakpoints after {spots}; {report.stable_tokens} tokens up to the last one")
    if report.shared_tokens is not None:
        shared = f"{report.shared_tokens} tokens shared with the prompt before"
        yield Text(f"{shared}; {describe_break(report)}")
    yield Text(f"sha256 {report.sha256}", style="dim")


def _messages(report: Report) -> Table:
    table = Table(expand=True, title="messages", title_justify="left")
    for name, justify in (("#", "right"), ("block", "left"), ("role", "left"), ("tokens", "right")):
        table.add_column(name, justify="right" if justify == "right" else "left", no_wrap=True)
    table.add_column("origin and text", ratio=1)
    for index, message in enumerate(report.messages):
        block = f"{message.block} >" if message.injected else message.block
        table.add_row(str(index), block, message.role, str(message.tokens), _said(message))
    return table


def _said(message: ReportMessage) -> Text:
    """Yield the speaker of a message and the first line of each of its parts."""
    text = Text(overflow="ellipsis", no_wrap=True)
    for number, part in enumerate(message.parts):
        kind = part.origin.partition(":")[0]
        speaker = message.name if message.name and kind in ("history", "event") else part.origin
        line = first_line(message.content[part.start : part.end])
        text.append("\n" if number else "")
        text.append(escape_controls(speaker), style=STYLES.get(kind, "white"))
        text.append(f"  {line}")
    return text


def _verdicts(report: Report) -> Table:
    kept, left = final_verdicts(report)
    table = Table(expand=True, title=f"kept {len(kept)}, left out {len(left)}")
    table.add_column("item", no_wrap=True)
    table.add_column("tokens", justify="right")
    table.add_column("why", ratio=1)
    for verdict in (*kept, *left):
        table.add_row(
            Text(escape_controls(verdict.item), style="" if verdict.kept else "dim"),
            str(verdict.tokens or ""),
            _why(verdict),
        )
    return table


def _why(verdict: Verdict) -> Text:
    cause = f"; {verdict.cause}" if verdict.cause else ""
    style = "" if verdict.kept else "red"
    return Text(escape_controls(f"{verdict.reason}{cause}"), style=style)


PATIENCE_SECONDS: Final = 0.3


class PatientBar:
    """A progress bar that appears only after a while and is erased at the end."""

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
        """Erase the bar."""
        if self._task is not None:
            self._bar.stop()


@contextmanager
def shown_progress() -> Iterator[Progress]:
    """Yield a function that shows progress: as a bar on standard error, or not at all."""
    if not sys.stderr.isatty():
        yield ignore_progress
        return
    bar = PatientBar(Console(stderr=True))
    try:
        yield bar
    finally:
        bar.close()
