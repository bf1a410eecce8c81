"""Find numbers in a text, in any form in which people write them.

`4711`, `4-7-1-1`, `4,711`, `four seven one one`, `forty-seven eleven`, `4711th` and `four thousand
seven hundred and eleventh` are the same number. So are `9`, `nine`, `ninth`, `IX`, `9d` and
`ninepence`. A word may be a number, an ordinal, a Roman numeral, or several numbers or a number and
a unit in one word (`fortyseven`, `sixfold`). Only English is supported.

Some words are numbers only in some texts. Such unsure numbers are `one`, `first`, `double`, a Roman
numeral of one letter (`I`), and a Roman numeral that is also a word or a unit (`mix`, `cm`). They
only count if the same word is next to them in both texts that are compared. Texts must be
normalised before they are compared. Numbers can be found in any text.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from evennia_ai.engine.text.words import COMMON_WORDS

Kind = Literal["digits", "value", "times"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberPart:
    """A part of a written number, such as "forty" in "forty-seven".

    Its kind is a sequence of digits, a value, or a factor that multiplies the part before it.
    """

    kind: Kind
    value: str
    """The value of the part in digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberWord:
    """A word that means a number, with the parts of that number."""

    parts: tuple[NumberPart, ...]
    is_sure: bool = True
    """False if the word means something else in most texts."""
    is_roman: bool = False


_SMALL: Final = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen"),
    *("eighteen", "nineteen"),
)
_TENS: Final = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_ORDINALS: Final = (
    *("zeroth", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"),
    *("ninth", "tenth", "eleventh", "twelfth"),
    *(f"{word}th" for word in _SMALL[13:]),
)
_VALUES: Final = {
    **{word: value for value, word in enumerate(_SMALL)},
    **{word: value for value, word in enumerate(_ORDINALS)},
    **{word: 10 * value for value, word in enumerate(_TENS, start=2)},
    **{f"{word[:-1]}ieth": 10 * value for value, word in enumerate(_TENS, start=2)},
    **{f"{word[:-1]}ies": 10 * value for value, word in enumerate(_TENS, start=2)},
    **dict.fromkeys(("nought", "naught"), 0),
    **dict.fromkeys(("once", "single"), 1),
    **dict.fromkeys(("twice", "double", "twofold", "tuppence", "tuppenny"), 2),
    **dict.fromkeys(("thrice", "triple", "treble", "thruppence", "thruppenny"), 3),
    "quadruple": 4,
    "nineth": 9,
    "fourty": 40,
}
_TIMES: Final = {
    **dict.fromkeys(("dozen", "dozenth"), 12),
    "score": 20,
    **dict.fromkeys(("hundred", "hundredth"), 100),
    **dict.fromkeys(("thousand", "thousandth"), 1000),
    **dict.fromkeys(("million", "millionth"), 1_000_000),
}
AFTER_A_NUMBER: Final = frozenset({"score"})
"""Words that are numbers only after another number, as in `three score`."""
_UNSURE: Final = frozenset({"one", "first", "second", "once", "single", "double", "treble"})

_UNITS: Final = (
    *("pence", "penny", "pennies", "pennyworth", "pound", "pounder", "shilling", "bob", "crown"),
    *("guinea", "fold", "score", "some", "hour", "day", "night", "week", "month", "year", "minute"),
    *("mile", "foot", "feet", "inch", "inches", "yard", "fathom", "league", "knot", "ounce"),
    *("pint", "quart", "gallon", "ton", "tonne", "weight", "stone", "barrel", "sack", "step"),
    *("stair", "door", "man", "men", "way", "part", "side", "sided", "times", "pin", "piece"),
    *("gram", "kilo", "kg", "cm", "mm", "km", "litre", "liter", "metre", "meter", "percent"),
)
# Words that begin like a number but are none.
_OTHERWISE: Final = frozenset({"nineveh", "fourier", "fourchette", "eighties"})
# Roman numerals that are also common words or units, so they may not mean a number.
_ROMAN_TOO: Final = frozenset(
    {
        *("mix", "di", "dix", "div", "liv", "li", "mi", "mm", "mmm", "cm", "ml", "cl", "dl", "cc"),
        *("cd", "dc", "xl", "mc", "md", "mv", "cv", "cx", "ci", "mci"),
    }
)

_CARDINALS: Final = {*_SMALL, *_TENS, *_TIMES} - {"hundredth", "thousandth", "millionth", "dozenth"}
_WORD: Final = re.compile("|".join(sorted(_CARDINALS, key=len, reverse=True)))
# Matches the endings of number words. `h` ends `twentyeighth`, which begins with `twentyeight`, and
# `th` ends `twentyseventh`.
_UNIT: Final = re.compile(rf"(?:{'|'.join(_UNITS)})s?|s|h|th|ish")
# Number words to which the counted thing may be joined, as in `ninepins` and `sevensacks`.
_OPEN: Final = frozenset({*_SMALL, *_TENS}) - {"zero", "one", "ten"}
_ROMAN: Final = re.compile(r"(?=[ivxlcdm])(m{0,3})(cm|cd|d?c{0,3})(xc|xl|l?x{0,3})(ix|iv|v?i{0,4})")
_ROMAN_ORDINAL: Final = re.compile(r"([ivxlcdm]*[vx][ivxlcdm]*)th")
_ROMAN_VALUES: Final = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100, "d": 500, "m": 1000}


