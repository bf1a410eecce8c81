"""What builders' words mean in `lore`: a book, or an entry of a book, that they may see or change.

A book whose lock hides it is not there for those whom it hides it from. The book inside a card in
force is called `card:<card>`; it has no locks, and counts where the card is played.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, Final

from evennia_ai.commands.base import CommandError
from evennia_ai.commands.naming import name_and_rest
from evennia_ai.engine.errors import EvenniaAIError
from evennia_ai.engine.lorebook.book import Lorebook, entries_called
from evennia_ai.engine.lorebook.entry import LoreEntry
from evennia_ai.formats.lorebooks.books import book_of_card
from evennia_ai.npc.mind.viewers import lock_allows
from evennia_ai.npc.views.parse_cache import attached_book, own_book, parsed_card
from evennia_ai.store.authored import lorebooks as store
from evennia_ai.store.authored.cards import CARDS, StoredCard, card_or_none
from evennia_ai.store.authored.lorebooks import StoredBook

_MARKS: Final = "/#"
_BOOK: Final = re.compile(r'"character_book"\s*:\s*\{')
_MOST_NAMES: Final = 12
_MOST_COMPARED: Final = 2000
LONG: Final = 200_000
OF_CARD: Final = "card:"
"""What the name of a card's own book begins with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenBook:
    """A stored book, what it holds, and the locks of its entries by uid."""

    stored: StoredBook
    book: Lorebook
    entry_locks: Mapping[str, str]

    @property
    def name(self) -> str:
        """What it is stored as."""
        return self.stored.name


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenEntry:
    """An entry and the book it was found in."""

    of: OpenBook
    entry: LoreEntry

    @property
    def label(self) -> str:
        """Label and name, as builders read it."""
        return labelled(self.of.name, self.entry)


def labelled(book_name: str, entry: LoreEntry) -> str:
    """`book#uid`, with the entry's name where it has one."""
    name = f" ({entry.name})" if entry.name else ""
    return f"{book_name}#{entry.uid}{name}"


def visible_books(caller: Any) -> Iterator[StoredBook]:
    """The books that `caller` may see, by name."""
    for name in store.LOREBOOKS.list_keys():
        book = store.get_book(name)
        if lock_allows(caller, book.locks, "view"):
            yield book


def book_named(caller: Any, name: str) -> StoredBook:
    """The book of this name, written in whatever case, that `caller` may see."""
    book = stored_book(name)
    if book is None and name.startswith(OF_CARD):
        raise CommandError(_no_own_book(name))
    if book is None or not lock_allows(caller, book.locks, "view"):
        known = ", ".join(shown.name for shown in visible_books(caller))
        there = f"; there are {known}" if known else "; lore/create makes one"
        raise CommandError(f"There is no lorebook '{name}'{there}.")
    return book


def stored_book(name: str) -> StoredBook | None:
    """The book of this name in whatever case, None where there is none."""
    if (card := card_called(name)) is not None:
        return _of_card(card)
    exact = _stored_name(name, store.LOREBOOKS.list_keys())
    return None if exact is None else store.get_book(exact)


def card_called(name: str) -> StoredCard | None:
    """The card in force whose own book this is the name of, None for every other name."""
    if not name.startswith(OF_CARD):
        return None
    return card_or_none(CARDS.known_name(name.removeprefix(OF_CARD).strip()))


def books_of_cards() -> list[str]:
    """The names of the books inside the cards in force; no card is read for it."""
    cards = ((name, card_or_none(name)) for name in CARDS.list_keys())
    return [OF_CARD + name for name, card in cards if card and _BOOK.search(card.source)]


def refuse_card(name: str, why: str) -> None:
    """CommandError where the name is that of a card's own book, of which this cannot be done."""
    if name.startswith(OF_CARD):
        card = name.removeprefix(OF_CARD).strip()
        raise CommandError(f"{name} is the book inside a card: {why.format(card=card)}")


def revert_of(name: str) -> str:
    """The command that goes back to an earlier revision of a book, without the number."""
    card = card_called(name)
    return f"lore/revert {name}" if card is None else f"card/revert {card.name}"


def last_changed_by(name: str) -> str:
    """Who made the newest change of a book."""
    card = card_called(name)
    return (
        store.LOREBOOKS.last_changed_by(name) if card is None else CARDS.last_changed_by(card.name)
    )


def _of_card(card: StoredCard) -> StoredBook | None:
    """The book inside a card as a stored one: its revision is that of the card."""
    own = parsed_card(card).character_book
    if own is None:
        return None
    name, source = OF_CARD + card.name, json.dumps(book_of_card(own), ensure_ascii=False)
    return StoredBook(name=name, source=source, sha256=card.sha256, revision=card.revision)


def _no_own_book(name: str) -> str:
    card = CARDS.known_name(name.removeprefix(OF_CARD).strip())
    if card_or_none(card) is not None:
        return f"Card {card} has no book yet; lore/create {OF_CARD}{card}/<entry> makes it."
    waits = f"; card/approve {card} puts in force what waits" if CARDS.waiting(card) else ""
    return f"There is no card '{card}' in force{waits}. Nothing was changed."


