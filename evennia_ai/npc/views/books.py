"""Lorebooks as one viewer may see them, for commands and pages."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from evennia_ai.engine.lorebook.book import Lorebook
from evennia_ai.engine.lorebook.entry import LoreEntry
from evennia_ai.engine.prompt.components import Scope
from evennia_ai.engine.prompt.memo import Slot
from evennia_ai.engine.prompt.tokens import ESTIMATE
from evennia_ai.formats.lorebooks.editing.typed import place_in_words
from evennia_ai.npc.views.withheld.viewer import Viewer
from evennia_ai.store.authored.lorebooks import LOREBOOKS, StoredBook

_ENTRIES: Final = Slot[tuple["SeenEntry", ...]]("entries, as viewers see them")


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenEntry:
    """One entry of a lorebook."""

    uid: str
    name: str
    keys: tuple[str, ...]
    secondary_keys: tuple[str, ...]
    """The secondary keys, if the entry uses them."""
    logic: str
    enabled: bool
    constant: bool
    place: str
    """The position that the entry requests, in words."""
    order: float
    text: str
    tokens: int
    """The tokens of the text with its macros unexpanded."""

    def contains(self, wanted: str) -> bool:
        """True if the name, the ID, a key or the text contains these words, in any case."""
        texts = (self.name, self.uid, self.text, *self.keys, *self.secondary_keys)
        return any(wanted.casefold() in text.casefold() for text in texts)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenBook:
    """A lorebook with those of its entries that the viewer may see."""

    name: str
    revision: int
    mode: str
    scan_depth: int | None
    token_budget: int | None
    locks: str
    notices: tuple[str, ...]
    assigned: tuple[Scope, ...]
    """Where the book is assigned. The book inside a card has no assignment of its own."""
    entries: tuple[SeenEntry, ...]
    hidden: int
    """The number of entries that locks hide from the viewer."""


def see_book(
    stored: StoredBook, book: Lorebook, viewer: Viewer, *, locks: Mapping[str, str]
) -> SeenBook:
    """Return a book as a viewer may see it. `locks` has the locks of its entries by uid."""
    entries = _seen_entries(book)
    seen = entries
    if any(locks.values()):
        seen = tuple(one for one in entries if viewer.may_view(locks.get(one.uid, "")))
    return SeenBook(
        name=stored.name,
        revision=stored.revision,
        mode=book.mode,
        scan_depth=book.scan_depth,
        token_budget=book.token_budget,
        locks=stored.locks,
        notices=tuple(book.notices),
        assigned=tuple(LOREBOOKS.assigned_to(stored.name)),
        entries=seen,
        hidden=len(entries) - len(seen),
    )


def _see_entry(entry: LoreEntry) -> SeenEntry:
    return SeenEntry(
        uid=entry.uid,
        name=entry.name,
        keys=tuple(entry.keys),
        secondary_keys=tuple(entry.secondary_keys) if entry.selective else (),
        logic=entry.logic,
        enabled=entry.enabled,
        constant=entry.constant,
        place=place_in_words(entry),
        order=entry.order,
        text=entry.template.source,
        tokens=ESTIMATE.count(entry.template.source),
    )


def _seen_entries(book: Lorebook) -> tuple[SeenEntry, ...]:
    """Return all entries of a book. They are made once for each revision."""
    known = book.memo.get(_ENTRIES)
    if known is None:
        known = book.memo[_ENTRIES] = tuple(map(_see_entry, book.entries))
    return known
