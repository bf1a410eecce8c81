"""Key matching: which keys of a lorebook are in a text, and where.

All keys of a book are searched together. Each key is listed under a short part of itself that every
text with the key must contain. A text is split into such parts once, and only keys listed under
them are compared. So the time does not grow with the number of keys (`Shelves`). Texts are searched
one by one: a key never matches across two messages.

`hit_cache` stores which keys were found in the messages of a conversation.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import compress, pairwise
from typing import Final, Literal, NamedTuple, TypeVar

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
"""The most characters, over all texts, for which a key table caches what it found."""


class Span(NamedTuple):
    """The start and end of a key in the content of a message, in code points.

    `start` is negative if the key is in the speaker's name before the content.
    """

    start: int
    end: int


# The first place of each key in a text, by number of the key
Hits = Mapping[int, Span]
# Why the search for a regular expression in a text was given up, by number of the key
GivenUp = Mapping[int, str]
_NO_HITS: Final[Hits] = {}
_NONE_GIVEN_UP: Final[GivenUp] = {}


class Scanned(NamedTuple):
    """The keys found in one text, the given-up regular expressions, and the steps they took."""

    hits: Hits
    given_up: GivenUp = _NONE_GIVEN_UP
    steps: int = 0


# For each character of a normalised text, its index in the text as written. None if all indexes
# are the same in both.
_Places = tuple[int, ...] | None


@dataclass(slots=True)
class Searchable:
    """A text to search: as written, in its normal form (`text.normal_form`), and case-folded.

    `lead` is the length of the speaker's name before the content. Each form is split into words
    only once, and all key tables share the result.
    """

    written: str
    cased: str
    folded: str
    lead: int
    places_cased: _Places
    places_folded: _Places
    _words: dict[object, frozenset[str]] = field(default_factory=dict)

    def words(self, text: str, split: Callable[[str], Iterable[str]]) -> frozenset[str]:
        """Return the set of parts into which `split` splits `text`, one of the two forms."""
        known = self._words.get((split, text is self.folded))
        if known is None:
            known = self._words[split, text is self.folded] = frozenset(split(text))
        return known

    def span(self, haystack: str, at: int, end: int) -> Span:
        """Return where in the written text the range from `at` to `end` of a normalised form is."""
        places = self.places_folded if haystack is self.folded else self.places_cased
        if places is not None:
            # Normalising may split a letter in two or drop its marks. Extend the span so that it
            # covers the whole written letter.
            at, end = places[at], max(places[end - 1] + 1, places[end])
        return Span(at - self.lead, end - self.lead)


# A function that removes the case of a text, such as `str.casefold`.
Fold = Callable[[str], str]


def prepare_text(content: str, *, name: str | None = None, fold: Fold = str.casefold) -> Searchable:
    """Prepare a text for key search. The name of its speaker, if given, comes before it."""
    lead = f"{name}: " if name else ""
    written = lead + content
    is_plain = written.isascii() and "_" not in written  # a fast path
    cased = written if is_plain else normal_form(written)
    folded = fold(cased)
    places_cased = places_folded = None if cased is written else normal_positions(written)
    if len(folded) != len(cased):  # also map the end of the text
        origin = range(len(cased) + 1) if places_cased is None else places_cased
        folds = (origin[at] for at, char in enumerate(cased) for _ in fold(char))
        places_folded = (*folds, len(written))
    return Searchable(written, cased, folded, len(lead), places_cased, places_folded)


# How a key is searched. "word": as a whole word of any script. "ascii": with no ASCII word
# character next to it. "part": anywhere, also inside a word.
How = Literal["word", "ascii", "part"]


class Key(NamedTuple):
    """A key prepared for search: `text` is in normal form, and case-folded unless `sensitive`."""

    text: str
    sensitive: bool
    how: How


class KeyTable:
    """All keys of a book, searched together.

    The table caches its results by text. Table and text are immutable, so a result stays valid: a
    line that thirty NPCs heard is searched once. `patterns` has the regular expressions by number.
    `fold` must be the function that removed the case of the keys.
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
        folded, cased = _by_case(keys)
        self._folded = Shelves(folded)
        self._cased = Shelves(cased)
        self.patterns: Mapping[int, Pattern] = patterns or {}
        self._known: dict[tuple[str, int], Scanned] = {}
        self._characters = 0

    def hits(self, text: Searchable) -> Hits:
        """Return the first place of each key that is in `text`, by number of the key."""
        return self.scanned(text).hits

    def scanned(self, text: Searchable, *, steps: int = TEXT_STEPS) -> Scanned:
        """Search `text` for all keys. All regular expressions together may take `steps`."""
        known = self._known.get((text.written, text.lead)) if steps == TEXT_STEPS else None
        return known or self._search(text, steps)

    def scanned_in(self, text: str, *, steps: int = TEXT_STEPS) -> Scanned:
        """Search a text without a speaker. A text that was searched before is not prepared."""
        known = self._known.get((text, 0)) if steps == TEXT_STEPS else None
        return known or self._search(prepare_text(text, fold=self.fold), steps)

    def _search(self, text: Searchable, steps: int) -> Scanned:
        """Search `text` for all keys. A result that no limit of steps cut short is cached."""
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


_Numbered = list[tuple[int, Key]]


