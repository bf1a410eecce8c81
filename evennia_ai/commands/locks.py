"""Locks on lorebooks and entries: Evennia lock strings of the access types view and edit.

Those on knowledge bases and pages are asked and checked in the same way; their types are others.

What a lock does not mention, the command's own lock has decided already. The lock of an entry
counts beside the one of its book: both must allow it. A superuser passes every lock.
"""

from collections.abc import Sequence
from typing import Any, Final

from evennia.locks.lockhandler import LockException, check_lockstring, validate_lockstring

from evennia_ai.commands.strict import CommandError
from evennia_ai.game.mind.viewers import allows

ACCESS: Final = ("view", "edit")
_TO_DO: Final = {"view": "see", "edit": "change"}


def lost_by(caller: Any, locks: str, access: Sequence[str] = ACCESS) -> str:
    """What `caller` could do no longer under this lock, in words; "" where it shuts nobody out."""
    lost = [_TO_DO[kind] for kind in access if not allows(caller, locks, kind)]
    return " nor ".join(lost)


def checked_locks(
    caller: Any, locks: str, *, access: Sequence[str] = ACCESS, thing: str = "lorebook"
) -> str:
    """`locks`, where Evennia can read them and they speak of these access types alone.

    `thing` is what they are to lock.
    """
    is_valid, problem = validate_lockstring(locks)
    if not is_valid:
        raise CommandError(f"{_plain(problem)} Nothing was changed.")
    types = [part.partition(":")[0].strip() for part in locks.split(";") if part.strip()]
    example = f"{access[-1]}:perm(Admin);{access[0]}:all()"
    for unknown in (kind for kind in types if kind not in access):
        raise CommandError(
            f"'{unknown}' is no access type of a {thing}; there are {' and '.join(access)}, as in"
            f" {example}. Nothing was changed."
        )
    if not types or len(set(types)) < len(types):
        raise CommandError(f"Name each access type once, as in {example}. Nothing was changed.")
    for kind in types:
        _try_out(caller, locks, kind, thing=thing)
    return locks


def _try_out(caller: Any, locks: str, kind: str, *, thing: str) -> None:
    """Ask the lock once, so that one that cannot be asked of such a thing is never stored."""
    try:
        check_lockstring(caller, locks, no_superuser_bypass=True, access_type=kind)
    except LockException as error:
        raise CommandError(f"{_plain(str(error))} Nothing was changed.") from error
    except Exception as error:  # a lock function of the game that wants an object in the world
        raise CommandError(
            f"The lock '{locks}' cannot be asked of a {thing} ({type(error).__name__}: {error});"
            " nothing was changed."
        ) from error


def _plain(problem: object) -> str:
    """Evennia's words about a bad lock as one sentence."""
    text = " ".join(str(problem).split()).removeprefix("Lock: ").rstrip(".")
    return f"The lock is refused: {text}."
