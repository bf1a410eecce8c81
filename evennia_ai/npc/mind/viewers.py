"""What a person may see who reads the output of a command or a page."""

from typing import Any, Final

from evennia.locks.lockhandler import check_lockstring
from evennia.utils import logger

from evennia_ai.npc.knowledge.backends import HelpBackend
from evennia_ai.npc.tools.tool import result_text
from evennia_ai.npc.views.visibility import Seer
from evennia_ai.npc.views.withheld.viewer import Viewer

READS_WHISPERS: Final = "view:perm(Admin)"
"""The lock of the right to read what was whispered to NPCs."""


def lock_allows(looker: Any, locks: str, access: str) -> bool:
    """True if a lock string allows `looker` this type of access.

    Types that the lock does not mention are allowed. A superuser passes every lock.
    """
    if not locks:
        return True
    try:
        return bool(check_lockstring(looker, locks, default=True, access_type=access))
    except Exception:  # a lock function of the game raised an error, so nobody passes
        logger.log_trace(f"evennia_ai: the lock {locks!r} raised an error; nobody passes it")
        return False


def viewer_of(looker: Any) -> Viewer:
    """Return an object or account of the game as a viewer."""
    return Viewer(
        may_view=lambda locks: lock_allows(looker, locks, "view"),
        reads_whispers=lock_allows(looker, READS_WHISPERS, "view"),
        note_reading=lambda what: logger.log_sec(
            f"evennia_ai: {looker.key} reads {what}, which was said in private"
        ),
        help_page=lambda base, name: HelpBackend(base).fetch([name])[0],
        as_recorded=result_text,
    )


def seer_for(looker: Any, npc_ref: str) -> Seer:
    """Return what an object or account of the game may see of one NPC."""
    return Seer(viewer_of(looker), npc_ref)
