"""Which lore entries are hidden from a viewer by the locks of books and entries."""

from collections.abc import Mapping
from functools import cached_property
from typing import Final

from django.utils.crypto import salted_hmac

from evennia_ai.npc.views.withheld.viewer import Viewer
from evennia_ai.store.authored import lorebooks

_BOOK: Final = "book:"
_LORE: Final = "lore:"
_NOT_ALL: Final[frozenset[str]] = frozenset()
_PLACE: Final = "evennia_ai.hidden_lore"


def alias_of(origin: str) -> str:
    """Return the alias of a hidden entry.

    All pages of a game show the same alias, so that prompts can be compared. It is salted with the
    game's SECRET_KEY, so that nobody can guess the entry from it.
    """
    return f"{_LORE}(hidden {salted_hmac(_PLACE, origin).hexdigest()[:8]})"


class HiddenLore:
    """Decides which lore entries are hidden from one viewer."""

    def __init__(self, viewer: Viewer) -> None:
        self._may_view: Final = viewer.may_view

    @cached_property
    def _hidden(self) -> dict[str, frozenset[str] | None]:
        """Return the books with hidden entries: the uids of these entries, or None for all."""
        found: dict[str, frozenset[str] | None] = {}
        for name, (locks, of_entries) in lorebooks.all_locks().items():
            if not self._may_view(locks):
                found[name] = None
            elif hidden := [uid for uid, lock in of_entries.items() if not self._may_view(lock)]:
                found[name] = frozenset(hidden)
        return found

    @property
    def are_some(self) -> bool:
        """True if any entry is hidden from the viewer, which is rare."""
        return bool(self._hidden)

    def covers(self, origin: str) -> bool:
        """True if the viewer may not see the entry with this origin."""
        label = origin.removeprefix(_LORE)
        return any(
            self._covers(label[:at], label[at + 1 :])
            for at, letter in enumerate(label)
            if letter == "#"
        )

    def _covers(self, book: str, uid: str) -> bool:
        if book not in self._hidden:
            return False
        entries = self._hidden[book]
        return entries is None or uid in entries

    def shown_revisions(self, revisions: Mapping[str, str]) -> dict[str, str]:
        """Return the revisions of a prompt without those of hidden lore."""
        return {what: nr for what, nr in revisions.items() if not self._names_hidden(what)}

    def _names_hidden(self, what: str) -> bool:
        if what.startswith(_BOOK):
            return self._hidden.get(what.removeprefix(_BOOK), _NOT_ALL) is None
        return what.startswith(_LORE) and self.covers(what)
