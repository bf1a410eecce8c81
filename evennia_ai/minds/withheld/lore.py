"""Which lore the locks of books and entries hide from somebody who looks."""

from collections.abc import Mapping
from functools import cached_property
from typing import Final

from django.utils.crypto import salted_hmac

from evennia_ai.minds.withheld.viewer import Viewer
from evennia_ai.store.authored import lorebooks

_BOOK: Final = "book:"
_LORE: Final = "lore:"
_PLACE: Final = "evennia_ai.hidden_lore"


def alias_of(origin: str) -> str:
    """Return what a hidden entry is called in place of its book and uid.

    It is the same on every screen of a game, so that two prompts can be compared; the game's
    SECRET_KEY keeps anybody from trying names against it.
    """
    return f"{_LORE}(hidden {salted_hmac(_PLACE, origin).hexdigest()[:8]})"


class HiddenLore:
    """Which entries the locks of books and entries hide from somebody."""

    def __init__(self, viewer: Viewer) -> None:
        self._viewer = viewer
        self._names = frozenset(lorebooks.book_names())
        self._books: dict[str, bool] = {}
        self._entries: dict[str, frozenset[str]] = {}

    @cached_property
    def are_some(self) -> bool:
        """Whether anything of the game's lorebooks is hidden; mostly nothing is."""
        return any(self._covers_book(name) or self._entries[name] for name in self._names)

    def covers(self, origin: str) -> bool:
        """Whether the entry of this origin may not be seen."""
        label = origin.removeprefix(_LORE)
        return any(
            self._covers_book(label[:at]) or label[at + 1 :] in self._entries[label[:at]]
            for at, letter in enumerate(label)
            if letter == "#"
        )

    def shown_revisions(self, revisions: Mapping[str, str]) -> dict[str, str]:
        """Return the revisions a prompt was made from, without those of hidden lore."""
        return {what: nr for what, nr in revisions.items() if not self._names_hidden(what)}

    def _names_hidden(self, what: str) -> bool:
        if what.startswith(_BOOK):
            return self._covers_book(what.removeprefix(_BOOK))
        return what.startswith(_LORE) and self.covers(what)

    def _covers_book(self, name: str) -> bool:
        if name not in self._books:
            is_stored = name in self._names
            locks = lorebooks.get_book(name).locks if is_stored else ""
            entries = lorebooks.entry_locks(name) if is_stored else {}
            self._books[name] = not self._viewer.may_view(locks)
            self._entries[name] = frozenset(
                uid for uid, lock in entries.items() if not self._viewer.may_view(lock)
            )
        return self._books[name]