def _by_case(keys: Iterable[tuple[int, Key]]) -> tuple[_Numbered, _Numbered]:
    """Split keys into those whose case does not matter and those whose case matters."""
    folded: _Numbered = []
    cased: _Numbered = []
    for one in keys:
        (cased if one[1].sensitive else folded).append(one)
    return folded, cased


# Listing each key under a part of itself, to search all keys of a lorebook together

# A key in a list: its text, its number, and how it is searched.
_Needle = tuple[str, int, How]
_Shelved = tuple[list[str], list[_Needle]]
# A function that splits a text into the parts under which keys are listed.
Split = Callable[[str], Iterable[str]]
_Name = TypeVar("_Name", bound=Hashable)
_Item = TypeVar("_Item", int, _Needle)


def group_items(names: Sequence[_Name], items: Sequence[_Item]) -> dict[_Name, tuple[_Item, ...]]:
    """Group the items that have the same name, without duplicates and in ascending order.

    Most names have only one item. So one fast pass builds a mapping with one item for each name,
    and only names with several items are grouped afterwards.
    """
    last = zip(names, zip(items, strict=True), strict=True)
    found: dict[_Name, tuple[_Item, ...]] = dict(last)
    if len(found) < len(names):
        several: defaultdict[_Name, set[_Item]] = defaultdict(set)
        for name, item in zip(names, items, strict=True):
            if found[name][0] is not item:
                several[name].add(item)
        for name, those in several.items():
            found[name] = tuple(sorted(those.union(found[name])))
    return found


class Shelves:
    """Keys, each listed under a part of itself that every text with the key must contain.

    A search only compares keys whose part is in the text. A key that must be a whole word is listed
    under its longest word. A phrase that may be anywhere is listed under one of its blanks,
    together with the letters around it. A key of a script without blanks is listed under its first
    pair of characters, and any other key under its first two characters.
    """

    __slots__ = ("_listed",)

    def __init__(self, keys: Iterable[tuple[int, Key]]) -> None:
        self._listed = {split: group_items(*both) for split, both in _list_keys(keys).items()}

    def places(
        self, haystack: str, words: Callable[[Split], frozenset[str]]
    ) -> Iterator[tuple[int, int, int]]:
        """Yield the number, start and end of the first place of each key in `haystack`.

        `words` returns the parts of the haystack for a split function.
        """
        edges = None
        for split, index in self._listed.items():
            for there in index.keys() & words(split):
                for needle, number, how in index[there]:
                    if needle in haystack:
                        edges = edges or WordStarts(haystack, is_in_word)
                        at = _FIRST[how](needle, haystack, edges)
                        if at >= 0:
                            yield number, at, at + len(needle)


def _list_keys(keys: Iterable[tuple[int, Key]]) -> Mapping[Split, _Shelved]:
    """Return, for each function that splits texts, the keys and the part each is listed under."""
    shelved: defaultdict[Split, _Shelved] = defaultdict(lambda: ([], []))
    for number, (text, _, how) in keys:
        if not text:
            continue
        is_word = how in _WHOLE and text.isascii() and text.isalnum()  # a fast path
        split, under = (_WHOLE[how], text) if is_word else _part_of(text, how)
        unders, needles = shelved[split]
        unders.append(under)
        needles.append((text, number, how))
    return shelved


def _part_of(text: str, how: How) -> tuple[Split, str]:
    """Return the part of a key under which it is listed, after the function that finds it."""
    split = _WHOLE.get(how)
    if split is not None and (words := split(text)):
        return split, max(words, key=len)
    for blanks, around in _BLANKS.items():
        if blank := _longest_blank(text, around):
            return blanks, blank
    pairs = indexed_pairs(text)
    return (indexed_pairs, pairs[0]) if pairs else (_starts, text[:2])


_WHOLE: Final[Mapping[How, Callable[[str], list[str]]]] = {
    "word": split_words,
    "ascii": split_ascii_words,
}


def _blanks(text: str, around: int) -> Iterator[str]:
    """Yield each blank of a text with up to `around` letters of its neighbour words."""
    words = text.split(" ")
    ends, starts = [word[-around:] for word in words], [word[:around] for word in words[1:]]
    return map(" ".join, zip(ends, starts, strict=False))


def _longest_blank(key: str, around: int) -> str:
    """Return the longest blank of a key, with letters around it, that any text with the key has.

    Returns "" if there is none. In a text, the first and the last word of the key may be parts of
    longer words. So a blank next to one of them counts only if that word is long enough to fill its
    side of the blank.
    """
    words = key.split(" ")
    is_sure = [len(word) >= around for word in words]
    is_sure[1:-1] = [True] * (len(words) - 2)
    blanks = compress(_blanks(key, around), map(all, pairwise(is_sure)))
    return max(blanks, key=len, default="")


def _starts(text: str) -> Iterator[str]:
    """Yield each character and each pair of neighbours in `text`: a key may begin with them."""
    yield from text
    yield from map("".join, pairwise(text))


# The functions that split texts for phrases. The first one that yields a part of a phrase is used.
_BLANKS: Final[Mapping[Split, int]] = {partial(_blanks, around=n): n for n in (3, 1)}

_FIRST: Final[Mapping[How, Callable[[str, str, WordStarts], int]]] = {
    "word": find_whole_word,
    "ascii": lambda key, text, _: find_ascii_word(key, text),
    "part": lambda key, text, _: text.find(key),
}
