"""Compare two versions of a lorebook, in the words that builders use.

Standalone books and books inside cards are compared in the same way.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.lorebook.entry import LoreEntry
from evennia_ai.engine.text.columns import escape_controls
from evennia_ai.engine.text.differences import diff_members
from evennia_ai.formats.lorebooks.books import entries_in_order, read_book, unwrap_book
from evennia_ai.formats.lorebooks.editing.typed import (
    FIELDS_SHOWN_ELSEWHERE,
    UNSET,
    UNUSED,
    field_text,
    place_in_words,
    value_in_words,
)
from evennia_ai.formats.lorebooks.entry_fields import TYPED_FIELDS

LONGEST_COMPARED: Final = 200_000
"""The maximum length of the JSON of a book that is compared.

Comparing reads both versions, which would take too long for longer books.
"""
# Default values of fields. The differences of a new or removed entry do not list them.
_UNSAID: Final[tuple[object, ...]] = ("", "on", [], *UNSET)


_Entry = tuple[LoreEntry, Any]
"""An entry as it was read, and its raw JSON, which may be no object."""


class _Book(NamedTuple):
    members: Mapping[str, Any]
    """The settings of the book, without its entries."""
    entries: Mapping[str, _Entry]
    """The entries by id."""


def book_differences(
    older: str | Mapping[str, Any] | None,
    newer: str | Mapping[str, Any] | None,
    *,
    sees: Callable[[str], bool] = lambda _: True,
) -> list[str] | None:
    """Return the differences between two lorebooks as lines of a unified diff.

    Args:
        older: the JSON of a book as text or as a value, None for no book.
        newer: the newer version of the book, given in the same way.
        sees: returns True for the id of an entry that the reader may see.

    Returns:
        Lines for the book's settings, then for each entry. None if a book is too long or cannot be
        read.
    """
    before, after = _read(older), _read(newer)
    if before is None or after is None:
        return None
    lines = list(diff_members(before.members, after.members, of="book "))
    for uid in dict.fromkeys((*after.entries, *before.entries)):
        if sees(uid):
            lines += _entry_differing(uid, before.entries.get(uid), after.entries.get(uid))
    return lines


def _entry_differing(
    uid: str,
    before: _Entry | None,
    after: _Entry | None,
) -> Iterator[str]:
    """Yield the lines of a diff of an entry; for a new or removed entry, yield its values."""
    if before and after and before[1] == after[1]:
        return
    entry, _ = after or before or (None, None)
    label = f"#{uid} ({entry.name}) " if entry and entry.name else f"#{uid} "
    was, now = _typed_values(before), _typed_values(after)
    if before is None or after is None:
        yield escape_controls(f"{label}is {'new' if after else 'gone'}:")
        unsaid = [name for name, value in {**was, **now}.items() if value in _UNSAID]
        was, now = (
            {name: value for name, value in values.items() if name not in unsaid}
            for values in (was, now)
        )
    lines = list(diff_members(was, now, of=label))
    # no field of this package differs, so the diff shows the raw JSON of other programs
    if not lines and before and after:
        lines = list(diff_members(before[1], after[1], of=label))
    yield from lines


def _typed_values(entry: _Entry | None) -> dict[str, Any]:
    """Return a dict of an entry's values by the words with which builders set them."""
    if entry is None:
        return {}
    read, raw = entry
    typed = {
        word: value_in_words(None if (said := field_text(field, read)) == UNUSED else said)
        for word, field in TYPED_FIELDS.items()
        if word not in FIELDS_SHOWN_ELSEWHERE
    }
    return {
        "name": read.name,
        "state": "on" if read.enabled else "off",
        "keys": list(read.keys),
        "secondary keys": list(read.secondary_keys),
        "logic": read.logic.replace("_", " ") if read.secondary_keys else "",
        "position": place_in_words(read),
        "order": f"{read.order:g}",
        **typed,
        "content": str(raw.get("content") or "") if isinstance(raw, dict) else json.dumps(raw),
    }


def changed_ids(older: str | None, newer: str | None) -> Mapping[str, list[str]]:
    """Return the ids of a book's entries under the keys "new", "removed" and "changed".

    The result is empty if a book is too long or cannot be read.
    """
    before, after = _read(older), _read(newer)
    if before is None or after is None:
        return {}
    was, now = before.entries, after.entries
    return {
        "new": [uid for uid in now if uid not in was],
        "removed": [uid for uid in was if uid not in now],
        "changed": [uid for uid in now if uid in was and now[uid][1] != was[uid][1]],
    }


def _read(book: str | Mapping[str, Any] | None) -> _Book | None:
    """Return a lorebook as read for a comparison, None if it is too long or cannot be read."""
    if book is None:
        return _Book({}, {})
    if isinstance(book, str) and len(book) > LONGEST_COMPARED:
        return None
    data = json.loads(book) if isinstance(book, str) else book
    try:
        read = read_book(data).entries
    # the stored JSON may come from another version of this package, or from another program
    except FormatError:
        return None
    inner = unwrap_book(data)
    members = {name.replace("_", " "): said for name, said in inner.items() if name != "entries"}
    raw = entries_in_order(inner["entries"])
    entries = {entry.uid: (entry, given) for entry, (_, given) in zip(read, raw, strict=True)}
    return _Book(members, entries)
