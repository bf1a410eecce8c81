"""Locks as those who look are asked: whether a lock string lets somebody do something."""

from typing import Any

from evennia.locks.lockhandler import check_lockstring
from evennia.utils import logger


def allows(viewer: Any, locks: str, access: str) -> bool:
    """Whether a lock string lets `viewer` do this; what it does not mention is allowed.

    A superuser passes every lock.
    """
    if not locks:
        return True
    try:
        return bool(check_lockstring(viewer, locks, default=True, access_type=access))
    except Exception:  # lock functions are the game's own code: what fails lets nobody in
        logger.log_trace(f"evennia_ai: the lock {locks!r} cannot be asked; it lets nobody in")
        return False
