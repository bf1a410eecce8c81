"""Key matching: which keys of a book stand in a text, and where.

All keys of a book are looked for together, through an index by words: a key that must stand as a
whole word is listed under its longest word, a phrase that may stand anywhere under what is around
its first blank, a key of a script without blanks under its first pair of characters, any other
under the two it begins with. A text is asked for its words once,
so the cost does not depend on how many keys there are. Texts are matched one by one: a key never
reaches over two messages.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, Literal, NamedTuple

from evennia_ai.lorebook.scan.regex.pattern import TEXT_SECONDS, Pattern, SearchedText
from evennia_ai.text.words import (
    Edges,
    ascii_words_of,
    first_bounded,
    first_whole,
    in_word,
    pairs_of,
    words_of,
)

# As a whole word of any script; bounded by what is no part of an ASCII word; anywhere.
How = Literal["word", "ascii", "part"]
_AROUND: Final = 2
_MOST_KNOWN: Final = 8192
_MOST_BEGUN: Final = 64


class Key(NamedTuple):
    """A key as it is looked for: `text` is folded unless `sensitive`."""

    text: str
    sensitive: bool
    how: How


class Span(NamedTuple):
    """Where a key was found; code points of the message's content.

    `start` is negative where it was found in the speaker's name in front of the content.
    """

    start: int
    end: int


# Number of a key in its table -> its first place.
Hits = Mapping[int, Span]
# Number of a pattern that was not looked for to the end -> why.
GivenUp = Mapping[int, str]
_NO_HITS: Final[Hits] = {}
_NONE_GIVEN_UP: Final[GivenUp] = {}


class Scanned(NamedTuple):
    """What was found in one text, and what was given up there."""

    hits: Hits
    given_up: GivenUp = _NONE_GIVEN_UP


@dataclass(slots=True)
class Searchable:
    """A text to search: as written, folded, and for each folded character where it comes from.

    `places` is None where folding left all characters where they were; `lead` is the length of
    the speaker's name in front of the content. Its words are found once, for all tables.
    """

    written: str
    folded: str
    places: tuple[int, ...] | None
    lead: int
    _words: dict[object, frozenset[str]] = field(default_factory=dict)

    def words(self, text: str, split: Callable[[str], Iterable[str]]) -> frozenset[str]:
        """The words of `text`, which is one of its two texts, or what else `split` makes of it."""
        known = self._words.get((split, text is self.written))
        if known is None:
            known = self._words[split, text is self.written] = frozenset(split(text))
        return known


# Takes the case out of a text.
Fold = Callable[[str], str]


def searchable(content: str, *, name: str | None = None, fold: Fold = str.casefold) -> Searchable:
    """A text ready to be searched, with the speaker's name in front if there is one."""
    lead = f"{name}: " if name else ""
    written = lead + content
    folded = fold(written)
    places = None if len(folded) == len(written) else _places(written, fold)
    return Searchable(written, folded, places, len(lead))


class KeyTable:
    """All keys of a book, looked for together; a key's number is its place in `keys`.

    What it found in a text stays right for ever, because both are immutable, and is remembered
    here by the text: a line that thirty NPCs heard is scanned once. `patterns` are regular
    expressions by number; `fold` is how the keys lost their case, and the texts must.
    """

    __slots__ = ("_begun", "_folded", "_known", "_written", "fold", "patterns")

    def __init__(
        self,
        keys: Iterable[tuple[int, Key]],
        *,
        patterns: Mapping[int, Pattern] | None = None,
        fold: Fold = str.casefold,
    ) -> None:
        self.fold = fold
        folded: dict[str, list[tuple[int, How]]] = {}
        written: dict[str, list[tuple[int, How]]] = {}
        for number, key in keys:
            needles = written if key.sensitive else folded
            needles.setdefault(key.text, []).append((number, key.how))
        self._folded = _Needles(folded)
        self._written = _Needles(written)
        self.patterns: Mapping[int, Pattern] = patterns or {}
        self._known: dict[tuple[str, int], Scanned] = {}
        self._begun: dict[tuple[str, int], SearchedText] = {}

    def hits(self, text: Searchable) -> Hits:
        """Each key that stands in `text`, with its first place."""
        return self.scanned(text).hits

    def scanned(self, text: Searchable, *, seconds: float = TEXT_SECONDS) -> Scanned:
        """The same with what was given up there; all patterns together have so many seconds."""
        known = self._known.get((text.written, text.lead))
        return self._search(text, seconds) if known is None else known

    def scanned_in(self, text: str, *, seconds: float = TEXT_SECONDS) -> Scanned:
        """The same for a text that nobody speaks; it is made ready only if it is new."""
        known = self._known.get((text, 0))
        if known is not None:
            return known
        return self.scanned(searchable(text, fold=self.fold), seconds=seconds)

    def _search(self, text: Searchable, seconds: float) -> Scanned:
        """Look for everything; where there was no time for every pattern, the next call goes on."""
        found: dict[int, Span] = {}
        self._folded.search(text.folded, text, found)
        self._written.search(text.written, text, found)
        slot = (text.written, text.lead)
        if not self.patterns:
            return self._remembered(slot, Scanned(found or _NO_HITS))
        searched = self._begun.pop(slot, None) or SearchedText(text.written)
        searched.go_on(seconds=seconds)
        for number, pattern in self.patterns.items():
            place = searched.place(pattern)
            if place is not None:
                found[number] = Span(place[0] - text.lead, place[1] - text.lead)
        made = Scanned(found or _NO_HITS, self._given_up(searched))
        if searched.is_whole:
            return self._remembered(slot, made)
        if len(self._begun) >= _MOST_BEGUN:
            self._begun = {}
        self._begun[slot] = searched
        return made

    def _given_up(self, searched: SearchedText) -> GivenUp:
        why = searched.given_up
        if not why:
            return _NONE_GIVEN_UP
        return {number: why[pattern] for number, pattern in self.patterns.items() if pattern in why}

    def _remembered(self, slot: tuple[str, int], scanned: Scanned) -> Scanned:
        if len(self._known) >= _MOST_KNOWN:
            self._known = {}
        self._known[slot] = scanned
        return scanned


