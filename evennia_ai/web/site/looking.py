"""What the viewer of a page may see."""

from typing import Any

from evennia_ai.npc.mind.viewers import viewer_of
from evennia_ai.npc.views.visibility import Seer


def seer_for(account: Any, npc_ref: str) -> Seer:
    """Return what an account may see of one NPC. The screens of the game use the same rules."""
    return Seer(viewer_of(account), npc_ref)
