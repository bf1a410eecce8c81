"""The trace on a terminal: the same facts as the plain text, coloured by origin."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from rich.console import Console, Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from evennia_ai.prompt.report import Report, ReportMessage, broken_words, fates, shares
from evennia_ai.prompt.trace import Verdict
from evennia_ai.text.columns import first_line, visible

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
_SIDES: Final = 6  # columns of a panel's frame and padding


def show_trace(report: Report, *, heads: Sequence[str]) -> None:
    """Print the trace of one prompt."""
    console = Console(highlight=False)
    console.print(
        Panel(
            Group(*_account(report, cells=console.width - _SIDES)),
            title=Text(visible(" / ".join(heads) or "prompt")),
        ),
        _messages(report),
        _verdicts(report),
    )


def _account(report: Report, *, cells: int) -> Iterable[Text]:
    parts = shares(report, cells=cells)
    bar, legend = Text(), Text()
    for share in parts:
        style = STYLES.get(share.kind, "white")
        bar.append("█" * share.cells, style=style)
        legend.append(f"■ {share.label} {share.tokens}  ", style=style)
    bar.append("░" * (cells - len(bar)), style="dim")
    percent = 100 * report.tokens // max(report.limit, 1)
    yield Text(
        f"{report.tokens} of {report.limit} tokens ({percent} %), layout {report.layout},"
        f" counted by {report.counter}"
    )
    yield bar
    yield legend
    spots = ", ".join(str(spot) for spot in report.breakpoints) or "nowhere"
    yield Text(f"cache breakpoints after {spots}; {report.stable_tokens} tokens up to the last one")
    if report.shared_tokens is not None:
        shared = f"{report.shared_tokens} tokens shared with the prompt before"
        yield Text(f"{shared}; {broken_words(report)}")
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
    """Who or what speaks, and the first line of each stretch."""
    text = Text(overflow="ellipsis", no_wrap=True)
    for number, part in enumerate(message.parts):
        kind = part.origin.partition(":")[0]
        speaker = message.name if message.name and kind in ("history", "event") else part.origin
        line = first_line(message.content[part.start : part.end])
        text.append("\n" if number else "")
        text.append(visible(speaker), style=STYLES.get(kind, "white"))
        text.append(f"  {line}")
    return text


def _verdicts(report: Report) -> Table:
    kept, left = fates(report)
    table = Table(expand=True, title=f"kept {len(kept)}, left out {len(left)}")
    table.add_column("item", no_wrap=True)
    table.add_column("tokens", justify="right")
    table.add_column("why", ratio=1)
    for verdict in (*kept, *left):
        table.add_row(
            Text(visible(verdict.item), style="" if verdict.kept else "dim"),
            str(verdict.tokens or ""),
            _why(verdict),
        )
    return table


def _why(verdict: Verdict) -> Text:
    cause = f"; {verdict.cause}" if verdict.cause else ""
    style = "" if verdict.kept else "red"
    return Text(visible(f"{verdict.reason}{cause}"), style=style)
