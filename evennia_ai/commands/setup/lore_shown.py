"""How lorebooks look to a builder: the books, the entries of one in pages, one entry in full."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from evennia.utils.search import search_object

from evennia_ai.commands.setup.lore_fields import (
    UNUSED,
    in_words,
    place_in_words,
    said_of,
)
from evennia_ai.commands.setup.lore_named import OpenBook, OpenEntry
from evennia_ai.commands.strict import CommandError
from evennia_ai.lorebook.entry import LoreEntry
from evennia_ai.lorebook.formats.fields import TYPED_FIELDS
from evennia_ai.prompt.components import Scope
from evennia_ai.prompt.tokens import ESTIMATE
from evennia_ai.store import lorebooks as store
from evennia_ai.store.lorebooks import StoredBook
from evennia_ai.text.columns import WIDTH, clipped, padded, visible, wrapped

PAGE: Final = 30
_BOOK_COLUMNS: Final = 24
_UID_COLUMNS: Final = 8
_NAME_COLUMNS: Final = 20
_PLACE_COLUMNS: Final = 16
_MOST_NOTICES: Final = 6
_UNSET: Final = ("off", "none", "0", "100", in_words(None), UNUSED)


def listed(books: Iterable[StoredBook]) -> list[str]:
    """The books: how many entries each has, which revision it is, where it counts."""
    lines = [f"{padded('lorebook', _BOOK_COLUMNS)} entries revision  attached to", "-" * WIDTH]
    for book in books:
        name = padded(visible(book.name), _BOOK_COLUMNS)
        where = ", ".join(scope_in_words(scope) for scope in store.attachments(book.name))
        row = f"{name} {entry_count(book):7} {book.revision:8}  {where or 'nothing'}"
        lines.append(clipped(visible(row), WIDTH))
    return lines


def entry_count(book: StoredBook) -> int:
    """How many entries a book has; what they are is not looked at."""
    given = json.loads(book.source)
    inner = given.get("data") if given.get("spec") == "lorebook_v3" else given
    entries = inner.get("entries") if isinstance(inner, dict) else None
    return len(entries) if isinstance(entries, list | dict) else 0


def entries_in_words(count: int) -> str:
    """So many entries."""
    return "1 entry" if count == 1 else f"{count} entries"


def shown(book: OpenBook, entries: Sequence[LoreEntry], *, page: int) -> list[str]:
    """A book and one page of its entries, those that whoever looks may see."""
    pages = max(1, -(-len(entries) // PAGE))
    if not 1 <= page <= pages:
        raise CommandError(f"Lorebook '{book.name}' has the pages 1 to {pages}, no page {page}.")
    first = (page - 1) * PAGE
    lines = [*_head(book, len(entries)), "", _ENTRY_HEAD, "-" * WIDTH]
    lines += [_row(entry) for entry in entries[first : first + PAGE]]
    if page < pages:
        lines.append(f"Page {page} of {pages}; the next one is: lore {book.name} = {page + 1}")
    return lines


def entry_shown(found: OpenEntry) -> list[str]:
    """One entry in full."""
    entry, locks = found.entry, found.of.entry_locks.get(found.entry.uid, "")
    logic = f" ({entry.logic.replace('_', ' ')})" if entry.secondary_keys else ""
    lines = [
        *_wrapped(f"{found.label}, {'on' if entry.enabled else 'off'}"),
        *_titled("keys", ", ".join(entry.keys) or "none"),
        *_titled("secondary", (", ".join(entry.secondary_keys) or "none") + logic),
        *_titled("stands", f"{place_in_words(entry)}, order {entry.order:g}"),
        *_titled("also", ", ".join(_set_fields(entry)) or "nothing else is set"),
        *(_titled("lock", locks) if locks else []),
        *(_titled("never used", entry.refused) if entry.refused else []),
    ]
    for condition in entry.conditions:
        lines += _titled("only if", str(condition))
    for name, written in entry.decorators:
        lines += _titled("decorator", f"@@{name} {', '.join(written)}".rstrip())
    text = entry.template.source
    if not text.strip():
        return [*lines, "  no content: it is never active"]
    return [*lines, f"  content, about {ESTIMATE.count(text)} tokens:", "", text]


def scope_in_words(scope: Scope) -> str:
    """A place of a lorebook as a command takes it, with the name of an object."""
    if scope.kind in ("game", "zone", "faction"):
        return str(scope)
    found = search_object(f"#{scope.ref}")
    name = found[0].key if found else "gone"
    return f"{scope.kind}:#{scope.ref} ({name})"


_ENTRY_HEAD: Final = (
    f"{padded('id', _UID_COLUMNS)} {padded('name', _NAME_COLUMNS)}"
    f" {padded('stands', _PLACE_COLUMNS)} order  keys"
)


def _head(book: OpenBook, seen: int) -> Iterator[str]:
    stored, held = book.stored, book.book
    where = ", ".join(scope_in_words(scope) for scope in store.attachments(stored.name))
    hidden = len(held.entries) - seen
    more = f", {hidden} more hidden by locks" if hidden else ""
    count = entries_in_words(seen)
    yield from _wrapped(f"Lorebook {stored.name}, revision {stored.revision}, {count}{more}")
    yield from _titled("attached to", where or "nothing; lore/attach lets it count")
    for title, value in (("scan depth", held.scan_depth), ("budget", held.token_budget)):
        if value is not None:
            yield from _titled(title, str(value))
    if held.mode != "floating":
        yield from _titled("mode", held.mode)
    if stored.locks:
        yield from _titled("lock", stored.locks)
    for notice in held.notices[:_MOST_NOTICES]:
        yield from _titled("note", notice)


def _row(entry: LoreEntry) -> str:
    uid = padded(visible(entry.uid), _UID_COLUMNS)
    name = padded(visible(entry.name) or "-", _NAME_COLUMNS)
    place = padded(visible(place_in_words(entry)), _PLACE_COLUMNS)
    keys = "always" if entry.constant else ", ".join(entry.keys) or "no keys"
    state = "" if entry.enabled else "(off) "
    return clipped(f"{uid} {name} {place} {entry.order:5g}  {visible(state + keys)}", WIDTH)


def _set_fields(entry: LoreEntry) -> Iterator[str]:
    """The other fields that say something."""
    for word, field in TYPED_FIELDS.items():
        value = in_words(said_of(field, entry))
        if value not in _UNSET and word not in ("name", "place", "role"):
            yield f"{word} {value}"


def _titled(title: str, text: str) -> list[str]:
    first, *others = wrapped(text, WIDTH - 16)
    return [f"  {title:13} {first}", *(f"{'':16}{line}" for line in others)]


def _wrapped(text: str) -> list[str]:
    first, *others = wrapped(text, WIDTH - 4)
    return [first, *(f"    {line}" for line in others)]
