"""Shelves: the keys of a book, each listed under something that stands in every text that has it.

A key that must stand as a whole word is listed under its longest word, a phrase that may stand
anywhere under a blank of it with the letters around, a key of a script without blanks under its
first pair of characters, any other under the two it begins with. So a search asks only for the keys
that may be there.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import compress, pairwise
from typing import Final, Literal, NamedTuple, TypeVar

from evennia_ai.engine.text.words import (
    WordStarts,
    find_ascii_word,
    find_whole_word,
    indexed_pairs,
    is_in_word,
    split_ascii_words,
    split_words,
)

# As a whole word of any script; bounded by what is no part of an ASCII word; anywhere.
How = Literal["word", "ascii", "part"]


class Key(NamedTuple):
    """A key as it is looked for: `text` is in normal form, and folded unless `sensitive`."""

    text: str
    sensitive: bool
    how: How


# A key's text, its number and how it is looked for.
_Needle = tuple[str, int, How]
_Shelved = tuple[list[str], list[_Needle]]
# What takes a text apart into that under which keys are listed.
Split = Callable[[str], Iterable[str]]
_Name = TypeVar("_Name", bound=Hashable)
_Item = TypeVar("_Item", int, _Needle)


def grouped(names: Sequence[_Name], items: Sequence[_Item]) -> dict[_Name, tuple[_Item, ...]]:
    """The items that stand beside each name, each once, from low to high.

    Most names have one, so all are taken to have the last one first.
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
    """Keys by how they are found."""

    __slots__ = ("_listed",)

    def __init__(self, keys: Iterable[tuple[int, Key]]) -> None:
        self._listed = {split: grouped(*both) for split, both in _shelved(keys).items()}

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
                        edges = edges or WordStarts(haystack, is_in_word)
                        at = _FIRST[how](needle, haystack, edges)
                        if at >= 0:
                            yield number, at, at + len(needle)


def _shelved(keys: Iterable[tuple[int, Key]]) -> Mapping[Split, _Shelved]:
    """For each split what the keys are listed under, and beside each the key."""
    shelved: defaultdict[Split, _Shelved] = defaultdict(lambda: ([], []))
    for number, (text, _, how) in keys:
        if not text:
            continue
        is_word = how in _WHOLE and text.isascii() and text.isalnum()  # most are one
        split, under = (_WHOLE[how], text) if is_word else _shelf(text, how)
        unders, needles = shelved[split]
        unders.append(under)
        needles.append((text, number, how))
    return shelved


def _shelf(text: str, how: How) -> tuple[Split, str]:
    """Where a key is listed."""
    split = _WHOLE.get(how)
    if split is not None and (words := split(text)):
        return split, max(words, key=len)
    for blanks, around in _BLANKS.items():
        if blank := _blank_of(text, around):
            return blanks, blank
    pairs = indexed_pairs(text)
    return (indexed_pairs, pairs[0]) if pairs else (_starts, text[:2])


_WHOLE: Final[Mapping[How, Callable[[str], list[str]]]] = {
    "word": split_words,
    "ascii": split_ascii_words,
}


def _blanks(text: str, around: int) -> Iterator[str]:
    """Each blank with the end of the word before it and the start of the one behind."""
    words = text.split(" ")
    ends, starts = [word[-around:] for word in words], [word[:around] for word in words[1:]]
    return map(" ".join, zip(ends, starts, strict=False))


def _blank_of(key: str, around: int) -> str:
    """The longest blank of a key that any text with the key has; empty where there is none.

    A longer word of the text may begin in front of the key's first one, and end behind its last.
    """
    words = key.split(" ")
    is_sure = [len(word) >= around for word in words]
    is_sure[1:-1] = [True] * (len(words) - 2)
    blanks = compress(_blanks(key, around), map(all, pairwise(is_sure)))
    return max(blanks, key=len, default="")


def _starts(text: str) -> Iterator[str]:
    """What a key in `text` may begin with: each character, and each two."""
    yield from text
    yield from map("".join, pairwise(text))


# Phrases are listed under the first of these that they have.
_BLANKS: Final[Mapping[Split, int]] = {partial(_blanks, around=n): n for n in (3, 1)}

_FIRST: Final[Mapping[How, Callable[[str, str, WordStarts], int]]] = {
    "word": find_whole_word,
    "ascii": lambda key, text, _: find_ascii_word(key, text),
    "part": lambda key, text, _: text.find(key),
}
