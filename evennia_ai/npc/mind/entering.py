"""Tell players who enter the game that models speak for some NPCs."""

from typing import Any, Final

from evennia.server.signals import SIGNAL_OBJECT_POST_PUPPET

from evennia_ai.npc.runtime import current
from evennia_ai.npc.senses.languages import read_by, translate
from evennia_ai.npc.senses.presence import HasMind

_UID: Final = "evennia_ai.disclosure"


def disclose_at_login() -> None:
    """Show the login line of `EVENNIA_AI_DISCLOSURE` from now on. May be called more than once."""
    SIGNAL_OBJECT_POST_PUPPET.connect(_on_puppet, dispatch_uid=_UID)


def _on_puppet(sender: Any, **kwargs: Any) -> None:
    """Tell the player of a character that enters the game, once for all of its sessions."""
    live = current.installed
    if live is None or isinstance(sender, HasMind) or sender.sessions.count() != 1:
        return
    if live.conf.disclosure.login and live.models.thinking("speaker"):
        line = translate(live.conf.disclosure.login, read_by(sender))
        sender.msg(text=(line, {"type": "disclosure"}))
