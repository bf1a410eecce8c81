"""Actors: the person or program that changes something, with its rights at that moment.

A right is checked when a change is written, not when an editor, a form or a question is opened.
In between, a builder may lose a rank, be banned, or meet a new lock. So every function of the store
that changes something on request takes an `Actor` and checks it inside the transaction. The game
makes actors of accounts in `evennia_ai.npc.mind.actors`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, Literal

from evennia_ai.engine.errors import NotPermittedError

Access = Literal["view", "edit"]
ACCESS: Final[tuple[Access, ...]] = ("view", "edit")
"""The kinds of access to check before a change: the lock must allow both seeing and editing."""

_VERBS: Final = {"view": "see", "edit": "change"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """A person or a program that changes something. Actors with the same name are equal."""

    name: str
    """The name of the actor in revisions and logs."""
    why_not: Callable[[], str] = field(default=lambda: "", compare=False, repr=False)
    """Return why this actor may change nothing at this moment, or "" if the actor may."""
    passes: Callable[[str, Access], bool] = field(
        default=lambda _locks, _access: True, compare=False, repr=False
    )
    """Return True if a lock string gives this actor the access "view" or "edit" at this moment."""

    plays: Callable[[str], bool] = field(default=lambda _ref: True, compare=False, repr=False)
    """Return True if this actor plays the character with this reference at this moment."""

    def __str__(self) -> str:
        return self.name

    def check(self, doing: str) -> None:
        """Check that the actor currently has the right to change things.

        Args:
            doing: The change, for the error message.

        Raises:
            NotPermittedError: the actor may change nothing.
        """
        if why := self.why_not():
            raise NotPermittedError(doing, why)

    def check_locks(self, doing: str, what: str, locks: Iterable[str]) -> None:
        """Check that these locks let the actor see and change a thing.

        Args:
            doing: The change, for the error message.
            what: The thing, for the error message.
            locks: The lock strings on the thing. An empty lock string allows everything.

        Raises:
            NotPermittedError: one of the locks forbids it.
        """
        for lock in locks:
            for access in ACCESS:
                if lock and not self.passes(lock, access):
                    raise NotPermittedError(
                        doing, f"the lock of {what} does not let you {_VERBS[access]} it"
                    )

    def check_own(self, doing: str, character_ref: str) -> None:
        """Check that the actor plays this character now.

        Raises:
            NotPermittedError: another account plays it.
        """
        if not self.plays(character_ref):
            raise NotPermittedError(doing, "only the player of the character may do this")

    def sees(self, locks: str) -> bool:
        """True if a lock string lets the actor see the thing that it protects."""
        return not locks or self.passes(locks, "view")


def trusted(name: str) -> Actor:
    """Return an actor that may change everything.

    For the code of the game itself, for NPCs, and for the owner of the machine at its shell. Never
    make one for an account: use `evennia_ai.npc.mind.actors.actor_of`.
    """
    return Actor(name=name)


THE_GAME: Final = trusted("the game")
"""The actor for changes that the game makes by itself, such as indexing pages."""


def actor_without_rights(name: str) -> Actor:
    """Return an actor without any rights, for an author's name that was read from the database."""
    return Actor(name=name, why_not=lambda: f"{name} wrote this earlier and asks for nothing now")
