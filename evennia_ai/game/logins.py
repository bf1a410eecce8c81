"""Logins: NPCs see who enters the game and who leaves it, by Evennia's own signals."""

from typing import Any

from evennia.server.signals import SIGNAL_OBJECT_POST_PUPPET, SIGNAL_OBJECT_POST_UNPUPPET

from evennia_ai.game.rooms import came, left

_UID = "evennia_ai"


def watch_logins() -> None:
    """Show NPCs from now on who logs in and out where they are; twice is as good as once."""
    SIGNAL_OBJECT_POST_PUPPET.connect(_puppeted, dispatch_uid=_UID)
    SIGNAL_OBJECT_POST_UNPUPPET.connect(_unpuppeted, dispatch_uid=_UID)


def _puppeted(sender: Any, **kwargs: Any) -> None:
    if sender.sessions.count() == 1:  # not one more screen of somebody who is there
        came(sender.location, sender, None)


def _unpuppeted(sender: Any, **kwargs: Any) -> None:
    """Evennia puts away who has left the game; a game that does not has them still standing."""
    if sender.location is None and not sender.sessions.count():
        left(sender.db.prelogout_location, sender, None)
