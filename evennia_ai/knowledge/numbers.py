"""Numbers: which ones a text says, in digits or in words, however they are set apart.

`4711`, `4-7-1-1`, `4,711`, `four seven one one`, `forty-seven eleven` and `four thousand seven
hundred and eleven` say the same. English words alone. Texts come folded, as `leaks.folded` makes
them.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

_SMALL: Final = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen"),
    *("eighteen", "nineteen"),
)
_TENS: Final = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_VALUES: Final = {
    **{word: value for value, word in enumerate(_SMALL)},
    **{word: 10 * value for value, word in enumerate(_TENS, start=2)},
    "nought": 0,
}
_TIMES: Final = {"dozen": 12, "hundred": 100, "thousand": 1000, "million": 1_000_000}
_PIECE: Final = re.compile(r"\d+|[^\W\d_]+")
_WORDS: Final = "|".join(sorted((*_VALUES, *_TIMES), key=len, reverse=True))
_WORD: Final = re.compile(_WORDS)
_GLUED: Final = re.compile(rf"\b(?:{_WORDS}){{2,}}\b")
# Four letters and more that stand alone, with little between them.
_APART: Final = re.compile(r"(?<![^\W_])[^\W\d_](?:[\W_]{1,3}[^\W\d_](?![^\W_])){3,}")
_BETWEEN: Final = re.compile(r"[\W_]+")
_LONGEST: Final = 400
"""Digits of one number that are looked at; a longer one is cut."""


def numbers_in(text: str) -> frozenset[str]:
    """The numbers of two digits and more, each as its digits, without zeros before them."""
    found = {one.lstrip("0") for group in _groups(text) for one in _readings(group)}
    return frozenset(one for one in found if len(one) > 1)


def spelt_together(text: str) -> str:
    """`text` with its number words as words: `f o u r` and `foursevenone` are torn or glued."""
    joined = _APART.sub(lambda apart: f" {_BETWEEN.sub('', apart[0])} ", text)
    return _GLUED.sub(lambda glued: " ".join(_WORD.findall(glued[0])), joined)


def digits_in(text: str) -> tuple[str, ...]:
    """What each group of numbers says when its digits are put side by side."""
    return tuple("".join(_spelt(group))[:_LONGEST] for group in _groups(text))


def _groups(text: str) -> Iterator[list[str]]:
    """Pieces that say numbers, those in a row together; a number's "and" parts nothing."""
    group: list[str] = []
    for match in _PIECE.finditer(text):
        piece = match[0]
        if piece.isdigit() or piece in _VALUES or piece in _TIMES:
            group.append(piece)
        elif piece != "and" and group:
            yield group
            group = []
    if group:
        yield group


def _readings(group: list[str]) -> Iterator[str]:
    spelt = _spelt(group)
    yield from spelt
    yield "".join(spelt)[:_LONGEST]


def _spelt(group: list[str]) -> list[str]:
    """The numbers of a group one after the other, those in words by their value."""
    found: list[str] = []
    words: list[str] = []
    for piece in group:
        if piece.isdigit():
            found += [*_in_words(words), piece[:_LONGEST]]
            words = []
        else:
            words.append(piece)
    return [*found, *_in_words(words)]


def _in_words(words: Iterable[str]) -> list[str]:
    """The values of number words: `forty seven eleven` are 47 and 11."""
    counting = _Counting()
    for word in words:
        if word in _TIMES:
            counting.times(_TIMES[word])
        else:
            counting.plus(_VALUES[word])
    return [str(value) for value in counting.ended()]


class _Counting:
    """Puts numbers together from their words: what is over the thousands, and what is below."""

    def __init__(self) -> None:
        self._found: list[int] = []
        self._thousands = 0
        self._below: int | None = None
        self._takes_any = False

    def times(self, factor: int) -> None:
        """`hundred` and the like: of what stands before it, else of one."""
        below = (1 if self._below is None else self._below) * factor
        if factor >= 1000:
            self._thousands, self._below = self._thousands + below, None
        else:
            self._below = below
        self._takes_any = True

    def plus(self, value: int) -> None:
        """A value that joins what stands before it, or begins a number of its own."""
        if self._below is not None and not self._joins(value):
            self._end()
        self._below = value + (self._below or 0)
        self._takes_any = False

    def ended(self) -> list[int]:
        """The numbers."""
        self._end()
        return self._found

    def _joins(self, value: int) -> bool:
        below = self._below or 0
        return self._takes_any or (below % 100 >= 20 and below % 10 == 0 and 0 < value < 10)

    def _end(self) -> None:
        if self._below is not None or self._thousands:
            self._found.append(self._thousands + (self._below or 0))
        self._thousands, self._below = 0, None
