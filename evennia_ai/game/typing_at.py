"""The client somebody types at: one of a few words, never what a client says of itself."""

from typing import Any, Final

CLIENTS: Final = ("telnet", "ssh", "webclient")
"""The first part of what Evennia calls a session's protocol; any other has no word here."""


def client_of(character: Any) -> str:
    """The client of who plays `character`, "" for nobody and for a game's own protocols.

    Of several screens it is the one that was typed at last.
    """
    handler = getattr(character, "sessions", None)
    sessions = handler.all() if handler is not None else ()
    if not sessions:
        return ""
    newest = max(sessions, key=_typed_at)
    word = str(getattr(newest, "protocol_key", "")).partition("/")[0]
    return word if word in CLIENTS else ""


def _typed_at(session: Any) -> float:
    return float(getattr(session, "cmd_last", 0.0) or 0.0)
