"""What entries are called: by id, by name, by their origin in verdicts."""

from collections.abc import Iterable

from evennia_ai.lorebook.books import Lorebook
from evennia_ai.lorebook.entries import LoreEntry


def names_of(books: Iterable[Lorebook]) -> dict[str, str]:
    """For each entry's origin in verdicts its name, where it has one."""
    return {entry.origin: entry.name for book in books for entry in book.entries if entry.name}


def entries_called(book: Lorebook, wanted: str) -> list[LoreEntry]:
    """The entry of this id, else those of this name in whatever case, in the book's order."""
    by_uid = [entry for entry in book.entries if entry.uid == wanted]
    folded = wanted.casefold()
    return by_uid or [entry for entry in book.entries if entry.name.casefold() == folded]
