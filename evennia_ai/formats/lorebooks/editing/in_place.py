"""Change one entry in the text of a large book without reading the rest again.

A book of ten thousand entries is megabytes of JSON. The places of the entries in it are found once
and kept with the book. A change replaces only the text of its entry, and the new book is made from
the old one.
"""

import json
import re
from array import array
from collections.abc import Iterator, Mapping
from itertools import chain, pairwise
from json.decoder import JSONDecoder
from typing import Any, Final, NamedTuple

from evennia_ai.engine.lorebook.book import Lorebook, as_javascript_walks
from evennia_ai.engine.lorebook.scan.key_index import carry_indexes
from evennia_ai.engine.prompt.memo import Slot
from evennia_ai.formats.lorebooks.books import (
    is_of_another_program,
    is_world_file,
    replace_entry,
)
from evennia_ai.formats.lorebooks.editing.edits import change_only_entry

_BLANKS: Final = re.compile(r"[ \t\n\r]*")
_read_value: Final = JSONDecoder().raw_decode


class _Stretches(NamedTuple):
    """The text of a book as stretches, which are alternately text between entries and an entry."""

    lengths: "array[int]"
    """Characters of each stretch; lengths and not offsets, so that a change updates only one."""
    in_world: bool
    """True for a world file of SillyTavern."""

    def place_of(self, at: int) -> slice:
        """Return the place of the entry with this index in the text."""
        start = sum(self.lengths[: 2 * at + 1])
        return slice(start, start + self.lengths[2 * at + 1])

    def with_length(self, at: int, length: int) -> "_Stretches":
        """Return the stretches after the entry with this index has got this length."""
        lengths = self.lengths[:]
        lengths[2 * at + 1] = length
        return _Stretches(lengths, self.in_world)


_STRETCHES: Final = Slot[_Stretches | None]("places of entries in the text")


class Changed(NamedTuple):
    """The result of a change."""

    text: str
    place: slice
    """The place in the old text that `piece` replaces."""
    piece: str
    book: Lorebook
    is_same: bool
    """True if the entry had all these values before."""


def change_in_place(
    book: Lorebook, text: str, at: int, fields: Mapping[str, Any]
) -> Changed | None:
    """Change fields of the entry with the index `at`.

    Args:
        book: the book that was read from `text`.

    Returns:
        The change, or None if the caller must read the whole text for it.

    Raises:
        FormatError: a field is unknown or cannot have its value.
    """
    locate_entries(book, text)
    stretches = book.of_entries.get(_STRETCHES)
    if stretches is None:
        return None
    place = stretches.place_of(at)
    was = json.loads(text[place])
    in_world = stretches.in_world
    now = change_only_entry(was, fields, uid=book.entries[at].uid, in_world=in_world)
    after = replace_entry(book, at, was=was, now=now, in_world=in_world)
    if after is None:
        return None
    carry_indexes(book, after, at=at)
    piece = json.dumps(now, ensure_ascii=False, allow_nan=False)
    after.of_entries[_STRETCHES] = stretches.with_length(at, len(piece))
    changed = "".join((text[: place.start], piece, text[place.stop :]))
    return Changed(changed, place, piece, after, is_same=now == was)


def is_located(book: Lorebook) -> bool:
    """True if the places of the book's entries are known."""
    return _STRETCHES in book.of_entries


def locate_entries(book: Lorebook, text: str) -> None:
    """Find the places of the entries; this parses the whole text once and is safe in any thread."""
    if not is_located(book):
        book.of_entries[_STRETCHES] = _find_stretches(book, text)


def _find_stretches(book: Lorebook, text: str) -> _Stretches | None:
    """Return the stretches, None if the entries in the text do not match those of the book."""
    found = _entries_at(text)
    if found is None:
        return None
    begin, in_world = found
    if text[begin] == "[":
        places = [(start, end) for start, end, _ in _items(text, begin)]
    else:
        members = [(name, start, end) for name, start, end, _ in _members(text, begin)]
        names = [name for name, *_ in members]
        if as_javascript_walks(names, below=2**32 - 1) != names:
            return None  # the book has its entries in another order than the text
        places = [(start, end) for _, start, end in members]
    if len(places) != len(book.entries):
        return None
    edges = (0, *chain.from_iterable(places), len(text))
    lengths = array("q", [end - start for start, end in pairwise(edges)])
    return _Stretches(lengths, in_world)


def _entries_at(text: str) -> tuple[int, bool] | None:
    """Return the offset of a book's entries, and True if the text is a world file."""
    top = {name: (start, value) for name, start, _, value in _members(text, _skip(text, 0))}
    whole = {name: value for name, (_, value) in top.items()}
    if is_of_another_program(whole):
        return None
    if whole.get("spec") == "lorebook_v3" and isinstance(whole.get("data"), dict):
        inner = {name: start for name, start, *_ in _members(text, top["data"][0])}
        return (inner["entries"], False) if "entries" in inner else None
    return (top["entries"][0], is_world_file(whole)) if "entries" in top else None


def _members(text: str, at: int) -> Iterator[tuple[str, int, int, Any]]:
    """Yield name, start, end and value of each member of the object at this offset."""
    at = _skip(text, at + 1)
    while text[at] != "}":
        name, at = _read_value(text, at)
        start = _skip(text, _skip(text, at) + 1)
        value, end = _read_value(text, start)
        yield name, start, end, value
        at = _next(text, end)


def _items(text: str, at: int) -> Iterator[tuple[int, int, Any]]:
    """Yield start, end and value of each item of the list at this offset."""
    at = _skip(text, at + 1)
    while text[at] != "]":
        value, end = _read_value(text, at)
        yield at, end, value
        at = _next(text, end)


def _next(text: str, end: int) -> int:
    """Return the offset of the next item, or of the closing bracket."""
    at = _skip(text, end)
    return _skip(text, at + 1) if text[at] == "," else at


def _skip(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return at if found is None else found.end()
