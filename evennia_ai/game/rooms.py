"""Rooms whose NPCs see everybody who comes and goes, however quietly the game moves them."""

from typing import Any

from evennia_ai.game.happenings import npcs_in
from evennia_ai.game.presence import is_character
from evennia_ai.game.witness import safely


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
