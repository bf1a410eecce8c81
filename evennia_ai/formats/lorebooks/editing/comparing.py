"""What is different in two texts of a book: its own settings, and its entries in builders' words.

A book that stands alone and the book inside a card are told of alike.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.lorebook.entry import LoreEntry
from evennia_ai.engine.text.columns import visible
from evennia_ai.engine.text.differences import diff_members
from evennia_ai.formats.lorebooks.books import in_order, read_book, unwrapped
from evennia_ai.formats.lorebooks.editing.typed import (
    TOLD_APART,
    UNSET,
    UNUSED,
    in_words,
    place_in_words,
    said_of,
)
from evennia_ai.formats.lorebooks.entry_fields import TYPED_FIELDS

LONGEST_COMPARED: Final = 200_000
"""Characters of a book that is compared: it is read for that."""
# What is not told of an entry that came or went.
_UNSAID: Final[tuple[object, ...]] = ("", "on", [], *UNSET)


class _Book(NamedTuple):
    members: Mapping[str, Any]
    """What the book says beside its entries."""
    entries: Mapping[str, tuple[LoreEntry, Mapping[str, Any]]]
    """Its entries by id: as they are read, and as the file says them."""


def book_differences(
    older: str | Mapping[str, Any] | None,
    newer: str | Mapping[str, Any] | None,
    *,
    sees: Callable[[str], bool] = lambda _: True,
) -> list[str] | None:
    """What is different in two books, in lines of a unified diff: the book, then entry by entry.

    A book is its text or its JSON, None is no book. `sees` says of an entry's id whether it may
    be told of. None where one of them is too long, or cannot be read.
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
    before: tuple[LoreEntry, Mapping[str, Any]] | None,
    after: tuple[LoreEntry, Mapping[str, Any]] | None,
) -> Iterator[str]:
    """What is different in an entry; one that came or went is told by what it says."""
    if before and after and before[1] == after[1]:
        return
    entry, _ = after or before or (None, None)
    label = f"#{uid} ({entry.name}) " if entry and entry.name else f"#{uid} "
    was, now = _said(before), _said(after)
    if before is None or after is None:
        yield visible(f"{label}is {'new' if after else 'gone'}:")
        unsaid = [name for name, said in {**was, **now}.items() if said in _UNSAID]
        was, now = (
            {name: said for name, said in told.items() if name not in unsaid} for told in (was, now)
        )
    lines = list(diff_members(was, now, of=label))
    if not lines and before and after:  # what another program keeps in it, as the file says it
        lines = list(diff_members(before[1], after[1], of=label))
    yield from lines


def _said(entry: tuple[LoreEntry, Mapping[str, Any]] | None) -> dict[str, Any]:
    """What an entry says by the words in which builders set it."""
    if entry is None:
        return {}
    read, raw = entry
    typed = {
        word: in_words(None if (said := said_of(field, read)) == UNUSED else said)
        for word, field in TYPED_FIELDS.items()
        if word not in TOLD_APART
    }
    return {
        "name": read.name,
        "state": "on" if read.enabled else "off",
        "keys": list(read.keys),
        "secondary keys": list(read.secondary_keys),
        "logic": read.logic.replace("_", " ") if read.secondary_keys else "",
        "stands": place_in_words(read),
        "order": f"{read.order:g}",
        **typed,
        "content": str(raw.get("content") or ""),
    }


def changed_ids(older: str | None, newer: str | None) -> Mapping[str, list[str]]:
    """The ids of the entries that are new, removed and changed; none where it is too long."""
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
    """A book by its parts; None where it is too long to be read for this, or no book."""
    if book is None:
        return _Book({}, {})
    if isinstance(book, str) and len(book) > LONGEST_COMPARED:
        return None
    data = json.loads(book) if isinstance(book, str) else book
    try:
        read = read_book(data).entries
    except FormatError:  # stored by other means than the command, or by another version
        return None
    inner = unwrapped(data)
    members = {name.replace("_", " "): said for name, said in inner.items() if name != "entries"}
    raw = in_order(inner["entries"])
    entries = {entry.uid: (entry, given) for entry, (_, given) in zip(read, raw, strict=True)}
    return _Book(members, entries)