@lru_cache(maxsize=8192)
def parse_number_word(word: str) -> NumberWord | None:
    """Return the number that a word of letters means; None if it means none.

    Letter case is ignored.
    """
    folded = word.casefold()
    if folded in _VALUES or folded in _TIMES:
        return NumberWord(parts=(_part(folded),), is_sure=folded not in _UNSURE)
    if parts := _joined_parts(folded):
        return NumberWord(parts=parts)
    return _roman(folded)


def _part(word: str) -> NumberPart:
    if word in _TIMES:
        return NumberPart(kind="times", value=str(_TIMES[word]))
    return NumberPart(kind="value", value=str(_VALUES[word]))


def _joined_parts(word: str) -> tuple[NumberPart, ...]:
    """Return the parts of a number in one word, such as `fortyseven`, also before a noun."""
    words: list[str] = []
    at = 0
    while word[at:] not in _VALUES and (found := _WORD.match(word, at)):
        words.append(found[0])
        at = found.end()
    rest = word[at:]
    if not words or words[0] in AFTER_A_NUMBER or word in _OTHERWISE:
        return ()
    if rest in _VALUES:  # an ordinal at the end, as in `twentyfirst`
        words, rest = [*words, rest], ""
    if rest == "s" and (words[-1] == "one" or words[-1] in _TIMES):
        return ()  # `ones` and `hundreds` mean no certain number
    is_open = len(words) > 1 or words[0] in _OPEN
    return tuple(map(_part, words)) if is_open or _UNIT.fullmatch(rest) else ()


def _roman(word: str) -> NumberWord | None:
    ordinal = _ROMAN_ORDINAL.fullmatch(word)
    letters = ordinal[1] if ordinal else word
    if not _ROMAN.fullmatch(letters):
        return None
    values = [_ROMAN_VALUES[letter] for letter in letters]
    following = [*values[1:], 0]
    total = sum(
        -value if value < after else value for value, after in zip(values, following, strict=True)
    )
    return NumberWord(
        parts=(NumberPart(kind="digits", value=str(total)),),
        is_sure=len(letters) > 1 and word not in _ROMAN_TOO,
        is_roman=True,
    )


