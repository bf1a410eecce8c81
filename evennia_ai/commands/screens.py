"""Screens: lines as a client shows them, in colour and a page at a time.

No fact is shown by colour only: a letter or a word next to it says the same. Texts of other people
are escaped before colours are put around them, so markup in them has no effect.

Pages are shown only if a person is at the screen: the client told its size, or it is the web
client. Screen readers and clients that may be programs get the whole text at once, because they
could not know that more is waiting. A client that claims to be taller than any screen gets the
whole text, too.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from evennia.utils.evmore import EvMore

from evennia_ai.engine.text.columns import count_columns
from evennia_ai.npc.speech.output import escape_block

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
"""The colour of each kind of text. None is so dark that the web client's black hides it."""


TALLEST: Final = 500
"""The most lines that a real screen has. A client that claims more asks for no pages."""


_WEB_CLIENTS: Final = ("websocket", "ajax/comet")
"""The names of the web client's two kinds of session: with a websocket, and without."""


class Span(NamedTuple):
    """A part of a line, and the kind of text it is."""

    text: str
    kind: str = ""


Row = Sequence[Span]
"""A line made of spans."""


def head(text: str) -> Row:
    """Return a line as a heading."""
    return (Span(text, "head"),)


def diffed(lines: Iterable[str]) -> list[str | Row]:
    """Return the lines of a unified diff, with added and removed lines coloured."""
    kinds = {"+ ": "came", "- ": "went"}
    return [(Span(line, kinds[line[:2]]),) if line[:2] in kinds else line for line in lines]


def width_of(row: Row) -> int:
    """Return how many columns a line takes."""
    return sum(count_columns(span.text) for span in row)


def shown_rows(rows: Iterable[str | Row]) -> str:
    """Return lines for `msg`: coloured by kind, with all markup in their texts escaped."""
    return "\n".join(
        escape_block(row) if isinstance(row, str) else "".join(map(_coloured, row)) for row in rows
    )


def in_pages(caller: Any, text: str, *, session: Any) -> bool:
    """Show a text in pages. Return False if no person is there to turn them.

    `session` is where the command was typed. It is None after a command that closed the pages of
    another text.
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
    """True if the session is one of Evennia's web client."""
    return session is not None and session.protocol_key in _WEB_CLIENTS


def _coloured(span: Span) -> str:
    # Escape each span on its own: two spans together must not form a link.
    text = escape_block(span.text.replace("\n", " "))
    colour = COLOURS.get(span.kind, "")
    return f"{colour}{text}|n" if colour else text
