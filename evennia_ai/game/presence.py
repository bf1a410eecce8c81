"""Presence: who is around an NPC, and whom of them it can see."""

from typing import Any


def can_see(npc: Any, other: Any) -> bool:
    """Whether `npc` can see `other`, by the game's own rules.

    The room's `filter_visible` decides, which asks the locks `view` and `search`; somebody without
    a name for this looker is hidden as well.
    """
    if other == npc:
        return True
    if npc.location is not None:
        seen = bool(npc.location.filter_visible([other], npc))
    else:
        seen = bool(other.access(npc, "view"))
    return seen and bool(str(other.get_display_name(npc)).strip())


def is_npc(character: Any) -> bool:
    """Whether this is one of ours, and not a player whose character has a mind as well."""
    return hasattr(type(character), "ai") and not character.has_account
