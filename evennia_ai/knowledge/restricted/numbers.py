"""Numbers: which ones a text says, in whatever form, however they are set apart.

`4711`, `4-7-1-1`, `4,711`, `four seven one one`, `forty-seven eleven`, `4711th` and `four thousand
seven hundred and eleventh` say the same, and so do `9`, `nine`, `ninth`, `IX`, `9d` and
`ninepence`. What a single word says is for `number_words`. One that is a number only at times, as
`one` and `I`, counts beside a word beside which the same number stands. Texts come folded, as
`letters_folded` makes them, where they are compared; the places of numbers are found in any text.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from evennia_ai.knowledge.restricted.number_words import (
    AFTER_A_NUMBER,
    NumberPart,
    NumberWord,
    number_word,
)

_PIECE: Final = re.compile(r"\d+|[^\W\d_]+")
# Three letters and more that stand alone, with little between them.
_APART: Final = re.compile(r"(?<![^\W_])[^\W\d_](?:[\W_]{1,3}[^\W\d_](?![^\W_])){2,}")
_BETWEEN: Final = re.compile(r"[\W_]+")
_LONGEST: Final = 400
"""Digits of one number that are looked at; a longer one is cut."""
_BESIDE: Final = 3
"""Words before and after a number that tell what it counts."""
# Words that stand beside anything and tell nothing.
COMMON: Final = frozenset(
    {
        *("about", "above", "after", "again", "all", "also", "although", "always", "and"),
        *("another", "any", "are", "because", "been", "before", "behind", "being", "below"),
        *("beside", "between", "both", "but", "can", "could", "did", "does", "doing", "down"),
        *("each", "either", "ever", "every", "few", "for", "from", "had", "has", "have"),
        *("having", "her", "here", "him", "his", "how", "into", "its", "just", "least", "less"),
        *("many", "may", "might", "mine", "more", "most", "much", "must", "neither", "never"),
        *("nor", "not", "now", "off", "one", "ones", "only", "onto", "other", "others", "our"),
        *("out", "over", "own", "same", "shall", "she", "should", "since", "some", "such"),
        *("than", "that", "the", "their", "them", "then", "there", "these", "they", "this"),
        *("those", "though", "too", "under", "until", "upon", "very", "was", "were", "what"),
        *("when", "where", "which", "while", "who", "whom", "whose", "why", "will", "with"),
        *("without", "would", "yet", "you", "your"),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a text says a number, and which."""

    start: int
    end: int
    values: frozenset[str]
    """Its readings, each as its digits without zeros before them."""
    joined: str
    """All its digits side by side."""
    is_sure: bool
    near: frozenset[str]
    """Words beside it that tell what is counted."""
    is_numbered: bool = False
    """Whether it is a Roman numeral right behind such a word: `barrel I`."""

    @property
    def counted(self) -> frozenset[tuple[str, str]]:
        """Each reading beside each of the words."""
        return frozenset((value, word) for value in self.values for word in self.near)


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """The numbers of a text."""

    long: frozenset[str]
    """Those of two digits and more that are surely numbers."""
    short: frozenset[str]
    """Those of one digit that are surely numbers."""
    counted: frozenset[tuple[str, str]]
    """All, also those that may be none, each beside a word that tells what is counted."""


def all_numbers(text: str) -> Numbers:
    """The numbers of a folded text, by how sure they are."""
    return numbers_of(places(text))


def numbers_of(found: Sequence[Place]) -> Numbers:
    """The numbers at these places, by how sure they are."""
    sure = {value for place in found if place.is_sure for value in place.values}
    return Numbers(
        long=frozenset(one for one in sure if len(one) > 1),
        short=frozenset(one for one in sure if len(one) == 1),
        counted=frozenset(pair for place in found for pair in place.counted),
    )


def numbers_in(text: str) -> frozenset[str]:
    """The numbers of two digits and more, each as its digits, without zeros before them."""
    return all_numbers(text).long


def digits_in(text: str) -> tuple[str, ...]:
    """What each group of numbers says when its digits are put side by side."""
    return tuple(place.joined for place in places(text) if place.is_sure)


def spelt_together(text: str) -> str:
    """`text` with words that are torn into their letters, as `f o u r`, in one piece."""
    return _APART.sub(lambda apart: f" {_BETWEEN.sub('', apart[0])} ", text)


def places(text: str) -> tuple[Place, ...]:
    """The places where a text says numbers, in their order."""
    pieces = [_read(match) for match in _PIECE.finditer(text)]
    return tuple(_place(pieces, group) for group in _groups(pieces))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Piece:
    """A run of digits or of letters, and what number it says."""

    text: str
    start: int
    end: int
    said: NumberWord | None

    @property
    def is_sure(self) -> bool:
        return self.said is not None and self.said.is_sure


