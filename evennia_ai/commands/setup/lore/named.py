"""Resolve what builders type in `lore`: a book, or an entry of a book.

If a lock hides a book from a builder, it does not exist for that builder. The book inside a card in
force is called `card:<card>`. It has no locks and is used where the card is played.
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
from evennia_ai.engine.lorebook.book import Lorebook, find_entries
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
"""The beginning of the name of a book inside a card."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenBook:
    """A stored book, its parsed entries, and the locks of its entries by uid."""

    stored: StoredBook
    book: Lorebook
    entry_locks: Mapping[str, str]

    @property
    def name(self) -> str:
        """Return the name under which the book is stored."""
        return self.stored.name


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenEntry:
    """An entry and its book."""

    of: OpenBook
    entry: LoreEntry

    @property
    def label(self) -> str:
        """Return the label and the name of the entry, as builders read it."""
        return labelled(self.of.name, self.entry)


def labelled(book_name: str, entry: LoreEntry) -> str:
    """Return `book#uid`, with the entry's name if it has one."""
    name = f" ({entry.name})" if entry.name else ""
    return f"{book_name}#{entry.uid}{name}"


def visible_books(caller: Any) -> Iterator[StoredBook]:
    """Return the books that `caller` may see, by name."""
    for name in store.LOREBOOKS.list_keys():
        book = store.get_book(name)
        if lock_allows(caller, book.locks, "view"):
            yield book


def book_named(caller: Any, name: str) -> StoredBook:
    """Return the book of this name, if `caller` may see it. The case of letters is ignored."""
    book = stored_book(name)
    if book is None and name.startswith(OF_CARD):
        raise CommandError(_no_own_book(name))
    if book is None or not lock_allows(caller, book.locks, "view"):
        known = ", ".join(shown.name for shown in visible_books(caller))
        there = f"; there are {known}" if known else "; lore/create makes one"
        raise CommandError(f"There is no lorebook '{name}'{there}.")
    return book


def stored_book(name: str) -> StoredBook | None:
    """Return the book of this name, or None. The case of letters is ignored."""
    if (card := card_called(name)) is not None:
        return _of_card(card)
    exact = _stored_name(name, store.LOREBOOKS.list_keys())
    return None if exact is None else store.get_book(exact)


def card_called(name: str) -> StoredCard | None:
    """Return the current card whose own book has this name, or None."""
    if not name.startswith(OF_CARD):
        return None
    return card_or_none(CARDS.known_name(name.removeprefix(OF_CARD).strip()))


def books_of_cards() -> list[str]:
    """Return the names of the books inside current cards. The cards are not parsed for it."""
    cards = ((name, card_or_none(name)) for name in CARDS.list_keys())
    return [OF_CARD + name for name, card in cards if card and _BOOK.search(card.source)]


def refuse_card(name: str, why: str) -> None:
    """Raise CommandError, with the reason `why`, if the name is that of a book inside a card."""
    if name.startswith(OF_CARD):
        card = name.removeprefix(OF_CARD).strip()
        raise CommandError(f"{name} is the book inside a card: {why.format(card=card)}")


def revert_of(name: str) -> str:
    """Return the command that reverts a book, without the number of a revision."""
    card = card_called(name)
    return f"lore/revert {name}" if card is None else f"card/revert {card.name}"


def last_changed_by(name: str) -> str:
    """Return who made the newest change of a book."""
    card = card_called(name)
    return (
        store.LOREBOOKS.last_changed_by(name) if card is None else CARDS.last_changed_by(card.name)
    )


def _of_card(card: StoredCard) -> StoredBook | None:
    """Return the book inside a card as a stored book with the revision of the card."""
    own = parsed_card(card).character_book
    if own is None:
        return None
    name, source = OF_CARD + card.name, json.dumps(book_of_card(own), ensure_ascii=False)
    return StoredBook(name=name, source=source, sha256=card.sha256, revision=card.revision)


def _no_own_book(name: str) -> str:
    card = CARDS.known_name(name.removeprefix(OF_CARD).strip())
    if card_or_none(card) is not None:
        return f"Card {card} has no book yet; lore/create {OF_CARD}{card}/<entry> makes it."
    waits = f"; card/approve {card} approves the waiting import" if CARDS.waiting(card) else ""
    return f"There is no approved card '{card}'{waits}. Nothing was changed."


def book_to_change(caller: Any, name: str) -> StoredBook:
    """Return the book of this name, if `caller` may change it."""
    book = book_named(caller, name)
    if not lock_allows(caller, book.locks, "edit"):
        raise CommandError(
            f"You may not change lorebook '{book.name}': its lock is {book.locks}."
            " Nothing was changed."
        )
    return book


