"""One entry changed where it stands in the text of its book: the rest is not read again.

A book of ten thousand entries is megabytes of JSON. Where each entry stands in it is found once
and kept with the book; a change replaces the entry's own stretch, and the book that follows is made
of the one before.
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
    with_entry,
)
from evennia_ai.formats.lorebooks.editing.edits import changed_alone

_BLANKS: Final = re.compile(r"[ \t\n\r]*")
_read_value: Final = JSONDecoder().raw_decode


class _Stretches(NamedTuple):
    """The text of a book in stretches: what stands before an entry, the entry, what stands next."""

    lengths: "array[int]"
    """In characters, in the order of the book; the last one is what stands after all entries."""
    in_world: bool
    """Whether the text is a world file of SillyTavern."""

    def of(self, at: int) -> slice:
        """Where the entry at `at` stands."""
        start = sum(self.lengths[: 2 * at + 1])
        return slice(start, start + self.lengths[2 * at + 1])

    def with_length(self, at: int, length: int) -> "_Stretches":
        """The stretches once the entry at `at` has this length."""
        lengths = self.lengths[:]
        lengths[2 * at + 1] = length
        return _Stretches(lengths, self.in_world)


_STRETCHES: Final = Slot[_Stretches | None]("where entries stand in the text")


class Changed(NamedTuple):
    """What a change made: the text, the stretch of it that is new, and the book it is."""

    text: str
    place: slice
    """Where in the text before stood what `piece` replaces."""
    piece: str
    book: Lorebook
    is_same: bool
    """Whether the entry said all that before."""


def changed_in_place(
    book: Lorebook, text: str, at: int, fields: Mapping[str, Any]
) -> Changed | None:
    """The entry at `at` with other values, None where the whole text is to be read for that.

    `book` is what `text` was read as. FormatError: as `edits.change_entry`.
    """
    locate(book, text)
    stretches = book.of_entries.get(_STRETCHES)
    if stretches is None:
        return None
    place = stretches.of(at)
    was = json.loads(text[place])
    in_world = stretches.in_world
    now = changed_alone(was, fields, uid=book.entries[at].uid, in_world=in_world)
    after = with_entry(book, at, was=was, now=now, in_world=in_world)
    if after is None:
        return None
    carry_indexes(book, after, at=at)
    piece = json.dumps(now, ensure_ascii=False, allow_nan=False)
    after.of_entries[_STRETCHES] = stretches.with_length(at, len(piece))
    changed = "".join((text[: place.start], piece, text[place.stop :]))
    return Changed(changed, place, piece, after, is_same=now == was)


def is_located(book: Lorebook) -> bool:
    """Whether it is known where its entries stand."""
    return _STRETCHES in book.of_entries


def locate(book: Lorebook, text: str) -> None:
    """Find where the entries stand, in whatever thread; the whole text is read for that, once."""
    if not is_located(book):
        book.of_entries[_STRETCHES] = _found(book, text)


def _found(book: Lorebook, text: str) -> _Stretches | None:
    """Where the entries stand; None where they are not those of the book, each once."""
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
            return None
        places = [(start, end) for _, start, end in members]
    if len(places) != len(book.entries):
        return None
    edges = (0, *chain.from_iterable(places), len(text))
    lengths = array("q", [end - start for start, end in pairwise(edges)])
    return _Stretches(lengths, in_world)


def _entries_at(text: str) -> tuple[int, bool] | None:
    """Where the entries of a book begin, alone or in the frame of Card V3, and `in_world`."""
    top = {name: (start, value) for name, start, _, value in _members(text, _skip(text, 0))}
    whole = {name: value for name, (_, value) in top.items()}
    if is_of_another_program(whole):
        return None
    if whole.get("spec") == "lorebook_v3" and isinstance(whole.get("data"), dict):
        inner = {name: start for name, start, *_ in _members(text, top["data"][0])}
        return (inner["entries"], False) if "entries" in inner else None
    return (top["entries"][0], is_world_file(whole)) if "entries" in top else None


def _members(text: str, at: int) -> Iterator[tuple[str, int, int, Any]]:
    """Name, begin, end and value of each member of the object at `at`."""
    at = _skip(text, at + 1)
    while text[at] != "}":
        name, at = _read_value(text, at)
        start = _skip(text, _skip(text, at) + 1)
        value, end = _read_value(text, start)
        yield name, start, end, value
        at = _next(text, end)


def _items(text: str, at: int) -> Iterator[tuple[int, int, Any]]:
    """Begin, end and value of each item of the list at `at`."""
    at = _skip(text, at + 1)
    while text[at] != "]":
        value, end = _read_value(text, at)
        yield at, end, value
        at = _next(text, end)


def _next(text: str, end: int) -> int:
    """Where the next one begins, or the bracket stands that ends them."""
    at = _skip(text, end)
    return _skip(text, at + 1) if text[at] == "," else at


def _skip(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return at if found is None else found.end()
