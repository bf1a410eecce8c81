"""Shelves: the keys of a book, each listed under something that stands in every text that has it.

A key that must stand as a whole word is listed under its longest word, a phrase that may stand
anywhere under what is around its first blank, a key of a script without blanks under its first pair
of characters, any other under the two it begins with. So a search asks only for the keys that may
be there.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Final, Literal, NamedTuple, TypeVar

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


class Key(NamedTuple):
    """A key as it is looked for: `text` is folded unless `sensitive`."""

    text: str
    sensitive: bool
    how: How


# A key's text, its number and how it is looked for.
_Needle = tuple[str, int, How]
# What takes a text apart into that under which keys are listed.
Split = Callable[[str], Iterable[str]]
_Name = TypeVar("_Name", bound=Hashable)
_Item = TypeVar("_Item")


def grouped(pairs: Iterable[tuple[_Name, _Item]]) -> dict[_Name, tuple[_Item, ...]]:
    """The items of each name in their order. Most names have one, so no list is made for it."""
    first: dict[_Name, tuple[_Item, ...]] = {}
    several: dict[_Name, list[_Item]] = {}
    for name, item in pairs:
        if name not in first:
            first[name] = (item,)
        elif name in several:
            several[name].append(item)
        else:
            several[name] = [*first[name], item]
    first.update((name, tuple(items)) for name, items in several.items())
    return first


class Shelves:
    """Keys by how they are found."""

    __slots__ = ("_listed",)

    def __init__(self, keys: Iterable[tuple[int, Key]]) -> None:
        self._listed = {split: grouped(pairs) for split, pairs in _shelved(keys).items()}

    def with_more(self, keys: Iterable[tuple[int, Key]]) -> "Shelves":
        """These keys and more of them."""
        made = Shelves(())
        made._listed = dict(self._listed)
        for split, pairs in _shelved(keys).items():
            index = made._listed[split] = dict(self._listed.get(split, {}))
            for under, needle in pairs:
                index[under] = (*index.get(under, ()), needle)
        return made

    def places(
        self, haystack: str, words: Callable[[Split], frozenset[str]]
    ) -> Iterator[tuple[int, int, int]]:
        """The number of each key that stands in `haystack`, with its first place there.

        `words` gives what a split makes of the haystack.
        """
        edges = None
        for split, index in self._listed.items():
            for there in index.keys() & words(split):
                for needle, number, how in index[there]:
                    if needle in haystack:
                        edges = edges or Edges(haystack, in_word)
                        at = _FIRST[how](needle, haystack, edges)
                        if at >= 0:
                            yield number, at, at + len(needle)


def _shelved(keys: Iterable[tuple[int, Key]]) -> Mapping[Split, list[tuple[str, _Needle]]]:
    shelved: defaultdict[Split, list[tuple[str, _Needle]]] = defaultdict(list)
    for number, (text, _, how) in keys:
        if text:
            split, under = _shelf(text, how)
            shelved[split].append((under, (text, number, how)))
    return shelved


def _shelf(text: str, how: How) -> tuple[Split, str]:
    """Where a key is listed."""
    split = _WHOLE.get(how)
    if split is not None:
        if text.isascii() and text.isalnum():  # most are one word
            return split, text
        if words := split(text):
            return split, max(words, key=len)
    if around := next(_around_blanks(text), ""):
        return _around_blanks, around
    pairs = pairs_of(text)
    return (pairs_of, pairs[0]) if pairs else (_starts, text[:2])


_WHOLE: Final[Mapping[How, Callable[[str], list[str]]]] = {
    "word": words_of,
    "ascii": ascii_words_of,
}


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
