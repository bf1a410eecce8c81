"""The client somebody types at: one of a few words, never what a client says of itself.

The words are Evennia's own for the protocol of a session (`protocol_key`, as `init_session` of each
protocol sets it), the same in 5.0 and 6.1; TLS makes no other client of telnet.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from evennia_ai.prompt.blocks import SCREENREADER

OTHER: Final = "other"
"""A protocol of the game's own: somebody types there, and nothing is known of it."""

_CLIENTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "telnet": "telnet",
        "telnet/ssl": "telnet",
        "ssh": "ssh",
        "websocket": "websocket",
        "ajax/comet": "ajax/comet",
    }
)


def client_of(character: Any) -> str:
    """The client of who plays `character`, with the mark of a screen reader; "" for nobody.

    Of several screens it is the one that was typed at last.
    """
    handler = getattr(character, "sessions", None)
    sessions = handler.all() if handler is not None else ()
    if not sessions:
        return ""
    newest = max(sessions, key=_typed_at)
    client = _CLIENTS.get(str(getattr(newest, "protocol_key", "")), OTHER)
    flags = getattr(newest, "protocol_flags", None) or {}
    return f"{client}{SCREENREADER}" if flags.get("SCREENREADER") else client


def _typed_at(session: Any) -> float:
    return float(getattr(session, "cmd_last", 0.0) or 0.0)