def whole_book_to_change(caller: Any, name: str) -> StoredBook:
    """Return the book of this name, if `caller` may change it and all of its entries."""
    book = book_to_change(caller, name)
    for uid, locks in locks_there(book).items():
        if not lock_allows(caller, locks, "edit"):
            raise CommandError(
                f"You may not change all of lorebook '{book.name}': the lock of entry {uid} is"
                f" {locks}. Nothing was changed."
            )
    return book


def entry_count(book: StoredBook) -> int:
    """Return the number of a book's entries, without parsing them."""
    given = json.loads(book.source)
    inner = given.get("data") if given.get("spec") == "lorebook_v3" else given
    entries = inner.get("entries") if isinstance(inner, dict) else None
    return len(entries) if isinstance(entries, list | dict) else 0


def locks_there(stored: StoredBook) -> Mapping[str, str]:
    """Return the locks of the entries that exist now, or all locks if the book is unreadable."""
    locks = entry_locks(stored)
    try:
        there = {entry.uid for entry in _read(stored).entries} if locks else set()
    except EvenniaAIError:
        return locks
    return {uid: lock for uid, lock in locks.items() if uid in there}


def opened(stored: StoredBook) -> OpenBook:
    """Return the book with its parsed entries and their locks.

    Raises:
        FormatError: Its text cannot be read as a book.
    """
    return OpenBook(stored=stored, book=_read(stored), entry_locks=entry_locks(stored))


def entry_locks(stored: StoredBook) -> Mapping[str, str]:
    """Return the locks of a book's entries by uid, including those of removed entries."""
    return {} if card_called(stored.name) else store.entry_locks(stored.name)


def entry_named(caller: Any, text: str) -> OpenEntry:
    """Return the entry that `<book>/<uid or name>` or `<book>#<uid or name>` names."""
    book, wanted = split(text)
    if not wanted:
        raise CommandError(f"Name an entry of lorebook '{text}': {text}/<uid or name>.")
    return entry_in(caller, opened(book_named(caller, book)), wanted)


def entry_to_change(caller: Any, text: str) -> OpenEntry:
    """Return the named entry, if `caller` may change the book and the entry."""
    found = entry_named(caller, text)
    book_to_change(caller, found.of.name)
    locks = found.of.entry_locks.get(found.entry.uid, "")
    if not lock_allows(caller, locks, "edit"):
        raise CommandError(
            f"You may not change {found.label}: its lock is {locks}. Nothing was changed."
        )
    return found


def entry_in(caller: Any, book: OpenBook, wanted: str) -> OpenEntry:
    """Return the only entry of `book` that `wanted` names and `caller` may see."""
    named = [e for e in find_entries(book.book, wanted) if may_see(caller, book, e.uid)]
    if not named:
        raise CommandError(_nobody(caller, book, wanted))
    if len(named) > 1:
        which = ", ".join(labelled(book.name, entry) for entry in named[:_MOST_NAMES])
        raise CommandError(
            f"'{wanted}' could be {which}; name one by its id, which is after the #."
        )
    return OpenEntry(of=book, entry=named[0])


def may_see(caller: Any, book: OpenBook, uid: str) -> bool:
    """True if `caller` may see this entry of a visible book."""
    return lock_allows(caller, book.entry_locks.get(uid, ""), "view")


def split(text: str) -> tuple[str, str]:
    """Split `text` into the book and the entry, "" for no entry.

    A book's name may contain a mark, so the longest beginning that is a book's name counts.
    """
    names = store.LOREBOOKS.list_keys()
    return name_and_rest(
        text,
        lambda name: card_called(name) is not None or _stored_name(name, names) is not None,
        marks=_MARKS,
    )


def written(data: Mapping[str, Any], *, was: str = "") -> str:
    """Return JSON text, indented for people unless the text before was long."""
    # Indentation makes writing several times slower.
    indent = 2 if len(was) < LONG else None
    return json.dumps(data, ensure_ascii=False, allow_nan=False, indent=indent)


def _read(stored: StoredBook) -> Lorebook:
    card = card_called(stored.name)
    if card is not None and (own := own_book(card)) is not None:
        return own
    return attached_book(replace(stored, scope=None))


def _stored_name(name: str, names: Collection[str]) -> str | None:
    """Return the stored name: the same, or the only one that differs only in case."""
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
    end = f"{'similar are' if near else 'there are'} {listed}" if listed else "it has none"
    return f"Lorebook '{book.name}' has no entry '{wanted}'; {end}."
