"""What clients send: no link markup, no overlong line and no control character gets further.

Evennia takes links out of a typed line, and looks for them again in every line that is shown, in
time that grows with the cube of its length: 6,000 characters hold the game for ten seconds. What
came through here has no mark of a link, whole or broken. `MAX_CHAR_LIMIT` is asked here too,
because Evennia's Portal counts the characters of telnet's lines alone, not those of web clients.
Evennia's own `say` passes on what was typed, to the letter: what would clear another player's
screen, or hide there, is taken out here too.

Named in a game's settings, `SERVER_SESSION_CLASS`.
"""

from typing import Any, Final

from django.conf import settings
from evennia.server.serversession import ServerSession

from evennia_ai.game.senses.text import visible, without_links

MOST_NESTED: Final = 20
"""Lists in lists that a client may send; what is deeper is left out."""

_TAB: Final = 4
"""Blanks of a tab, which a builder may have pasted into an editor."""


class SessionWithoutLinks(ServerSession):
    """A session whose player types no links, unless the game lets players make them.

    Those are games without MXP_OUTGOING_ONLY.
    """

    def data_in(self, **kwargs: Any) -> None:
        if _is_too_long(kwargs.get("text")):
            self.msg(settings.MAX_CHAR_LIMIT_WARNING)
            return
        super().data_in(**_plain(kwargs))


def _is_too_long(typed: Any) -> bool:
    """Whether the line of `((line, ...), options)` is longer than the game takes."""
    line = typed[0][0] if typed and typed[0] else ""
    return isinstance(line, str) and 0 < settings.MAX_CHAR_LIMIT < len(line)


def _plain(value: Any, *, nested: int = 0) -> Any:
    """What a client sent, with no links in any text of it, and nothing that is not seen."""
    if isinstance(value, str):
        return _seen(without_links(value) if settings.MXP_OUTGOING_ONLY else value)
    if not isinstance(value, dict | list | tuple):
        return value
    if nested > MOST_NESTED:
        return None
    if isinstance(value, dict):
        return {_plain(key): _plain(one, nested=nested + 1) for key, one in value.items()}
    return [_plain(one, nested=nested + 1) for one in value]


def _seen(text: str) -> str:
    """What of it is seen, line by line: a web client may send several."""
    return "\n".join(map(visible, text.expandtabs(_TAB).split("\n")))
