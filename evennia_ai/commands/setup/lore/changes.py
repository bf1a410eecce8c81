"""Changes of a book's own JSON, stored as a revision that knows which one it was made from.

The content of an entry is edited in Evennia's line editor. As for components, the editor survives a
reload: its functions are kept by their import path and what it edits in an attribute of the
builder. Locks are asked again when it saves.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from evennia.utils.eveditor import EvEditor

from evennia_ai.commands.setup.component_editor import CATEGORY, forget_edited
from evennia_ai.commands.setup.lore.named import OpenBook, OpenEntry, entry_to_change, opened
from evennia_ai.commands.setup.lore.shown import member_in_words
from evennia_ai.commands.shown import shown_line
from evennia_ai.commands.strict import CommandError
from evennia_ai.errors import EditConflictError, EvenniaAIError, FormatError
from evennia_ai.lorebook.book import BookMode
from evennia_ai.lorebook.editing.edits import (
    add_entry,
    change_entry,
    fields_of,
    new_book,
    remove_entry,
    with_mode,
)
from evennia_ai.lorebook.entry import LoreEntry
from evennia_ai.lorebook.formats.books import in_order, unwrapped
from evennia_ai.store.authored import lorebooks as store
from evennia_ai.store.authored.lorebooks import StoredBook
from evennia_ai.text.columns import clipped

LONG: Final = 200_000


def created(name: str, *, by: str) -> StoredBook:
    """A new book without entries."""
    return store.save_book(name, written(new_book(name)), by=by, expected_revision=0)


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
    return _entry(_saved(stored, book, by=by), uid)


def changed(found: OpenEntry, fields: Mapping[str, Any], *, by: str) -> OpenEntry:
    """The entry with other values; the same object where nothing was changed by them."""
    if _says(found.entry, fields):
        return found
    before = json.loads(found.of.stored.source)
    with _in_words_of(found.label):
        after = change_entry(before, found.entry.uid, fields)
    if after == before:
        return found
    return _entry(_saved(found.of.stored, after, by=by), found.entry.uid)


def removed(found: OpenEntry, *, by: str) -> StoredBook:
    """The book without the entry, whose lock stays for when a revert brings it back."""
    after = remove_entry(json.loads(found.of.stored.source), found.entry.uid)
    return _saved(found.of.stored, after, by=by)


def in_mode(stored: StoredBook, mode: BookMode, *, by: str) -> StoredBook:
    """The book in another mode; the same object where it is in that mode already."""
    if opened(stored).book.mode == mode:
        return stored
    return _saved(stored, with_mode(json.loads(stored.source), mode), by=by)


def content_of(found: OpenEntry) -> str:
    """The content of an entry as it is written, its decorators among it."""
    listed = unwrapped(json.loads(found.of.stored.source))["entries"]
    raw = list(in_order(listed))[found.entry.index][1]
    return str(raw.get("content") or "")


def written(data: Mapping[str, Any], *, was: str = "") -> str:
    """JSON text, in lines for people unless the text before was long."""
    indent = 2 if len(was) < LONG else None  # lines make the writing several times slower
    return json.dumps(data, ensure_ascii=False, allow_nan=False, indent=indent)


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


def _saved(stored: StoredBook, data: Mapping[str, Any], *, by: str) -> StoredBook:
    text = written(data, was=stored.source)
    return store.save_book(stored.name, text, by=by, expected_revision=stored.revision)


def _entry(stored: StoredBook, uid: str) -> OpenEntry:
    book: OpenBook = opened(stored)
    entry = next(entry for entry in book.book.entries if entry.uid == uid)
    return OpenEntry(of=book, entry=entry)


ATTRIBUTE: Final = "edited_lore"


def open_editor(caller: Any, found: OpenEntry, *, by: str) -> None:
    """Open the line editor on the content of an entry for `caller`."""
    _remember(caller, found, by=by)
    EvEditor(
        caller,
        loadfunc=load_content,
        savefunc=save_content,
        quitfunc=leave_editor,
        key=shown_line(found.label),
        persistent=True,
    )


def load_content(caller: Any) -> str:
    """The content as it was when the editor was opened, for EvEditor."""
    return content_of(_found(caller, _edited(caller)))


def save_content(caller: Any, text: str) -> bool:
    """Store the editor's text; true where it was stored, for EvEditor."""
    edited = _edited(caller)
    try:
        found = _found(caller, edited)
        _refuse_stale(found, edited["revision"])
        saved = changed(found, {"content": text}, by=edited["by"])
    except EvenniaAIError as error:
        edited["refused"] = text
        caller.msg(shown_line(f"Not saved: {error}"))
        return False
    _remember(caller, saved, by=edited["by"])
    caller.msg(shown_line(f"Saved {saved.label} as revision {saved.of.stored.revision}."))
    return True


def leave_editor(caller: Any) -> None:
    """Forget what was edited, for EvEditor."""
    forget_edited(caller, ATTRIBUTE)


def _refuse_stale(found: OpenEntry, seen: int) -> None:
    """Refuse to write over a book that is not the one that was loaded."""
    stored = found.of.stored
    if stored.revision != seen:
        by = store.book_revisions(stored.name)[-1].changed_by
        raise EditConflictError(f"lorebook '{stored.name}'", seen, stored.revision, by)


def _found(caller: Any, edited: Any) -> OpenEntry:
    return entry_to_change(caller, f"{edited['book']}#{edited['uid']}")


def _remember(caller: Any, found: OpenEntry, *, by: str) -> None:
    edited = {
        "book": found.of.name,
        "uid": found.entry.uid,
        "revision": found.of.stored.revision,
        "by": by,
    }
    caller.attributes.add(ATTRIBUTE, edited, category=CATEGORY)


def _edited(caller: Any) -> Any:
    return caller.attributes.get(ATTRIBUTE, category=CATEGORY)
