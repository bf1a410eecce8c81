"""Key matching: which keys of a lorebook are in a text, and where.

All keys of a book are searched together (`Shelves`). Each key is listed under a short part of
itself, which every text with that key must contain. A text is split into such parts once. Then only
the keys listed under these parts are compared with the text. So the time does not grow with the
number of keys.

Each text is searched separately, so a key never matches across two messages. `hit_cache` stores
which keys were found in the messages of a conversation.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import compress, pairwise
from typing import Any, Final, Literal, NamedTuple, TypeVar

from evennia_ai.engine.lorebook.scan.regex.pattern import TEXT_STEPS, Pattern, search_patterns
from evennia_ai.engine.text.normal_form import normal_form, normal_positions
from evennia_ai.engine.text.words import (
    WordStarts,
    find_ascii_word,
    find_whole_word,
    indexed_pairs,
    is_in_word,
    split_ascii_words,
    split_words,
)

_MOST_KNOWN: Final = 8192
MOST_CHARACTERS: Final = 2_000_000
"""A key table caches its results until the texts have this many characters in all."""


class Span(NamedTuple):
    """The start and end of a key in the content of a message, in code points.

    The speaker's name is before the content. `start` is negative if the key is in that name.
    """

    start: int
    end: int


# The first place of each key in a text, by number of the key.
Hits = Mapping[int, Span]
# The reason why the search for a regular expression was given up in a text, by number of the key.
GivenUp = Mapping[int, str]
_NO_HITS: Final[Hits] = {}
_NONE_GIVEN_UP: Final[GivenUp] = {}


class Scanned(NamedTuple):
    """The keys found in one text, the regular expressions given up in it, and the steps taken."""

    hits: Hits
    given_up: GivenUp = _NONE_GIVEN_UP
    steps: int = 0


# For each character of a normalised text, the index of that character in the text as written. None
# if both texts have the same indexes.
_Places = tuple[int, ...] | None


@dataclass(slots=True)
class Searchable:
    """A text prepared for search: as written, in its normal form, and in normal form without case.

    `lead` is the length of the speaker's name before the content. Each form is split into words
    once, and all key tables share the result.
    """

    written: str
    cased: str
    folded: str
    lead: int
    places_cased: _Places
    places_folded: _Places
    _words: dict[object, frozenset[str]] = field(default_factory=dict)

    def words(self, text: str, split: Callable[[str], Iterable[str]]) -> frozenset[str]:
        """Return the parts into which `split` splits `text`, one of the two normal forms."""
        known = self._words.get((split, text is self.folded))
        if known is None:
            known = self._words[split, text is self.folded] = frozenset(split(text))
        return known

    def span(self, haystack: str, at: int, end: int) -> Span:
        """Return the span in the written text of the range `at` to `end` of a normal form."""
        places = self.places_folded if haystack is self.folded else self.places_cased
        if places is not None:
            # Normalising can split a letter in two or drop its marks. So extend the span until it
            # covers the whole written letter.
            at, end = places[at], max(places[end - 1] + 1, places[end])
        return Span(at - self.lead, end - self.lead)


# A function that removes the letter case of a text, such as `str.casefold`.
Fold = Callable[[str], str]


def prepare_text(content: str, *, name: str | None = None, fold: Fold = str.casefold) -> Searchable:
    """Prepare a text for key search. If given, the name of its speaker is put before it."""
    lead = f"{name}: " if name else ""
    written = lead + content
    is_plain = written.isascii() and "_" not in written  # a fast path for plain English
    cased = written if is_plain else normal_form(written)
    folded = fold(cased)
    places_cased = places_folded = None if cased is written else normal_positions(written)
    if len(folded) != len(cased):  # the end of the text is a position, too
        origin = range(len(cased) + 1) if places_cased is None else places_cased
        folds = (origin[at] for at, char in enumerate(cased) for _ in fold(char))
        places_folded = (*folds, len(written))
    return Searchable(written, cased, folded, len(lead), places_cased, places_folded)


# How a key is searched. "word": as a whole word in any script. "ascii": with no ASCII letter, digit
# or underscore next to it. "part": anywhere, also inside words.
How = Literal["word", "ascii", "part"]


class Key(NamedTuple):
    """A key prepared for search. `text` is in normal form, and without case unless `sensitive`."""

    text: str
    sensitive: bool
    how: How


class KeyTable:
    """All keys of a book, which are searched together.

    Results are cached by text and stay valid, because neither the table nor the text can change. So
    a line that thirty NPCs heard is searched once. `patterns` has the regular expressions by
    number. `fold` must be the function that was used to remove the case of the keys.
    """

    __slots__ = ("_cased", "_characters", "_folded", "_known", "fold", "patterns")

    def __init__(
        self,
        keys: Iterable[tuple[int, Key]],
        *,
        patterns: Mapping[int, Pattern] | None = None,
        fold: Fold = str.casefold,
    ) -> None:
        self.fold = fold
        self._folded, self._cased = shelve_keys(keys)
        self.patterns: Mapping[int, Pattern] = patterns or {}
        self._known: dict[tuple[str, int], Scanned] = {}
        self._characters = 0

    def to_json(self) -> dict[str, Any]:
        """Return the keys, without the regular expressions, as a JSON value."""
        return {
            "texts": self._folded.texts,
            "hows": "".join([how[0] for how in self._folded.hows]),
            "listed": [self._folded.listed, self._cased.listed],
        }

    @classmethod
    def from_json(
        cls, value: Mapping[str, Any], *, patterns: Mapping[int, Pattern], fold: Fold
    ) -> "KeyTable":
        """Return the table that `to_json` wrote."""
        table = cls((), patterns=patterns, fold=fold)
        hows = list(map({how[0]: how for how in _FIRST}.__getitem__, value["hows"]))
        both = (Shelves(value["texts"], hows, listed) for listed in value["listed"])
        table._folded, table._cased = both
        return table

    def hits(self, text: Searchable) -> Hits:
        """Return the first place of each key in `text`, by number of the key."""
        return self.scan(text).hits

    def scan(self, text: Searchable, *, steps: int = TEXT_STEPS) -> Scanned:
        """Search `text` for all keys. All regular expressions together may take `steps`."""
        known = self._known.get((text.written, text.lead)) if steps == TEXT_STEPS else None
        return known or self._search(text, steps)

    def scan_text(self, text: str, *, steps: int = TEXT_STEPS) -> Scanned:
        """Search a text without a speaker. If it was searched before, it is not prepared again."""
        known = self._known.get((text, 0)) if steps == TEXT_STEPS else None
        return known or self._search(prepare_text(text, fold=self.fold), steps)

    def _search(self, text: Searchable, steps: int) -> Scanned:
        """Search `text` for all keys. Cache the result if the limit of steps is the usual one."""
        found: dict[int, Span] = {}
        for shelves, haystack in ((self._folded, text.folded), (self._cased, text.cased)):
            for number, at, end in shelves.places(haystack, partial(text.words, haystack)):
                found[number] = text.span(haystack, at, end)
        if not self.patterns:
            made = Scanned(found or _NO_HITS)
        else:
            hits = search_patterns(text.written, self.patterns.values(), steps=steps)
            given_up: dict[int, str] = {}
            for number, pattern in self.patterns.items():
                if pattern in hits.places:
                    start, end = hits.places[pattern]
                    found[number] = Span(start - text.lead, end - text.lead)
                elif pattern in hits.given_up:
                    given_up[number] = hits.given_up[pattern]
            made = Scanned(found or _NO_HITS, given_up or _NONE_GIVEN_UP, hits.steps)
        return self._remember((text.written, text.lead), made) if steps == TEXT_STEPS else made

    def _remember(self, slot: tuple[str, int], scanned: Scanned) -> Scanned:
        self._characters += len(slot[0])
        if len(self._known) >= _MOST_KNOWN or self._characters > MOST_CHARACTERS:
            self._known, self._characters = {}, len(slot[0])
        self._known[slot] = scanned
        return scanned


# Listing of keys under a part of each key, to search all keys of a lorebook together

# A function that splits a text into the parts under which keys are listed.
Split = Callable[[str], Iterable[str]]
_Name = TypeVar("_Name", bound=Hashable)


def group_items(names: Sequence[_Name], items: Sequence[int]) -> dict[_Name, tuple[int, ...]]:
    """Group items by name. The items of a name are in ascending order, without duplicates.

    Most names have only one item. So one fast pass assumes that, and only names with several items
    are then grouped.
    """
    last = zip(names, zip(items, strict=True), strict=True)
    found: dict[_Name, tuple[int, ...]] = dict(last)
    if len(found) < len(names):
        several: defaultdict[_Name, set[int]] = defaultdict(set)
        for name, item in zip(names, items, strict=True):
            if found[name][0] is not item:
                several[name].add(item)
        for name, those in several.items():
            found[name] = tuple(sorted(those.union(found[name])))
    return found


@dataclass(frozen=True, slots=True)
class Shelves:
    """Keys, each listed under a part of itself, which every text with the key must contain.

    A search only compares the keys whose part is in the text. A key that must be a whole word is
    listed under its longest word. A phrase that may be anywhere is listed under one of its blanks,
    together with the letters around the blank. A key in a script without blanks is listed under its
    first two characters, as a pair. Any other key is listed under its first two characters.
    """

    texts: Sequence[str]
    """The text of each key, by its number."""
    hows: Sequence[How]
    """How each key is searched, by its number."""
    listed: Mapping[str, Mapping[str, Sequence[int]]]
    """The numbers of the keys under each part, by the name of the function in `_SPLITS` that splits
    texts into such parts."""

    def places(
        self, haystack: str, words: Callable[[Split], frozenset[str]]
    ) -> Iterator[tuple[int, int, int]]:
        """Yield the number, the start and the end of the first place of each key in `haystack`.

        `words` returns the parts into which a function splits the haystack.
        """
        edges = None
        texts = self.texts
        for name, index in self.listed.items():
            for there in index.keys() & words(_SPLITS[name]):
                for number in index[there]:
                    needle = texts[number]
                    if needle in haystack:
                        edges = edges or WordStarts(haystack, is_in_word)
                        at = _FIRST[self.hows[number]](needle, haystack, edges)
                        if at >= 0:
                            yield number, at, at + len(needle)


def shelve_keys(keys: Iterable[tuple[int, Key]]) -> tuple[Shelves, Shelves]:
    """List the keys that ignore letter case, and those that do not."""
    numbered = dict(keys)
    size = max(numbered, default=-1) + 1
    texts, hows = [""] * size, list[How](["part"]) * size
    listed: tuple[dict[str, tuple[list[str], list[int]]], ...] = ({}, {})
    for number, (text, is_sensitive, how) in numbered.items():
        if not text:
            continue
        texts[number], hows[number] = text, how
        is_word = how in _WHOLE and text.isascii() and text.isalnum()  # a fast path
        split, under = (how, text) if is_word else _part_of(text, how)
        unders, numbers = listed[is_sensitive].setdefault(split, ([], []))
        unders.append(under)
        numbers.append(number)
    folded, cased = (
        Shelves(texts, hows, {split: group_items(*both) for split, both in one.items()})
        for one in listed
    )
    return folded, cased


def _part_of(text: str, how: How) -> tuple[str, str]:
    """Return the name of the function that splits texts for a key, and the part of the key."""
    split = _WHOLE.get(how)
    if split is not None and (words := split(text)):
        return how, max(words, key=len)
    for name, around in _BLANKS.items():
        if blank := _longest_blank(text, around):
            return name, blank
    pairs = indexed_pairs(text)
    return ("pairs", pairs[0]) if pairs else ("starts", text[:2])


_WHOLE: Final[Mapping[How, Callable[[str], list[str]]]] = {
    "word": split_words,
    "ascii": split_ascii_words,
}


def _blanks(text: str, around: int) -> Iterator[str]:
    """Yield each blank of a text with up to `around` letters of the words on both sides."""
    words = text.split(" ")
    ends, starts = [word[-around:] for word in words], [word[:around] for word in words[1:]]
    return map(" ".join, zip(ends, starts, strict=False))


def _longest_blank(key: str, around: int) -> str:
    """Return the longest blank of a key, with letters around it, that every match contains.

    Returns "" if there is none. In a text, the first and the last word of the key may continue
    beyond the key. So a blank next to such a word counts only if the word has `around` letters or
    more.
    """
    words = key.split(" ")
    is_sure = [len(word) >= around for word in words]
    is_sure[1:-1] = [True] * (len(words) - 2)
    blanks = compress(_blanks(key, around), map(all, pairwise(is_sure)))
    return max(blanks, key=len, default="")


def _starts(text: str) -> Iterator[str]:
    """Yield each character and each pair of neighbouring characters of a text."""
    yield from text
    yield from map("".join, pairwise(text))


# How many letters around a blank list a phrase. The first that finds a part of the phrase is used.
_BLANKS: Final[Mapping[str, int]] = {"blanks of 3": 3, "blanks of 1": 1}
_SPLITS: Final[Mapping[str, Split]] = {
    "word": split_words,
    "ascii": split_ascii_words,
    **{name: partial(_blanks, around=around) for name, around in _BLANKS.items()},
    "pairs": indexed_pairs,
    "starts": _starts,
}

_FIRST: Final[Mapping[How, Callable[[str, str, WordStarts], int]]] = {
    "word": find_whole_word,
    "ascii": lambda key, text, _: find_ascii_word(key, text),
    "part": lambda key, text, _: text.find(key),
}
