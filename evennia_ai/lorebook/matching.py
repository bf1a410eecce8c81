"""Key matching: which keys of a book stand in a message, and where.

A key is found as a whole word: no letter or digit may stand right beside its own first or last
one. Scripts without blanks between words (Chinese, Japanese, Korean, Thai, ...) have no such
edges, so keys in them are found anywhere. Case is folded unless an entry wants it as written.
Texts are matched one by one: a key never reaches over two messages.

The hits of a message are kept with it, so a turn scans what is new.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, pairwise
from typing import Final, NamedTuple

from evennia_ai.prompt.messages import Message

# First and last code point of scripts that put no blanks between words.
_UNSPACED: Final = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Burmese
    (0x1100, 0x11FF),  # Hangul letters
    (0x1780, 0x17FF),  # Khmer
    (0x2E80, 0x30FF),  # Han radicals and marks, kana
    (0x3100, 0x9FFF),  # bopomofo, Hangul letters, Han
    (0xA960, 0xA97F),
    (0xAC00, 0xD7FF),  # Hangul
    (0xF900, 0xFAFF),  # Han
    (0xFF66, 0xFFDC),  # half-width kana and Hangul
    (0x20000, 0x3FFFF),  # Han
)


_ASCII_WORD: Final = re.compile("[0-9A-Za-z_]+")


class Key(NamedTuple):
    """A key as it is looked for: `text` is folded unless `sensitive`."""

    text: str
    sensitive: bool
    whole: bool


class Span(NamedTuple):
    """Where a key was found; code points of the message's content.

    `start` is negative where it was found in the speaker's name in front of the content.
    """

    start: int
    end: int


Hits = dict[Key, Span]


def make_key(text: str, *, sensitive: bool, whole: bool) -> Key:
    """The key as it is looked for."""
    return Key(text if sensitive else text.casefold(), sensitive, whole)


@dataclass(frozen=True, slots=True)
class Folded:
    """A text to search: as written, folded, and for each folded character where it comes from.

    `places` is None where folding left all characters where they were; `lead` is the length of
    the speaker's name in front of the content.
    """

    written: str
    folded: str
    places: tuple[int, ...] | None
    lead: int


class KeyTable:
    """All keys of a book, looked for together.

    Made once for a book and the flags of the rules; what it found in a message stays right for
    ever, because both are immutable.
    """

    __slots__ = ("_folded", "_written")

    def __init__(self, keys: Iterable[Key]) -> None:
        folded: dict[str, set[Key]] = {}
        written: dict[str, set[Key]] = {}
        for key in keys:
            (written if key.sensitive else folded).setdefault(key.text, set()).add(key)
        self._folded = _Needles(folded)
        self._written = _Needles(written)

    def hits(self, text: Folded) -> Hits:
        """Each key that stands in `text`, with its first place."""
        found: Hits = {}
        for haystack, needles in ((text.folded, self._folded), (text.written, self._written)):
            edges = _Edges(haystack)
            for key in needles.perhaps_in(haystack):
                at = _first(key, haystack, edges)
                if at >= 0:
                    found[key] = _span(text, key, at)
        return found


class _Needles:
    """Keys by how their text begins, so that a search asks only for those that may be there.

    A key to be found as a whole word that begins with one is listed under that word, any other
    under its first two characters.
    """

    __slots__ = ("_by_start", "_by_word")

    def __init__(self, keys: Mapping[str, Iterable[Key]]) -> None:
        self._by_word: dict[str, list[tuple[str, tuple[Key, ...]]]] = {}
        self._by_start: dict[str, list[tuple[str, tuple[Key, ...]]]] = {}
        for text, found in keys.items():
            is_word = text and _in_word(text[0]) and all(key.whole for key in found)
            word = next(_words(text)) if is_word else ""
            listed = self._by_word if is_word else self._by_start
            listed.setdefault(word or text[:2], []).append((text, tuple(sorted(found))))

    def perhaps_in(self, haystack: str) -> Iterator[Key]:
        """The keys whose text stands in `haystack`, as a whole word or not."""
        there: list[tuple[str, tuple[Key, ...]]] = []
        if self._by_word:
            for word in self._by_word.keys() & set(_words(haystack)):
                there += self._by_word[word]
        if self._by_start:
            pairs = map("".join, pairwise(haystack))
            for start in self._by_start.keys() & {"", *haystack, *pairs}:
                there += self._by_start[start]
        for text, keys in there:
            if text in haystack:
                yield from keys


def hits_of(message: Message, table: KeyTable, *, slot: object, with_name: bool) -> Hits:
    """The hits of `table` in `message`, scanned once and kept with the message.

    `slot` is the book's place in the message's memory: a newer table of the same book takes the
    place of the older one.
    """
    known = message.memo.get(slot)
    if isinstance(known, tuple) and known[0] is table and known[1] is with_name:
        hits: Hits = known[2]
        return hits
    made = table.hits(_searchable(message, with_name))
    message.memo[slot] = (table, with_name, made)
    return made


def searchable(content: str, *, name: str | None = None) -> Folded:
    """A text ready to be searched, with the speaker's name in front if there is one."""
    lead = f"{name}: " if name else ""
    written = lead + content
    folded = written.casefold()
    places = None if len(folded) == len(written) else _places(written)
    return Folded(written, folded, places, len(lead))


