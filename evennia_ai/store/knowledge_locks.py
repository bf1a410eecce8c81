"""Locks of bases and pages, as they are stored.

Whether a text is a lock, and what it allows whom, is for the commands.
"""

from typing import Final

from evennia_ai.errors import ComponentValueError
from evennia_ai.history.records import storable

MAX_LOCKS: Final = 2000


def check_locks(locks: str) -> None:
    """ComponentValueError where a lock string is too long or holds what cannot be stored."""
    if len(locks) > MAX_LOCKS or storable(locks) != locks:
        wanted = f"a lock string of at most {MAX_LOCKS} characters"
        raise ComponentValueError("locks", locks, wanted)
