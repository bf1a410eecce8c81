"""Actors: who changes something, and whether they may do so at the moment of the change.

A right is checked when a change is written, not when an editor, a form or a question is opened.
Between the two a builder may lose a rank, be banned, or find a new lock. So every function of the
store that changes something on request takes an `Actor` and asks it inside the transaction. What
the answer is made of belongs to the game (`evennia_ai.npc.mind.actors`).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, Literal

from evennia_ai.engine.errors import NotPermittedError

Access = Literal["view", "edit"]
ACCESS: Final[tuple[Access, ...]] = ("view", "edit")
"""What a lock must allow before somebody changes the thing it is on."""

_VERBS: Final = {"view": "see", "edit": "change"}


def _no_objection() -> str:
    return ""


def _plays_anybody(_ref: str) -> bool:
    return True


def _passes_every_lock(_locks: str, _access: Access) -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Somebody who changes something. Two actors are equal if their names are."""

    name: str
    """The name that revisions and logs keep."""
    why_not: Callable[[], str] = field(default=_no_objection, compare=False, repr=False)
    """Returns why this actor may change nothing now, or "" if they may."""
    passes: Callable[[str, Access], bool] = field(
        default=_passes_every_lock, compare=False, repr=False
    )
    """True if a lock string allows this actor an access now."""

    plays: Callable[[str], bool] = field(default=_plays_anybody, compare=False, repr=False)
    """True if this actor plays the character of this reference now."""

    def __str__(self) -> str:
        return self.name

    def check(self, doing: str) -> None:
        """Raise NotPermittedError if the actor may change nothing now; `doing` names the change."""
        if why := self.why_not():
            raise NotPermittedError(doing, why)

    def check_locks(self, doing: str, what: str, locks: Iterable[str]) -> None:
        """Raise NotPermittedError if one of the locks of `what` forbids to see or to change it."""
        for lock in locks:
            for access in ACCESS:
                if lock and not self.passes(lock, access):
                    raise NotPermittedError(
                        doing, f"the lock of {what} does not let you {_VERBS[access]} it"
                    )

    def check_own(self, doing: str, character_ref: str) -> None:
        """Raise NotPermittedError if the actor does not play this character now."""
        if not self.plays(character_ref):
            raise NotPermittedError(doing, "only who plays the character may do this")

    def sees(self, locks: str) -> bool:
        """True if a lock string lets the actor see what it is on."""
        return not locks or self.passes(locks, "view")


def trusted(name: str) -> Actor:
    """Return an actor that may change everything.

    For the code of the game itself, for NPCs, and for the owner of the machine at its shell. Never
    make one for an account: `evennia_ai.npc.mind.actors.actor_of` does that.
    """
    return Actor(name=name)


THE_GAME: Final = trusted("the game")
"""The actor of what the game does by itself, such as indexing pages again."""


def author(name: str) -> Actor:
    """Return an actor that is only a name read from the database, and may change nothing."""
    return Actor(name=name, why_not=lambda: f"{name} wrote this earlier and asks for nothing now")
