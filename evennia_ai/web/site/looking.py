"""Who looks at a page."""

from typing import Any

from evennia_ai.game.mind.viewers import viewer_of
from evennia_ai.minds.visibility import Seer


def seer_for(account: Any, npc_ref: str) -> Seer:
    """What an account may see of one NPC: the function that the game's screens ask, too."""
    return Seer(viewer_of(account), npc_ref)
