"""Screens: lines as a client shows them, coloured where that helps, a page at a time.

A colour never says anything alone: a letter or word stands beside it. Text of others is escaped
stretch by stretch before colours stand around it, so nothing in it counts.

Only somebody who sits before a screen is shown pages: a client that told its size, and the web
client. Screen readers, and clients that a program may have opened, get the whole text at once, for
they could not know that more is waiting; so does a client that says it is taller than any screen.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from evennia.utils.evmore import EvMore

from evennia_ai.engine.text.columns import count_columns
from evennia_ai.npc.speech.output import shown_block

COLOURS: Final = {
    "component": "|c",
    "lore": "|y",
    "note": "|m",
    "history": "|w",
    "block": "|C",
    "event": "|g",
    "tools": "|G",
    "memory": "|Y",
    "head": "|w",
    "came": "|g",
    "went": "|r",
    "changed": "|y",
}
"""What a stretch is of -> its colour: none so dark that a web client on black hides it."""


TALLEST: Final = 500
"""Lines of a screen; a client with more of them says that it wants no pages."""


_WEB_CLIENTS: Final = ("websocket", "ajax/comet")
"""The web client as sessions name it: with a websocket, and where none can be opened."""


class Span(NamedTuple):
    """A stretch of a line, and what it is of."""

    text: str
    kind: str = ""


Row = Sequence[Span]
"""A line in stretches."""


def head(text: str) -> Row:
    """A line that stands over others."""
    return (Span(text, "head"),)


def diffed(lines: Iterable[str]) -> list[str | Row]:
    """Lines of a unified diff, what came and what went coloured beside their signs."""
    kinds = {"+ ": "came", "- ": "went"}
    return [(Span(line, kinds[line[:2]]),) if line[:2] in kinds else line for line in lines]


def width_of(row: Row) -> int:
    """How many columns a line takes."""
    return sum(count_columns(span.text) for span in row)


def shown_rows(rows: Iterable[str | Row]) -> str:
    """Lines for `msg`; in their texts nothing counts, their kinds are coloured."""
    return "\n".join(
        shown_block(row) if isinstance(row, str) else "".join(map(_coloured, row)) for row in rows
    )


def in_pages(caller: Any, text: str, *, session: Any) -> bool:
    """Show a text that `msg` takes in pages; False where nobody is there to turn them.

    `session` is where the command was typed; a command that ended another text's pages has none.
    """
    if session is None and len(sessions := caller.sessions.all()) == 1:
        session = sessions[0]
    if session is None or not _turns_pages(session):
        return False
    EvMore(caller, text, session=session, exit_on_lastpage=True)
    return True


def _turns_pages(session: Any) -> bool:
    flags = session.protocol_flags
    if flags.get("SCREENREADER") or flags.get("SCREENHEIGHT", {}).get(0, 0) > TALLEST:
        return False
    return bool(flags.get("AUTORESIZE")) or is_web_client(session)


def is_web_client(session: Any) -> bool:
    """True if somebody is here by Evennia's web client, in either of its ways."""
    return session is not None and session.protocol_key in _WEB_CLIENTS


def _coloured(span: Span) -> str:
    # What one stretch ends with must not begin a link with the next.
    text = shown_block(span.text.replace("\n", " "))
    colour = COLOURS.get(span.kind, "")
    return f"{colour}{text}|n" if colour else text
