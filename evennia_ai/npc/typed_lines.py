"""What clients send is bounded and plain when it leaves the Portal; so is what players are shown.

Evennia takes links out of a typed line, and looks for them again in every line that is shown. Both
take time that grows with the cube of the number of marks: 6,000 characters hold the game, or the
Portal, for ten seconds. Here a line has no mark of a link before Evennia looks at it. Control
characters, directions of writing and piled accents go as well: Evennia's own `say` would pass them
on to the screens of others.

The Portal is the one place that every client passes (telnet, TLS, SSH, websocket, Ajax), and it
echoes lines itself. `evennia_ai.npc.nicks` cleans a line again after a nick has replaced it.

Named in a game's settings, `PORTAL_SESSION_HANDLER_CLASS`.
"""

from typing import Any, Final

from django.conf import settings
from evennia.server.portal.portalsessionhandler import PortalSessionHandler
from evennia.utils import logger

from evennia_ai.npc.senses.text import clean_line, with_whole_links, without_links

MOST_NESTED: Final = 20
"""Lists in lists that a client may send."""
MOST_CHARACTERS: Final = 5_000
"""Characters and values of a frame that is no typed line, such as the options of a client."""
MOST_REPORTED: Final = 5
"""Frames of one connection that the log names; the others are dropped without a line."""
WORDS_OF_PLAYERS: Final = frozenset({"say", "whisper", "pose"})
"""Evennia's types of messages that hold what a player wrote; no link in them is the game's."""
_DEEP: Final = 10**12
"""The weight of what is nested too deeply."""


class BoundedSessions(PortalSessionHandler):
    """The connected clients; none of them can send what is too long, too deep or not plain."""

    def clean_senddata(self, session: Any, sent: dict[str, Any]) -> dict[str, Any]:
        """Return what goes to the Server of a frame: all of it made plain, or nothing.

        Evennia calls it once per frame, after it has counted how many a client sends in a second.
        """
        for name, data in sent.items():
            weight = _weight(data)
            if weight > (_DEEP if _is_line(name) else MOST_CHARACTERS):
                _report(session, name, "is too long or nested too deeply")
                return {}
        frame: dict[str, Any] = {}
        for name, (args, options) in super().clean_senddata(session, sent).items():
            if not _is_line(name):
                frame[clean_line(name)] = [_plain(args), _plain(options)]
                continue
            line = args[0] if args else ""
            if not isinstance(line, str):
                _report(session, name, "is not text")
                return {}
            if 0 < settings.MAX_CHAR_LIMIT < len(line.rstrip("\n")):
                self.data_out(session, text=[[settings.MAX_CHAR_LIMIT_WARNING], {}])
                return {}
            # Options of a line are left out: Evennia would make them attributes of the command.
            frame["text"] = [[clean_line(line)], {}]
        return frame

    def data_out(self, session: Any, **sent: Any) -> None:
        """Show a player a message, in which every link is whole and none is another player's."""
        for name in sent.keys() & {"text", "prompt"}:
            parts, options = sent[name]
            if parts and isinstance(parts[0], str) and "|" in parts[0]:
                is_typed = settings.MXP_OUTGOING_ONLY and options.get("type") in WORDS_OF_PLAYERS
                clean = without_links if is_typed else with_whole_links
                sent[name] = [[clean(parts[0]), *parts[1:]], options]
        super().data_out(session, **sent)


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return clean_line(value)
    if isinstance(value, dict):
        return {_plain(key): _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def _is_line(name: str) -> bool:
    # Evennia's Server takes " TEXT" for "text".
    return name.strip().lower() == "text"


def _weight(value: Any, *, nested: int = 0) -> int:
    """Count the characters and values in what a client sent; `_DEEP` and more if it is too deep."""
    if isinstance(value, str | bytes):
        return 1 + len(value)
    if not isinstance(value, dict | list | tuple):
        return 1
    if nested > MOST_NESTED:
        return _DEEP
    parts = [*value, *value.values()] if isinstance(value, dict) else value
    return 1 + sum(_weight(one, nested=nested + 1) for one in parts)


def _report(session: Any, name: str, what: str) -> None:
    session.frames_reported = getattr(session, "frames_reported", 0) + 1
    if session.frames_reported <= MOST_REPORTED:
        logger.log_warn(
            f"A client at {session.address} sent {name[:40]!r}, which {what}; it was dropped."
        )
