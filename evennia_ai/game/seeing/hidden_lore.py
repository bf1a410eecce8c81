"""Which entries of lorebooks the locks of books and entries hide from somebody.

A lock is for builders alone: what an NPC knows does not depend on it.
"""

from typing import Any

from evennia_ai.game.seeing.locks import allows
from evennia_ai.store import lorebooks as store


class HiddenLore:
    """Which entries the locks of books and entries hide from somebody."""

    def __init__(self, viewer: Any) -> None:
        self._viewer = viewer
        self._names = frozenset(store.book_names())
        self._books: dict[str, bool] = {}
        self._entries: dict[str, frozenset[str]] = {}

    def covers(self, origin: str) -> bool:
        """Whether the entry of this origin may not be seen."""
        label = origin.removeprefix("lore:")
        return any(
            self._covers_book(label[:at]) or label[at + 1 :] in self._entries[label[:at]]
            for at, letter in enumerate(label)
            if letter == "#"
        )

    def _covers_book(self, name: str) -> bool:
        if name not in self._books:
            is_stored = name in self._names
            locks = store.get_book(name).locks if is_stored else ""
            entries = store.entry_locks(name) if is_stored else {}
            self._books[name] = not allows(self._viewer, locks, "view")
            self._entries[name] = frozenset(
                uid for uid, lock in entries.items() if not allows(self._viewer, lock, "view")
            )
        return self._books[name]
