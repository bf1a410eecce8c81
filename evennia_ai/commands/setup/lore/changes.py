"""Edits of lorebooks: the JSON of a book is changed and stored as a revision.

A revision knows the revision it was made from. A long book is edited, parsed and stored in another
thread, and the edit takes effect when it is ready. The book inside a card is edited like a field of
the card, as a revision of the card.
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
from evennia_ai.engine.text.columns import clip_text
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
"""Turns a book's JSON into its edited JSON, or into None to remove the book of a card."""
Work = Generator[Any, Any, Any]
T = TypeVar("T")


@inlineCallbacks
def add_entry_to_book(work: CardWork, book: str, fields: Mapping[str, Any], *, by: Actor) -> Work:
    """Add an entry to the book of this name, which is created if needed. Fires with the entry."""
    stored = stored_book(book)
    # A removed entry keeps its lock and its uid, in case a revert brings it back.
    locked = entry_locks(stored) if stored else {}
    uids: list[str] = []

    def edit(data: Mapping[str, Any]) -> Mapping[str, Any]:
        with in_words_of(_new_label(book, fields)):
            after, uid = add_entry(data, fields, taken=locked)
        uids.append(uid)
        return after

    after = yield save_book_edit(work, stored or book, edit, by=by)
    return _entry(after, uids[0])


@inlineCallbacks
def change_entry_of_book(
    work: CardWork, found: OpenEntry, fields: Mapping[str, Any], *, by: Actor
) -> Work:
    """Change fields of an entry.

    Fires with the entry, or with `found` itself if nothing differs.
    """
    if _has_values(found.entry, fields):
        return found
    stored, uid = found.of.stored, found.entry.uid

    def edit(data: Mapping[str, Any]) -> Mapping[str, Any]:
        with in_words_of(found.label):
            return change_entry(data, uid, fields)

    after = yield save_book_edit(work, stored, edit, by=by)
    return found if after is stored else _entry(after, uid)


def remove_entry_of_book(work: CardWork, found: OpenEntry, *, by: Actor) -> Any:
    """Remove an entry. Fires with the book.

    The lock of the entry is kept, in case a revert brings the entry back.
    """
    return save_book_edit(work, found.of.stored, partial(remove_entry, uid=found.entry.uid), by=by)


def content_of(found: OpenEntry) -> str:
    """Return the content of an entry as it was written, with its decorators."""
    return content_at(json.loads(found.of.stored.source), found.entry.index)


def _new_label(book: str, fields: Mapping[str, Any]) -> str:
    return clip_text(f"{book}/{fields.get('name') or 'the new entry'}", 60)


def _has_values(entry: LoreEntry, fields: Mapping[str, Any]) -> bool:
    """True if an entry has these values already.

    Always False for `content`, because it may contain decorators. The entry does not show them.
    """
    said = entry_settings(entry)
    return "content" not in fields and all(
        name in said and said[name] == value for name, value in fields.items()
    )


@inlineCallbacks
def save_book_edit(work: CardWork, of: StoredBook | str, edit: Edit, *, by: Actor) -> Work:
    """Store an edit of a book. Fires with the stored book, the same object if nothing differs.

    `of` is the name of a book that does not exist yet, or the stored book. Fires with None if a
    card has no book any more.
    """
    stored = None if isinstance(of, str) else of
    name = of if isinstance(of, str) else of.name
    card = card_called(name)
    if card is not None:
        seen = replace(card, sha256=stored.sha256, revision=stored.revision) if stored else card
        after, _ = yield work.edited(seen, partial(_with_book, edit=edit), by=by)
        return stored if stored and after is seen else stored_book(OF_CARD + after.name)
    make = partial(_edited_book, name, stored.source if stored else "", edit, conf())
    if stored and len(stored.source) >= LONG:
        made = yield work.worked(f"Writing lorebook {name}", lambda _: make())
    else:
        made = make()
    if made is None:
        return stored
    text, book = made
    revision = stored.revision if stored else 0
    write = partial(store.save_book, name, text, by=by, seen_revision=revision)
    after = yield store_book(write, len(text.source))
    know_read(after, book)
    return after


def _edited_book(
    name: str, source: str, edit: Edit, given: Conf
) -> tuple[CheckedText, Lorebook] | None:
    """Return the edited text and book, or None if the edit changes nothing.

    A long book is also indexed for the turns to come. Any thread may call this.
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


def store_book(write: Callable[[], T], length: int) -> "T | Deferred[T]":
    """Call `write`, in another thread if it stores a text of at least `LONG` characters."""
    return runtime().writer.write(write) if length >= LONG else write()


def _with_book(card: Card, *, edit: Edit) -> Card:
    """Return the card with its own book edited, or with a new book.

    A book inside a card has no outer object with `spec` and `data`.
    """
    own = card.character_book
    made = edit(new_book(card.name) if own is None else dict(book_of_card(own)))
    return replace(card, character_book=None if made is None else unwrap_book(made))


def _entry(stored: StoredBook, uid: str) -> OpenEntry:
    book: OpenBook = opened(stored)
    entry = next(entry for entry in book.book.entries if entry.uid == uid)
    return OpenEntry(of=book, entry=entry)