def book_to_change(caller: Any, name: str) -> StoredBook:
    """The book of this name, where `caller` may change it."""
    book = book_named(caller, name)
    if not lock_allows(caller, book.locks, "edit"):
        raise CommandError(
            f"You may not change lorebook '{book.name}': its lock is {book.locks}."
            " Nothing was changed."
        )
    return book


def whole_book_to_change(caller: Any, name: str) -> StoredBook:
    """The same, where `caller` may change each of its entries too."""
    book = book_to_change(caller, name)
    for uid, locks in locks_there(book).items():
        if not lock_allows(caller, locks, "edit"):
            raise CommandError(
                f"You may not change all of lorebook '{book.name}': the lock of entry {uid} is"
                f" {locks}. Nothing was changed."
            )
    return book


def entry_count(book: StoredBook) -> int:
    """How many entries a book has; what they are is not looked at."""
    given = json.loads(book.source)
    inner = given.get("data") if given.get("spec") == "lorebook_v3" else given
    entries = inner.get("entries") if isinstance(inner, dict) else None
    return len(entries) if isinstance(entries, list | dict) else 0


def locks_there(stored: StoredBook) -> Mapping[str, str]:
    """The locks of the entries that a book has now; of all it ever had where it is unreadable."""
    locks = entry_locks(stored)
    try:
        there = {entry.uid for entry in _read(stored).entries} if locks else set()
    except EvenniaAIError:
        return locks
    return {uid: lock for uid, lock in locks.items() if uid in there}


def opened(stored: StoredBook) -> OpenBook:
    """The book with what it holds. FormatError: its text cannot be read as a book."""
    return OpenBook(stored=stored, book=_read(stored), entry_locks=entry_locks(stored))


def entry_locks(stored: StoredBook) -> Mapping[str, str]:
    """The locks of a book's entries by their uid, also of those that were removed."""
    return {} if card_called(stored.name) else store.entry_locks(stored.name)


def entry_named(caller: Any, text: str) -> OpenEntry:
    """The entry that `<book>/<uid or name>` or `<book>#<uid or name>` means."""
    book, wanted = split(text)
    if not wanted:
        raise CommandError(f"Name an entry of lorebook '{text}': {text}/<uid or name>.")
    return entry_in(caller, opened(book_named(caller, book)), wanted)


def entry_to_change(caller: Any, text: str) -> OpenEntry:
    """The same, where `caller` may change the book and the entry."""
    found = entry_named(caller, text)
    book_to_change(caller, found.of.name)
    locks = found.of.entry_locks.get(found.entry.uid, "")
    if not lock_allows(caller, locks, "edit"):
        raise CommandError(
            f"You may not change {found.label}: its lock is {locks}. Nothing was changed."
        )
    return found


def entry_in(caller: Any, book: OpenBook, wanted: str) -> OpenEntry:
    """The one entry of `book` that `wanted` names and `caller` may see."""
    named = [e for e in entries_called(book.book, wanted) if may_see(caller, book, e.uid)]
    if not named:
        raise CommandError(_nobody(caller, book, wanted))
    if len(named) > 1:
        which = ", ".join(labelled(book.name, entry) for entry in named[:_MOST_NAMES])
        raise CommandError(f"'{wanted}' could be {which}; name one by what stands behind the #.")
    return OpenEntry(of=book, entry=named[0])


def may_see(caller: Any, book: OpenBook, uid: str) -> bool:
    """True if `caller` may see this entry of a book that is visible."""
    return lock_allows(caller, book.entry_locks.get(uid, ""), "view")


def split(text: str) -> tuple[str, str]:
    """The book and the entry that `text` names, "" for no entry.

    A book's name may hold a mark itself, so the longest name that is a book's counts.
    """
    names = store.LOREBOOKS.list_keys()
    return name_and_rest(
        text,
        lambda name: card_called(name) is not None or _stored_name(name, names) is not None,
        marks=_MARKS,
    )


def written(data: Mapping[str, Any], *, was: str = "") -> str:
    """JSON text, in lines for people unless the text before was long."""
    indent = 2 if len(was) < LONG else None  # lines make the writing several times slower
    return json.dumps(data, ensure_ascii=False, allow_nan=False, indent=indent)


def _read(stored: StoredBook) -> Lorebook:
    card = card_called(stored.name)
    if card is not None and (own := own_book(card)) is not None:
        return own
    return attached_book(replace(stored, scope=None))


def _stored_name(name: str, names: Collection[str]) -> str | None:
    """The name as it is stored: the same, else the only one that differs in case alone."""
    same = [known for known in names if known.casefold() == name.casefold()]
    if name in names:
        return name
    return same[0] if len(same) == 1 else None


def _nobody(caller: Any, book: OpenBook, wanted: str) -> str:
    seen = [entry for entry in book.book.entries if may_see(caller, book, entry.uid)]
    known = {word: entry for entry in seen[:_MOST_COMPARED] for word in (entry.uid, entry.name)}
    near = [known[word] for word in get_close_matches(wanted, known, n=4, cutoff=0.5)]
    few = list(dict.fromkeys(near)) or seen[:_MOST_NAMES]
    listed = ", ".join(labelled(book.name, entry) for entry in few)
    end = f"{'near it are' if near else 'there are'} {listed}" if listed else "it has none"
    return f"Lorebook '{book.name}' has no entry '{wanted}'; {end}."