def _read(match: re.Match[str]) -> _Piece:
    text = match[0]
    if text[0].isdecimal():
        said: NumberWord | None = NumberWord(
            parts=(NumberPart(kind="digits", value=text[:_LONGEST]),)
        )
    else:
        said = number_word(text)
    return _Piece(text=text.casefold(), start=match.start(), end=match.end(), said=said)


def _groups(pieces: Sequence[_Piece]) -> Iterator[list[int]]:
    """The places of pieces that say numbers, those in a row together.

    A number's "and" parts nothing. A Roman numeral that may be a word stands alone, and what is
    glued to digits, as in `9d`, is none.
    """
    group: list[int] = []
    for place, piece in enumerate(pieces):
        if _joins(pieces, place, group):
            group.append(place)
        elif piece.text != "and" or not group:
            if group:
                yield group
            group = []
            if _stands_alone(pieces, place):
                yield [place]
    if group:
        yield group


def _joins(pieces: Sequence[_Piece], place: int, group: Sequence[int]) -> bool:
    piece = pieces[place]
    if piece.said is None or (piece.text in AFTER_A_NUMBER and not group):
        return False
    if piece.said.is_roman:
        return piece.said.is_sure and not _is_glued(pieces, place)
    return True


def _is_glued(pieces: Sequence[_Piece], place: int) -> bool:
    """Whether a piece stands right behind digits."""
    before = pieces[place - 1] if place else None
    return before is not None and before.end == pieces[place].start and before.text[0].isdecimal()


def _stands_alone(pieces: Sequence[_Piece], place: int) -> bool:
    """Whether a piece is a Roman numeral that may be a word, and no unit behind a number."""
    said = pieces[place].said
    is_behind_number = place > 0 and pieces[place - 1].is_sure
    return said is not None and said.is_roman and not said.is_sure and not is_behind_number


def _place(pieces: Sequence[_Piece], group: Sequence[int]) -> Place:
    first, last = group[0], group[-1]
    parts = [part for place in group for part in _parts(pieces[place])]
    values = set(_readings(parts))
    if len(group) > 1 and pieces[last].text == "second":  # `thirty second`: of time, or the 32nd
        values |= set(_readings(parts[:-1]))
    # `one second` and `first one` are no numbers for being two.
    is_sure = len(group) > 2 or any(pieces[place].is_sure for place in group)
    said = pieces[first].said
    is_letter = said is not None and said.is_roman and not is_sure
    is_pronoun = is_letter and pieces[first].text == "i"
    near = _near(pieces, first, last, is_sure=is_sure, is_pronoun=is_pronoun)
    return Place(
        start=pieces[first].start,
        end=pieces[last].end,
        values=frozenset(values),
        joined="".join(_spelt(parts))[:_LONGEST],
        is_sure=is_sure,
        near=near,
        is_numbered=is_letter and first > 0 and bool(_telling(pieces[first - 1 : first])),
    )


def _parts(piece: _Piece) -> tuple[NumberPart, ...]:
    return piece.said.parts if piece.said is not None else ()


def _near(
    pieces: Sequence[_Piece], first: int, last: int, *, is_sure: bool, is_pronoun: bool
) -> frozenset[str]:
    """The words that tell what is counted: of what may be no number the next ones alone.

    What stands behind `I` is what somebody does.
    """
    before = pieces[max(0, first - _BESIDE) : first][::-1]
    after = pieces[last + 1 : last + 1 + _BESIDE]
    if is_sure:
        return frozenset(_telling([*before, *after]))
    return frozenset([*_telling(before[:1]), *([] if is_pronoun else _telling(after)[:1])])


def _telling(pieces: Sequence[_Piece]) -> list[str]:
    """Those words that tell something, in the singular."""
    return [
        piece.text.removesuffix("s")
        for piece in pieces
        if piece.said is None and len(piece.text) > 2 and piece.text not in COMMON
    ]


def _readings(parts: Sequence[NumberPart]) -> Iterator[str]:
    spelt = _spelt(parts)
    for one in (*spelt, "".join(spelt)[:_LONGEST]):
        yield one.lstrip("0") or "0"


def _spelt(parts: Sequence[NumberPart]) -> list[str]:
    """The numbers of a group one after the other, those in words by their value."""
    found: list[str] = []
    words: list[NumberPart] = []
    following = [*parts[1:], None]
    for part, after in zip(parts, following, strict=True):
        is_counted = after is not None and after.kind == "times" and len(part.value) < 10
        if part.kind == "digits" and not is_counted:
            found += [*_in_words(words), part.value]
            words = []
        elif part.kind == "digits":  # `4 thousand`
            found += _in_words(words)
            words = [NumberPart(kind="value", value=part.value)]
        else:
            words.append(part)
    return [*found, *_in_words(words)]


def _in_words(words: Sequence[NumberPart]) -> list[str]:
    """The values of number words: `forty seven eleven` are 47 and 11."""
    counting = _Counting()
    for word in words:
        if word.kind == "times":
            counting.times(int(word.value))
        else:
            counting.plus(int(word.value))
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
