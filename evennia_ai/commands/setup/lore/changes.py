"""Changes of books: the book's own JSON changed, and stored as a revision.

A revision knows which one it was made from. A change of a long book is made, read and written in a
thread, and counts once it is ready. The book inside a card is changed in a thread as any edit of a
card is, and as a revision of it.
"""

import json
from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from twisted.internet.defer import Deferred, inlineCallbacks

from evennia_ai.commands.background_work import CardWork
from evennia_ai.commands.setup.lore.named import (
    LONG,
    OF_CARD,
    OpenBook,
    OpenEntry,
    card_called,
    entry_locks,
    opened,
    stored_book,
    written,
)
from evennia_ai.engine.actors import Actor
from evennia_ai.engine.lorebook.book import Lorebook
from evennia_ai.engine.lorebook.entry import LoreEntry
from evennia_ai.engine.lorebook.scan.key_index import prepare_index
from evennia_ai.engine.text.columns import clipped
from evennia_ai.formats.cards.card import Card
from evennia_ai.formats.lorebooks.books import book_of_card, read_book, unwrap_book
from evennia_ai.formats.lorebooks.editing.edits import (
    add_entry,
    change_entry,
    content_at,
    entry_settings,
    new_book,
    remove_entry,
)
from evennia_ai.formats.lorebooks.editing.typed import in_words_of
from evennia_ai.npc.runtime import runtime
from evennia_ai.npc.views.parse_cache import know_read
from evennia_ai.services.settings.conf import conf
from evennia_ai.services.settings.game import Conf
from evennia_ai.store.authored import lorebooks as store
from evennia_ai.store.authored.lorebooks import CheckedText, StoredBook

Edit = Callable[[Mapping[str, Any]], Mapping[str, Any] | None]
"""What makes a book's JSON another one; None takes a card's own book away."""
Work = Generator[Any, Any, Any]
T = TypeVar("T")


@inlineCallbacks
def added(work: CardWork, book: str, fields: Mapping[str, Any], *, by: Actor) -> Work:
    """The entry that was added to the book of this name, which is made where it is not there."""
    stored = stored_book(book)
    # An entry that was removed has its lock still, for when it comes back.
    locked = entry_locks(stored) if stored else {}
    uids: list[str] = []

    def edit(data: Mapping[str, Any]) -> Mapping[str, Any]:
        with in_words_of(_new_label(book, fields)):
            after, uid = add_entry(data, fields, taken=locked)
        uids.append(uid)
        return after

    after = yield saved(work, stored or book, edit, by=by)
    return _entry(after, uids[0])


@inlineCallbacks
def changed(work: CardWork, found: OpenEntry, fields: Mapping[str, Any], *, by: Actor) -> Work:
    """The entry with other values; the same object where nothing was changed by them."""
    if _says(found.entry, fields):
        return found
    stored, uid = found.of.stored, found.entry.uid

    def edit(data: Mapping[str, Any]) -> Mapping[str, Any]:
        with in_words_of(found.label):
            return change_entry(data, uid, fields)

    after = yield saved(work, stored, edit, by=by)
    return found if after is stored else _entry(after, uid)


def removed(work: CardWork, found: OpenEntry, *, by: Actor) -> Any:
    """Fires with the book without the entry, whose lock stays for when a revert brings it back."""
    return saved(work, found.of.stored, partial(remove_entry, uid=found.entry.uid), by=by)


def content_of(found: OpenEntry) -> str:
    """The content of an entry as it is written, its decorators among it."""
    return content_at(json.loads(found.of.stored.source), found.entry.index)


def _new_label(book: str, fields: Mapping[str, Any]) -> str:
    return clipped(f"{book}/{fields.get('name') or 'the new entry'}", 60)


def _says(entry: LoreEntry, fields: Mapping[str, Any]) -> bool:
    """True if an entry says this already; a content may say more than the entry tells of it."""
    said = entry_settings(entry)
    return "content" not in fields and all(
        name in said and said[name] == value for name, value in fields.items()
    )


@inlineCallbacks
def saved(work: CardWork, of: StoredBook | str, edit: Edit, *, by: Actor) -> Work:
    """Fires with the book after an edit, the same object where it says so already.

    A name is that of a book that is not there yet. None where a card has no book any more.
    """
    stored = None if isinstance(of, str) else of
    name = of if isinstance(of, str) else of.name
    card = card_called(name)
    if card is not None:
        seen = replace(card, sha256=stored.sha256, revision=stored.revision) if stored else card
        after, _ = yield work.edited(seen, partial(_with_book, edit=edit), by=by)
        return stored if stored and after is seen else stored_book(OF_CARD + after.name)
    make = partial(_edited, name, stored.source if stored else "", edit, conf())
    if stored and len(stored.source) >= LONG:
        made = yield work.worked(f"Writing lorebook {name}", lambda _: make())
    else:
        made = make()
    if made is None:
        return stored
    text, book = made
    revision = stored.revision if stored else 0
    write = partial(store.save_book, name, text, by=by, seen_revision=revision)
    after = yield written_down(write, len(text.source))
    know_read(after, book)
    return after


def _edited(name: str, source: str, edit: Edit, given: Conf) -> tuple[CheckedText, Lorebook] | None:
    """The text and the book that an edit makes, in whatever thread; None: it says so already.

    A long one is ready for the turns to come.
    """
    before = json.loads(source) if source else new_book(name)
    data = edit(before)
    if data is None or (source and data == before):
        return None
    text = written(data, was=source)
    book = read_book(data, label=name)
    if len(text) >= LONG:
        prepare_index(book, rules=given.lore)
    return store.checked_text(name, text, most=given.max_source_characters), book


def written_down(write: Callable[[], T], length: int) -> "T | Deferred[T]":
    """What comes of storing a text of so many characters: a long one beside the game."""
    return runtime().writer.write(write) if length >= LONG else write()


def _with_book(card: Card, *, edit: Edit) -> Card:
    """The card with its own book edited, or with a new one; in a card no frame stands around it."""
    own = card.character_book
    made = edit(new_book(card.name) if own is None else dict(book_of_card(own)))
    return replace(card, character_book=None if made is None else unwrap_book(made))


def _entry(stored: StoredBook, uid: str) -> OpenEntry:
    book: OpenBook = opened(stored)
    entry = next(entry for entry in book.book.entries if entry.uid == uid)
    return OpenEntry(of=book, entry=entry)
