"""Number words: what number one word of a text says, in any of the forms in which people write it.

Words (`nine`, `dozen`), ordinals (`ninth`), words glued together or to a unit (`fortyseven`,
`ninepence`, `sixfold`), and Roman numerals (`XIV`). English alone. Some words are numbers only at
times: `one`, `first`, `second`, `double`, a Roman numeral of one letter (`I`), and one that is a
word or a unit as well (`mix`, `cm`). Those are told as unsure: beside which word they stand decides
about them, in `numbers`.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

Kind = Literal["digits", "value", "times"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberPart:
    """A part of a number: digits as they are written, a value, or a factor of what is before it."""

    kind: Kind
    value: str
    """In digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberWord:
    """What a word says of a number."""

    parts: tuple[NumberPart, ...]
    is_sure: bool = True
    """False: it is a number in some texts, and something else in most."""
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
"""Words that say a number only behind another one: `three score`."""
_UNSURE: Final = frozenset({"one", "first", "second", "once", "single", "double", "treble"})

_UNITS: Final = (
    *("pence", "penny", "pennies", "pennyworth", "pound", "pounder", "shilling", "bob", "crown"),
    *("guinea", "fold", "score", "some", "hour", "day", "night", "week", "month", "year", "minute"),
    *("mile", "foot", "feet", "inch", "inches", "yard", "fathom", "league", "knot", "ounce"),
    *("pint", "quart", "gallon", "ton", "tonne", "weight", "stone", "barrel", "sack", "step"),
    *("stair", "door", "man", "men", "way", "part", "side", "sided", "times", "pin", "piece"),
    *("gram", "kilo", "kg", "cm", "mm", "km", "litre", "liter", "metre", "meter", "percent"),
)
# Words that begin as a number does and are none.
_OTHERWISE: Final = frozenset({"nineveh", "fourier", "fourchette", "eighties"})
# Roman numerals that are a word of their own, or a unit, as often.
_ROMAN_TOO: Final = frozenset(
    {
        *("mix", "di", "dix", "div", "liv", "li", "mi", "mm", "mmm", "cm", "ml", "cl", "dl", "cc"),
        *("cd", "dc", "xl", "mc", "md", "mv", "cv", "cx", "ci", "mci"),
    }
)

_CARDINALS: Final = {*_SMALL, *_TENS, *_TIMES} - {"hundredth", "thousandth", "millionth", "dozenth"}
_WORD: Final = re.compile("|".join(sorted(_CARDINALS, key=len, reverse=True)))
# `h` and `th` are the ends of `twentyeighth` and `twentyseventh`.
_UNIT: Final = re.compile(rf"(?:{'|'.join(_UNITS)})s?|s|h|th|ish")
# From these on whatever follows is glued to a number: `ninepins`, `sevensacks`.
_OPEN: Final = frozenset({*_SMALL, *_TENS}) - {"zero", "one", "ten"}
_ROMAN: Final = re.compile(r"(?=[ivxlcdm])(m{0,3})(cm|cd|d?c{0,3})(xc|xl|l?x{0,3})(ix|iv|v?i{0,4})")
_ROMAN_ORDINAL: Final = re.compile(r"([ivxlcdm]*[vx][ivxlcdm]*)th")
_ROMAN_VALUES: Final = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100, "d": 500, "m": 1000}


@lru_cache(maxsize=8192)
def number_word(word: str) -> NumberWord | None:
    """What number a word of letters alone says, None for most words; case makes no difference."""
    folded = word.casefold()
    if folded in _VALUES or folded in _TIMES:
        return NumberWord(parts=(_part(folded),), is_sure=folded not in _UNSURE)
    if parts := _glued(folded):
        return NumberWord(parts=parts)
    return _roman(folded)


def _part(word: str) -> NumberPart:
    if word in _TIMES:
        return NumberPart(kind="times", value=str(_TIMES[word]))
    return NumberPart(kind="value", value=str(_VALUES[word]))


def _glued(word: str) -> tuple[NumberPart, ...]:
    """The parts of number words that are glued together, or to what is counted."""
    words: list[str] = []
    at = 0
    while word[at:] not in _VALUES and (found := _WORD.match(word, at)):
        words.append(found[0])
        at = found.end()
    rest = word[at:]
    if not words or words[0] in AFTER_A_NUMBER or word in _OTHERWISE:
        return ()
    if rest in _VALUES:  # `twentyfirst`
        words, rest = [*words, rest], ""
    if rest == "s" and (words[-1] == "one" or words[-1] in _TIMES):
        return ()  # `ones`, `hundreds`: no number in particular
    is_number = _is_open(words) or (bool(rest) and bool(_UNIT.fullmatch(rest)))
    return tuple(map(_part, words)) if is_number else ()


def _is_open(words: list[str]) -> bool:
    return len(words) > 1 or words[0] in _OPEN


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
