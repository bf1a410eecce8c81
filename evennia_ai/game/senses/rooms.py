"""Who comes and goes, however quietly the game moves them: rooms that tell it, and logins.

Logins and logouts are told by Evennia's own signals, in every room.
"""

from typing import Any

from evennia.server.signals import SIGNAL_OBJECT_POST_PUPPET, SIGNAL_OBJECT_POST_UNPUPPET

from evennia_ai.game.senses.happenings import npcs_in
from evennia_ai.game.senses.presence import is_character
from evennia_ai.game.senses.witness import safely


class AIRoomMixin:
    """For rooms of a game: NPCs here see moves that nothing announces.

    Put it before the room class. Without it NPCs see what the game announces, and who logs in
    and out.
    """

    def at_object_receive(
        self, moved_obj: Any, source_location: Any, move_type: str = "move", **kwargs: Any
    ) -> None:
        """Evennia's hook: somebody or something came here."""
        super().at_object_receive(  # type: ignore[misc]
            moved_obj, source_location, move_type=move_type, **kwargs
        )
        came(self, moved_obj, source_location)

    def at_object_leave(
        self, moved_obj: Any, target_location: Any, move_type: str = "move", **kwargs: Any
    ) -> None:
        """Evennia's hook: somebody or something is about to leave."""
        super().at_object_leave(  # type: ignore[misc]
            moved_obj, target_location, move_type=move_type, **kwargs
        )
        left(self, moved_obj, target_location)


def came(room: Any, mover: Any, source: Any) -> None:
    """Show the NPCs of a room that somebody came, None from where nobody knows."""
    for npc in _onlookers(room, mover):
        safely(npc, npc.witness.sees_arrive, mover, source)


def left(room: Any, mover: Any, target: Any) -> None:
    """Show the NPCs of a room that somebody leaves, None to where nobody knows."""
    for npc in _onlookers(room, mover):
        safely(npc, npc.witness.sees_leave, mover, target)


def _onlookers(room: Any, mover: Any) -> list[Any]:
    if room is None or not is_character(mover):
        return []
    return [npc for npc in npcs_in(room) if npc != mover]


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