# One text that is looked for, and under which numbers and how.
_Needle = tuple[str, tuple[tuple[int, How], ...]]


class _Needles:
    """Keys by how they are found, so that a search asks only for those that may be there."""

    __slots__ = ("_by_ascii_word", "_by_blank", "_by_pair", "_by_start", "_by_word")

    def __init__(self, keys: Mapping[str, Sequence[tuple[int, How]]]) -> None:
        self._by_word: dict[str, list[_Needle]] = {}
        self._by_ascii_word: dict[str, list[_Needle]] = {}
        self._by_blank: dict[str, list[_Needle]] = {}
        self._by_pair: dict[str, list[_Needle]] = {}
        self._by_start: dict[str, list[_Needle]] = {}
        for text, numbers in keys.items():
            if text:
                listed, under = self._shelf(text, {how for _, how in numbers})
                listed.setdefault(under, []).append((text, tuple(numbers)))

    def _shelf(self, text: str, hows: set[How]) -> tuple[dict[str, list[_Needle]], str]:
        """Where a key is listed: under something that stands in every text that has the key."""
        if hows == {"word"} and (words := words_of(text)):
            return self._by_word, max(words, key=len)
        if hows == {"ascii"} and (words := ascii_words_of(text)):
            return self._by_ascii_word, max(words, key=len)
        if around := next(_around_blanks(text), ""):
            return self._by_blank, around
        pairs = pairs_of(text)
        return (self._by_pair, pairs[0]) if pairs else (self._by_start, text[:2])

    def search(self, haystack: str, text: Searchable, found: dict[int, Span]) -> None:
        """Add the keys that stand in `haystack`, which is one of the two texts of `text`."""
        edges = None
        for needle, numbers in self._perhaps_in(haystack, text):
            if needle in haystack:
                edges = edges or Edges(haystack, in_word)
                for number, how in numbers:
                    at = _FIRST[how](needle, haystack, edges)
                    if at >= 0:
                        found[number] = _span(text, haystack, at, at + len(needle))

    def _perhaps_in(self, haystack: str, text: Searchable) -> Iterator[_Needle]:
        for index, split in (
            (self._by_word, words_of),
            (self._by_ascii_word, ascii_words_of),
            (self._by_blank, _around_blanks),
            (self._by_pair, pairs_of),
            (self._by_start, _starts),
        ):
            if index:
                for there in index.keys() & text.words(haystack, split):
                    yield from index[there]


def _around_blanks(text: str) -> Iterator[str]:
    """What stands around each single blank with two characters on either side."""
    at = text.find(" ", _AROUND)
    while 0 <= at <= len(text) - 1 - _AROUND:
        yield text[at - _AROUND : at + _AROUND + 1]
        at = text.find(" ", at + 1)


def _starts(text: str) -> Iterator[str]:
    """What a key in `text` may begin with: each character, and each two."""
    yield from text
    yield from map("".join, pairwise(text))


_FIRST: Final[Mapping[How, Callable[[str, str, Edges], int]]] = {
    "word": first_whole,
    "ascii": lambda key, text, _: first_bounded(key, text),
    "part": lambda key, text, _: text.find(key),
}


def _span(text: Searchable, haystack: str, at: int, end: int) -> Span:
    if haystack is not text.written and text.places is not None:
        at, end = text.places[at], text.places[end - 1] + 1
    return Span(at - text.lead, end - text.lead)


def _places(written: str, fold: Fold) -> tuple[int, ...]:
    """For each folded character the index of the written one; one more for the end."""
    places = [i for i, char in enumerate(written) for _ in fold(char)]
    return (*places, len(written))
