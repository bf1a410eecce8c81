"""Changes of books: the book's own JSON changed, and stored as a revision.

A revision knows which one it was made from. An entry of a long book is changed where it stands.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from evennia_ai.commands.base import CommandError
from evennia_ai.commands.setup.lore.named import LONG, OpenBook, OpenEntry, opened, written
from evennia_ai.commands.setup.lore.typed import member_in_words
from evennia_ai.errors import FormatError
from evennia_ai.lorebook.editing.edits import (
    add_entry,
    change_entry,
    fields_of,
    new_book,
    remove_entry,
)
from evennia_ai.lorebook.editing.in_place import Changed, changed_in_place
from evennia_ai.lorebook.entry import LoreEntry
from evennia_ai.lorebook.formats.books import in_order, unwrapped
from evennia_ai.minds.parse_cache import know_read
from evennia_ai.store.authored import lorebooks as store
from evennia_ai.store.authored.lorebooks import StoredBook
from evennia_ai.text.columns import clipped


def created_with(name: str, fields: Mapping[str, Any], *, by: str) -> OpenEntry:
    """The first entry of a new book, which is made with it or not at all."""
    with _in_words_of(_new_label(name, fields)):
        book, uid = add_entry(new_book(name), fields)
    return _entry(store.save_book(name, written(book), by=by, expected_revision=0), uid)


def added(stored: StoredBook, fields: Mapping[str, Any], *, by: str) -> OpenEntry:
    """The entry that was added to a book."""
    # An entry that was removed has its lock still, for when it comes back.
    locked = store.entry_locks(stored.name)
    with _in_words_of(_new_label(stored.name, fields)):
        book, uid = add_entry(json.loads(stored.source), fields, taken=locked)
    return _entry(saved(stored, book, by=by), uid)


def changed(found: OpenEntry, fields: Mapping[str, Any], *, by: str) -> OpenEntry:
    """The entry with other values; the same object where nothing was changed by them."""
    if _says(found.entry, fields):
        return found
    stored, uid = found.of.stored, found.entry.uid
    if len(stored.source) >= LONG:
        with _in_words_of(found.label):
            change = changed_in_place(found.of.book, stored.source, found.entry.index, fields)
        if change is not None:
            return found if change.is_same else _entry(_saved_in_place(stored, change, by=by), uid)
    before = json.loads(found.of.stored.source)
    with _in_words_of(found.label):
        after = change_entry(before, found.entry.uid, fields)
    if after == before:
        return found
    return _entry(saved(found.of.stored, after, by=by), found.entry.uid)


def removed(found: OpenEntry, *, by: str) -> StoredBook:
    """The book without the entry, whose lock stays for when a revert brings it back."""
    after = remove_entry(json.loads(found.of.stored.source), found.entry.uid)
    return saved(found.of.stored, after, by=by)


def content_of(found: OpenEntry) -> str:
    """The content of an entry as it is written, its decorators among it."""
    listed = unwrapped(json.loads(found.of.stored.source))["entries"]
    raw = list(in_order(listed))[found.entry.index][1]
    return str(raw.get("content") or "")


@contextmanager
def _in_words_of(label: str) -> Iterator[None]:
    """Have what is wrong with a field told of this entry, as its builder knows the field."""
    try:
        yield
    except FormatError as error:
        if not error.path:
            raise
        member = member_in_words(error.path)
        raise CommandError(f"{label}: {member} {error.problem}. Nothing was changed.") from error


def _new_label(book: str, fields: Mapping[str, Any]) -> str:
    return clipped(f"{book}/{fields.get('name') or 'the new entry'}", 60)


def _says(entry: LoreEntry, fields: Mapping[str, Any]) -> bool:
    """Whether an entry says this already; a content may say more than the entry tells of it."""
    said = fields_of(entry)
    return "content" not in fields and all(
        name in said and said[name] == value for name, value in fields.items()
    )


def saved(stored: StoredBook, data: Mapping[str, Any], *, by: str) -> StoredBook:
    text = written(data, was=stored.source)
    return store.save_book(stored.name, text, by=by, expected_revision=stored.revision)


def _saved_in_place(stored: StoredBook, change: Changed, *, by: str) -> StoredBook:
    """The book with the change, which is not read again for it."""
    after = store.save_book(
        stored.name,
        change.text,
        by=by,
        expected_revision=stored.revision,
        changed_part=change.piece,
    )
    know_read(after, change.book)
    return after


def _entry(stored: StoredBook, uid: str) -> OpenEntry:
    book: OpenBook = opened(stored)
    entry = next(entry for entry in book.book.entries if entry.uid == uid)
    return OpenEntry(of=book, entry=entry)
