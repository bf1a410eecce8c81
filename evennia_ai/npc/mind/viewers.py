"""Who looks: what the game answers about somebody whose eyes a screen is for."""

from typing import Any, Final

from evennia.locks.lockhandler import check_lockstring
from evennia.utils import logger

from evennia_ai.npc.knowledge.backends import HelpBackend
from evennia_ai.npc.tools.tool import result_text
from evennia_ai.npc.views.visibility import Seer
from evennia_ai.npc.views.withheld.viewer import Viewer

HEARS_WHISPERS: Final = "view:perm(Admin)"
"""Who may read what was said to NPCs in private."""


def allows(looker: Any, locks: str, access: str) -> bool:
    """True if a lock string lets `looker` do this; what it does not mention is allowed.

    A superuser passes every lock.
    """
    if not locks:
        return True
    try:
        return bool(check_lockstring(looker, locks, default=True, access_type=access))
    except Exception:  # lock functions are the game's own code: what fails lets nobody in
        logger.log_trace(f"evennia_ai: the lock {locks!r} cannot be asked; it lets nobody in")
        return False


def viewer_of(looker: Any) -> Viewer:
    """An object or account of the game as somebody who looks."""
    return Viewer(
        may_view=lambda locks: allows(looker, locks, "view"),
        hears_whispers=allows(looker, HEARS_WHISPERS, "view"),
        note_reading=lambda what: logger.log_sec(
            f"evennia_ai: {looker.key} reads {what}, said in private"
        ),
        help_page=lambda base, name: HelpBackend(base).fetch([name])[0],
        as_recorded=result_text,
    )


def seer_for(looker: Any, npc_ref: str) -> Seer:
    """What an object or account of the game may see of one NPC."""
    return Seer(viewer_of(looker), npc_ref)
