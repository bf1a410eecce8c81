"""Limit and clean what clients send before it leaves the Portal, and clean what players see.

Evennia removes links from typed lines, and searches for links in every line that it shows. Both
take time that grows with the cube of the number of marks. A line of 6,000 characters blocks the
game or the Portal for ten seconds. This module removes the marks of links before Evennia sees a
line. It also removes control characters, direction marks and piled accents, which Evennia's command
`say` would pass on to others.

The lines of all clients pass the Portal (telnet, TLS, SSH, websocket, Ajax), which echoes some of
them itself. `evennia_ai.npc.nicks` cleans a line again after a nick has replaced it.

Set the class in a game's settings as `PORTAL_SESSION_HANDLER_CLASS`.
"""

from typing import Any, Final

from django.conf import settings
from evennia.server.portal.portalsessionhandler import PortalSessionHandler
from evennia.utils import logger

from evennia_ai.npc.senses.text import clean_line, with_whole_links, without_links

MOST_NESTED: Final = 20
"""The deepest nesting of lists in a frame that a client may send."""
MOST_CHARACTERS: Final = 5_000
"""The most characters and values in a frame that is not a line, such as a client's options."""
MOST_REPORTED: Final = 5
"""The most dropped frames that are logged for one connection."""
WORDS_OF_PLAYERS: Final = frozenset({"say", "whisper", "pose"})
"""The types of Evennia's messages that contain words of players. Links in them are removed."""
_DEEP: Final = 10**12
"""The weight that stands for a frame with too deep nesting."""


class BoundedSessions(PortalSessionHandler):
    """The Portal's sessions, which refuse frames that are too long or deep and clean the rest."""

    def clean_senddata(self, session: Any, sent: dict[str, Any]) -> dict[str, Any]:
        """Return the cleaned frame for the Server, or an empty frame if it is refused.

        Evennia calls this once for each frame, after its limit of frames per second.
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
            # The options of a line are dropped, because Evennia would set them as attributes of the
            # command.
            frame["text"] = [[clean_line(line)], {}]
        return frame

    def data_out(self, session: Any, **sent: Any) -> None:
        """Send a player a message. Its links are whole, and only the game can make them."""
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
    # Evennia's Server also accepts the name " TEXT" for "text".
    return name.strip().lower() == "text"


def _weight(value: Any, *, nested: int = 0) -> int:
    """Count the characters and values in a frame. If it is nested too deeply, return `_DEEP` or
    more.
    """
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