def _searchable(message: Message, with_name: bool) -> Folded:
    slot = ("searchable", with_name)
    known = message.memo.get(slot)
    if isinstance(known, Folded):
        return known
    made = searchable(message.content, name=message.name if with_name else None)
    message.memo[slot] = made
    return made


def _places(written: str) -> tuple[int, ...]:
    """For each folded character the index of the written one; one more for the end."""
    places = [i for i, char in enumerate(written) for _ in char.casefold()]
    return (*places, len(written))


class _Edges:
    """The places of a text where a word may begin; worked out when first asked for.

    They let a search leave a long word at once, so hostile keys and texts cost no more than others.
    """

    __slots__ = ("_starts", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts: list[int] | None = None

    def after(self, at: int) -> int:
        """The next place behind `at`, the length of the text where there is none."""
        if self._starts is None:
            words = [_in_word(char) for char in self._text]
            self._starts = [i for i in range(1, len(words)) if not (words[i - 1] and words[i])]
        next_one = bisect_right(self._starts, at)
        return self._starts[next_one] if next_one < len(self._starts) else len(self._text)


def _first(key: Key, text: str, edges: _Edges) -> int:
    """Index of the first place where the key stands as it is wanted, -1 where there is none."""
    at = text.find(key.text)
    if not key.whole:
        return at
    while at >= 0 and not _stands_alone(text, at, at + len(key.text)):
        at = text.find(key.text, edges.after(at))
    return at


def _stands_alone(text: str, start: int, end: int) -> bool:
    runs_on_left = start > 0 and _in_word(text[start - 1]) and _in_word(text[start])
    runs_on_right = end < len(text) and _in_word(text[end - 1]) and _in_word(text[end])
    return not (runs_on_left or runs_on_right)


def _words(text: str) -> Iterator[str]:
    """The longest runs of characters that make one word with their neighbours."""
    if text.isascii():
        return (found[0] for found in _ASCII_WORD.finditer(text))
    return ("".join(run) for in_word, run in groupby(text, _in_word) if in_word)


@lru_cache(maxsize=4096)
def _in_word(char: str) -> bool:
    """Whether a character makes one word with its neighbours."""
    if char.isascii():
        return char.isalnum() or char == "_"
    if not (char.isalnum() or unicodedata.category(char).startswith("M")):
        return False
    code = ord(char)
    return not any(first <= code <= last for first, last in _UNSPACED)


def _span(text: Folded, key: Key, at: int) -> Span:
    end = at + len(key.text)
    if not key.sensitive and text.places is not None:
        at, end = text.places[at], text.places[end - 1] + 1
    return Span(at - text.lead, end - text.lead)