_PIECE: Final = re.compile(r"\d+|[^\W\d_]+")
# Matches three or more single letters with few other characters between them, as in `f o u r`.
_APART: Final = re.compile(r"(?<![^\W_])[^\W\d_](?:[\W_]{1,3}[^\W\d_](?![^\W_])){2,}")
_BETWEEN: Final = re.compile(r"[\W_]+")
_LONGEST: Final = 400  # the maximum number of digits; more are cut off
# How many words before and after a number may name the thing that it counts.
_BESIDE: Final = 3
MORE_COMMON_WORDS: Final = COMMON_WORDS | {
    *("above", "again", "although", "always", "another", "behind", "being", "below", "beside"),
    *("between", "both", "doing", "down", "each", "either", "ever", "every", "few", "having"),
    *("least", "less", "many", "may", "might", "mine", "most", "much", "must", "neither", "never"),
    *("nor", "now", "off", "ones", "only", "onto", "other", "others", "own", "same", "shall"),
    *("since", "those", "though", "until", "upon", "whom", "whose", "without", "yet"),
}
"""Words that may be next to any number, so they do not identify what is counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundNumber:
    """A number that was found in a text, with its possible values and the words near it."""

    start: int
    end: int
    values: frozenset[str]
    """The possible values of the number, each as digits without leading zeros."""
    joined: str
    """All digits of the number in a row."""
    is_sure: bool
    near: frozenset[str]
    """Words near the number that may name what is counted."""
    is_numbered: bool = False
    """True for a Roman numeral after the word that it numbers, as in `barrel I`."""

    @property
    def counted(self) -> frozenset[tuple[str, str]]:
        """Return pairs of each possible value of the number and each word near it."""
        return frozenset((value, word) for value in self.values for word in self.near)


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """The numbers of a text: the sure ones, long and short, and all with the words near them."""

    long: frozenset[str]
    """Numbers with two or more digits, except unsure ones such as "mix"."""
    short: frozenset[str]
    """Numbers with one digit, except unsure ones such as "one"."""
    counted: frozenset[tuple[str, str]]
    """All numbers, including unsure ones, each in pairs with the words that may be counted."""


def numbers_in_text(text: str) -> Numbers:
    """Return the numbers of a normalised text, in three groups."""
    return group_numbers(find_numbers(text))


def group_numbers(found: Sequence[FoundNumber]) -> Numbers:
    """Sort found numbers into groups: sure ones by length, and all with the words near them."""
    sure = {value for place in found if place.is_sure for value in place.values}
    return Numbers(
        long=frozenset(one for one in sure if len(one) > 1),
        short=frozenset(one for one in sure if len(one) == 1),
        counted=frozenset(pair for place in found for pair in place.counted),
    )


def join_spelled_letters(text: str) -> str:
    """Join words that are spelled in single letters (`f o u r`) in a text."""
    return _APART.sub(lambda apart: f" {_BETWEEN.sub('', apart[0])} ", text)


def find_numbers(text: str) -> tuple[FoundNumber, ...]:
    """Return the numbers in a text, in order and in any form."""
    pieces: list[_Piece] = []
    for match in _PIECE.finditer(text):
        word = match[0]
        digits = NumberWord(parts=(NumberPart(kind="digits", value=word[:_LONGEST]),))
        said = digits if word[0].isdecimal() else parse_number_word(word)
        start, end = match.start(), match.end()
        pieces.append(_Piece(text=word.casefold(), start=start, end=end, said=said))
    return tuple(_make_number(pieces, group) for group in _groups(pieces))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Piece:
    """A run of digits or letters in a text, and the number that it means; None if it means none."""

    text: str
    start: int
    end: int
    said: NumberWord | None

    @property
    def is_sure(self) -> bool:
        return self.said is not None and self.said.is_sure


def _groups(pieces: Sequence[_Piece]) -> Iterator[list[int]]:
    """Yield groups of neighbouring number words. Each group is a list of indices of `pieces`.

    An "and" inside a number does not end the group. A Roman numeral that may be a word is a group
    of its own. Right after digits, as in `9d`, such a numeral is a unit and no number.
    """
    group: list[int] = []
    for place, piece in enumerate(pieces):
        if _joins(pieces, place, group):
            group.append(place)
        elif piece.text != "and" or not group:
            if group:
                yield group
            group = []
            said = piece.said
            # After a number such a numeral is a unit, as in `5 cm`.
            after_number = place > 0 and pieces[place - 1].is_sure
            if said is not None and said.is_roman and not said.is_sure and not after_number:
                yield [place]
    if group:
        yield group


def _joins(pieces: Sequence[_Piece], place: int, group: Sequence[int]) -> bool:
    """True if the piece at `place` is a number that begins a group or continues `group`."""
    piece = pieces[place]
    if piece.said is None or (piece.text in AFTER_A_NUMBER and not group):
        return False
    if not piece.said.is_roman:
        return True
    before = pieces[place - 1] if place else None
    after_digits = before is not None and before.end == piece.start and before.text[0].isdecimal()
    return piece.said.is_sure and not after_digits


def _make_number(pieces: Sequence[_Piece], group: Sequence[int]) -> FoundNumber:
    """Return the number that a group of neighbouring number words means."""
    first, last = group[0], group[-1]
    parts = [part for place in group if (said := pieces[place].said) for part in said.parts]
    values = set(_readings(parts))
    # `thirty second` may mean 30 seconds or the 32nd, so it has both values.
    if len(group) > 1 and pieces[last].text == "second":
        values |= set(_readings(parts[:-1]))
    # Words such as `one` and `second` also have other meanings. A group of one or two such words,
    # for example `one second` or `first one`, may therefore be no number. A group of three words
    # is surely a number, and so is a group with a word that has no other meaning (`twelve`).
    is_sure = len(group) > 2 or any(pieces[place].is_sure for place in group)
    said = pieces[first].said
    is_letter = said is not None and said.is_roman and not is_sure
    is_pronoun = is_letter and pieces[first].text == "i"
    near = _nearby_words(pieces, first, last, is_sure=is_sure, is_pronoun=is_pronoun)
    return FoundNumber(
        start=pieces[first].start,
        end=pieces[last].end,
        values=frozenset(values),
        joined="".join(_spell_out(parts))[:_LONGEST],
        is_sure=is_sure,
        near=near,
        is_numbered=is_letter and first > 0 and bool(_nouns(pieces[first - 1 : first])),
    )


def _nearby_words(
    pieces: Sequence[_Piece], first: int, last: int, *, is_sure: bool, is_pronoun: bool
) -> frozenset[str]:
    """Return the words near a number that may name what it counts.

    For an unsure number these are only the adjacent words. The word after the pronoun `I` is left
    out, because it is a verb.
    """
    before = pieces[max(0, first - _BESIDE) : first][::-1]
    after = pieces[last + 1 : last + 1 + _BESIDE]
    if is_sure:
        return frozenset(_nouns([*before, *after]))
    return frozenset([*_nouns(before[:1]), *([] if is_pronoun else _nouns(after)[:1])])


def _nouns(pieces: Sequence[_Piece]) -> list[str]:
    """Return the words that may be the noun of a number: "barrel" for `two barrels`."""
    return [
        piece.text.removesuffix("s")
        for piece in pieces
        if piece.said is None and len(piece.text) > 2 and piece.text not in MORE_COMMON_WORDS
    ]


def _readings(parts: Sequence[NumberPart]) -> Iterator[str]:
    """Yield the possible values of a written number: each number in it, and all digits joined."""
    digits = _spell_out(parts)
    for one in (*digits, "".join(digits)[:_LONGEST]):
        yield one.lstrip("0") or "0"


def _spell_out(parts: Sequence[NumberPart]) -> list[str]:
    """Return the numbers in a group of number parts as digits, in order."""
    found: list[str] = []
    words: list[NumberPart] = []
    following = [*parts[1:], None]
    for part, after in zip(parts, following, strict=True):
        is_counted = after is not None and after.kind == "times" and len(part.value) < 10
        if part.kind == "digits" and not is_counted:
            found += [*_word_values(words), part.value]
            words = []
        elif part.kind == "digits":  # digits before a factor, as in `4 thousand`
            found += _word_values(words)
            words = [NumberPart(kind="value", value=part.value)]
        else:
            words.append(part)
    return [*found, *_word_values(words)]


def _word_values(words: Sequence[NumberPart]) -> list[str]:
    """Return the values of number words. For example, `forty seven eleven` gives 47 and 11."""
    found: list[int] = []
    thousands, below, takes_any = 0, None, False
    for word in words:
        value = int(word.value)
        # A factor multiplies the value before it. Without such a value, "hundred" means 100.
        if word.kind == "times":
            below = (1 if below is None else below) * value
            if value >= 1000:
                thousands, below = thousands + below, None
            takes_any = True
            continue
        # "forty seven" is one number. But "seven forty" is two numbers, so the first number ends
        # here.
        is_ones = below is not None and below % 100 >= 20 and below % 10 == 0 and 0 < value < 10
        if below is not None and not (takes_any or is_ones):
            found.append(thousands + below)
            thousands, below = 0, None
        below, takes_any = value + (below or 0), False
    if below is not None or thousands:
        found.append(thousands + (below or 0))
    return [str(value) for value in found]
