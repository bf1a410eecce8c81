"""How text that others wrote is shown to a builder: as it is, and nothing of it interpreted."""

from datetime import UTC, datetime
from typing import Final

from evennia_ai.game.output import escaped
from evennia_ai.text.columns import visible

MAX_LINE: Final = 600


def shown_block(text: str) -> str:
    """`text` with its lines, for `msg`: no colour, link, function or control in it counts."""
    lines = text.replace("\r\n", "\n").replace("\t", "    ").split("\n")
    shown = escaped("\n".join(visible(line) for line in lines))
    return f"{shown} " if shown.endswith("|") else shown  # the portal misreads a last pipe


def shown_line(text: str) -> str:
    """`text` as one line of bounded length, for `msg`."""
    line = " ".join(text.split())
    return shown_block(line if len(line) <= MAX_LINE else line[: MAX_LINE - 3] + "...")


def day_and_time(seconds: float) -> str:
    """A moment as builders read it."""
    return datetime.fromtimestamp(seconds, tz=UTC).strftime("%Y-%m-%d %H:%M UTC")
