"""What entries are called: by label (`harbour#7`), by their name, by both."""

from collections.abc import Iterable, Mapping

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


def origins_called(wanted: str, names: Mapping[str, str]) -> list[str]:
    """The origins of the entries that `wanted` names: a name, `book#name` or `book/name`."""
    folded = wanted.removeprefix("lore:").casefold()
    return [origin for origin, name in names.items() if folded in _spellings(origin, name)]


def _spellings(origin: str, name: str) -> tuple[str, ...]:
    book = origin.removeprefix("lore:").rpartition("#")[0].casefold()
    called = name.casefold()
    return called, f"{book}#{called}", f"{book}/{called}"
