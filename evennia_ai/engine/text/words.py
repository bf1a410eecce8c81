"""Words and letters: the words of a text, their boundaries, and the letter that a sign stands for.

A word is a run of letters, digits, underscores and combining marks. Scripts without blanks between
words (Chinese, Japanese, Korean, Thai and others) have no visible word boundaries, so keys in these
scripts are found anywhere. SillyTavern's words consist only of ASCII letters, digits and
underscores; this module implements both rules. `SCRIPTS` is the only table of such scripts; each
comparison by words selects from it.

`fold_letters` replaces every sign that people read as a letter with that letter: upper and lower
case, accents, small capitals, look-alikes of other alphabets, letters in boxes, circles and flags,
turned upside down, mathematical, of full width, in Braille. Invisible signs are removed.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import pairwise
from string import ascii_lowercase
from types import MappingProxyType
from typing import Final, Literal

Script = Literal["thai", "burmese", "khmer", "han", "kana", "hangul"]

SCRIPTS: Final[Mapping[Script, tuple[tuple[int, int], ...]]] = MappingProxyType(
    {
        "thai": ((0x0E00, 0x0EFF),),  # this range includes Lao
        "burmese": ((0x1000, 0x109F),),
        "khmer": ((0x1780, 0x17FF),),
        # The five ranges: radicals and punctuation, bopomofo, common characters, compatibility
        # characters, rare characters.
        "han": (
            (0x2E80, 0x303F),
            (0x3100, 0x312F),
            (0x3190, 0x9FFF),
            (0xF900, 0xFAFF),
            (0x20000, 0x3FFFF),
        ),
        "kana": ((0x3040, 0x30FF), (0xFF66, 0xFF9F)),
        "hangul": (
            (0x1100, 0x11FF),
            (0x3130, 0x318F),
            (0xA960, 0xA97F),
            (0xAC00, 0xD7FF),
            (0xFFA0, 0xFFDC),
        ),
    }
)
"""Ranges of code points of the scripts that put no blanks between words.

Korean has blanks, but its particles are attached to words. So keys in Korean are found anywhere in
a text.
"""


def script_ranges(*scripts: Script) -> str:
    """Return the characters of scripts as ranges for the brackets of a regular expression."""
    ranges = (one for script in scripts for one in SCRIPTS[script])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)


def word_pattern(*scripts: Script) -> re.Pattern[str]:
    """Return a regular expression for the words of a text.

    In the given scripts each character is a word.
    """
    signs = script_ranges(*scripts)
    return re.compile(f"(?=\\w)[{signs}]|[^\\W_{signs}]+")


_UNSPACED: Final = tuple(one for ranges in SCRIPTS.values() for one in ranges)
_RANGES: Final = script_ranges(*SCRIPTS)
_RUN: Final = re.compile(f"[^\\W{_RANGES}]+")
_SIGNS: Final = word_pattern("thai", "burmese", "khmer", "han", "kana")
_UNSPACED_RUN: Final = re.compile(f"[{_RANGES}]+")
# Maps each ASCII character that is not part of a word to a blank. Translating and splitting is by
# far the fastest way to find words.
_BLANKED: Final = "".join(c if c.isalnum() or c == "_" else " " for c in map(chr, range(128)))

COMMON_WORDS: Final = frozenset(
    """
    a about after all also am an and any are as at be because been before but by can could did do
    does for from had has have he her here him his how i if in into is it its just me more my no
    not of on one or our out over she should so some such than that the their them then there
    these they this to too under up us very was we were what when where which while who why will
    with would you your
    """.split()  # noqa: SIM905 - a list of seventy lines says no more
)
"""The most common words of English.

In other languages common words are recognised by their length.
"""

# A function that returns True if a character can be part of a word.
InWordCheck = Callable[[str], bool]


@lru_cache(maxsize=4096)
def is_in_word(char: str) -> bool:
    """True if a character can be part of a word, in a script that separates words by blanks."""
    if char.isascii():
        return char.isalnum() or char == "_"
    if not (char.isalnum() or unicodedata.category(char).startswith("M")):
        return False
    code = ord(char)
    return not any(first <= code <= last for first, last in _UNSPACED)


def is_in_ascii_word(char: str) -> bool:
    """True if a character is an ASCII letter, a digit or an underscore."""
    return char.isascii() and (char.isalnum() or char == "_")


def split_words(text: str) -> list[str]:
    """Return the words of a text in scripts that separate words by blanks.

    Combining marks separate words, which is harmless because keys and texts are split alike.
    """
    if text.isascii():
        return text.translate(_BLANKED).split()
    return _RUN.findall(text)


def split_ascii_words(text: str) -> list[str]:
    """Return the words of a text that are runs of ASCII letters, digits and underscores."""
    if not text.isascii():
        # Each character outside ASCII becomes `?`, which the translation turns into a blank.
        text = text.encode("ascii", "replace").decode("ascii")
    return text.translate(_BLANKED).split()


def split_signs(text: str) -> list[str]:
    """Return the words of a text in order, in lower case and with full-width letters as normal.

    In scripts without blanks each character is a word, so that phrases in these scripts are found
    too. Korean counts as a script with blanks here.
    """
    return _SIGNS.findall(unicodedata.normalize("NFKC", text).casefold())


def make_phrase(text: str) -> str:
    """Return the words of a text, joined and enclosed by blanks.

    The operator `in` then finds whole words only.
    """
    return f" {' '.join(split_signs(text))} "


def indexed_pairs(text: str) -> list[str]:
    """Return each character, and each pair of neighbours, in scripts without blanks."""
    pairs: list[str] = []
    for run in unspaced_runs(text):
        pairs += map("".join, pairwise(run))
        pairs += run
    return pairs


def query_pairs(text: str) -> list[str]:
    """Return each pair of neighbours in a text's scripts without blanks.

    A character without a neighbour is returned alone.
    """
    pairs: list[str] = []
    for run in unspaced_runs(text):
        pairs += map("".join, pairwise(run)) if len(run) > 1 else run
    return pairs


def unspaced_runs(text: str) -> list[str]:
    """Return the runs of characters in a text that belong to scripts without blanks."""
    return [] if text.isascii() else _UNSPACED_RUN.findall(text)


class WordStarts:
    """The places of a text at which a word may start, computed on first use.

    A search that uses these indices can skip the rest of a long word, so hostile keys and texts
    take no more time than others.
    """

    __slots__ = ("_in_word", "_starts", "_text")

    def __init__(self, text: str, in_word: InWordCheck) -> None:
        self._text = text
        self._in_word = in_word
        self._starts: list[int] | None = None

    def after(self, at: int) -> int:
        """Return the next index after `at` at which a word of the text may start, or its length."""
        if self._starts is None:
            words = [self._in_word(char) for char in self._text]
            self._starts = [i for i in range(1, len(words)) if not (words[i - 1] and words[i])]
        next_one = bisect_right(self._starts, at)
        return self._starts[next_one] if next_one < len(self._starts) else len(self._text)


def find_whole_word(key: str, text: str, edges: WordStarts) -> int:
    """Return the first index at which `key` occurs in a text as a whole word, or -1."""
    at = text.find(key)
    while at >= 0 and not _is_whole_word(text, at, at + len(key)):
        at = text.find(key, edges.after(at))
    return at


def find_ascii_word(key: str, text: str) -> int:
    """Return the first index of `key` in a text with no ASCII word character next to it, or -1."""
    at = text.find(key)
    while at >= 0:
        end = at + len(key)
        left = at == 0 or not is_in_ascii_word(text[at - 1])
        if left and (end == len(text) or not is_in_ascii_word(text[end])):
            return at
        at = text.find(key, at + 1)
    return -1


def _is_whole_word(text: str, start: int, end: int) -> bool:
    runs_on_left = start > 0 and is_in_word(text[start - 1]) and is_in_word(text[start])
    runs_on_right = end < len(text) and is_in_word(text[end - 1]) and is_in_word(text[end])
    return not (runs_on_left or runs_on_right)


_UNSEEN: Final = ("Mn", "Me", "Cf", "Cc", "Co", "Cn", "Cs")
_KEPT: Final = "\n\t"
_APOSTROPHE: Final = re.compile(r"(?<=\w)['\u2019`](?=\w)")

# Maps lower-case Cyrillic, Greek and phonetic letters to the Latin letters they look like
_LOOK_ALIKES: Final = dict(
    zip(
        "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u0501\u04bb"
        "\u043a\u043c\u0442\u0432\u043d\u04cf"
        "\u03b1\u03bf\u03c1\u03bd\u03b9\u03ba\u03c4\u03c5\u03c7\u03b5\u03b7"
        "\u0251\u0131\u0261",
        "aeopcyxijsdhkmtbhlaopviktuxenaig",
        strict=True,
    )
)
# Maps signs to the ASCII letter that they show. These are letters in circles and squares, letters
# of flags, and the invisible letters of a flag's region.
_IN_BOXES: Final = {
    chr(first + place): letter
    for first in (0x1F1E6, 0x1F150, 0x1F170, 0x1F130, 0xE0041, 0xE0061)
    for place, letter in enumerate(ascii_lowercase)
}
_BRAILLE: Final = {
    chr(0x2800 + dots): letter
    for letter, dots in zip(
        ascii_lowercase,
        b"\x01\x03\x09\x19\x11\x0b\x1b\x13\x0a\x1a\x05\x07\x0d\x1d\x15\x0f\x1f\x17\x0e\x1e"
        b"\x25\x27\x3a\x2d\x3d\x35",
        strict=True,
    )
}
_NAMED: Final = re.compile(
    r"LATIN (?:LETTER )?(?:SMALL |CAPITAL |LETTER |TURNED |REVERSED |INVERTED |SIDEWAYS |OPEN "
    r"|SCRIPT |INSULAR |DOTLESS |CLOSED |BARRED |BOTTOM HALF |TOP HALF )*([A-Z])(?: WITH .*)?"
)
# Unicode blocks with variants of Latin letters, which normalisation does not decompose.
_BLOCKS: Final = ((0x00C0, 0x0250), (0x0250, 0x02B0), (0x1D00, 0x1DC0), (0x2C60, 0x2C80))
_MORE_BLOCKS: Final = ((0xA720, 0xA800), (0xAB30, 0xAB70))


def fold_letters(text: str) -> str:
    """Return a text with all variants of a letter replaced by that letter, for comparison.

    The result has one letter case, no accents, no invisible signs, and Latin letters for letters
    that look alike.
    """
    if text.isascii():
        plain = "".join(one for one in text if one.isprintable() or one in _KEPT).casefold()
        return _APOSTROPHE.sub("", plain)
    boxed = text.translate(_boxes())
    apart = unicodedata.normalize("NFKD", boxed.casefold())
    seen = "".join(
        one
        for one in apart
        if one.isascii() or one in _KEPT or unicodedata.category(one) not in _UNSEEN
    )
    plain = unicodedata.normalize("NFC", seen).casefold().translate(_letters())
    return _APOSTROPHE.sub("", "".join(map(_digit, plain)))


@lru_cache(maxsize=1)
def _boxes() -> dict[int, str]:
    """Return a `str.translate` table from letters in boxes and Braille to ASCII letters.

    Unicode normalisation would drop these signs or replace them with words.
    """
    return {ord(one): letter for one, letter in (_IN_BOXES | _BRAILLE).items()}


@lru_cache(maxsize=1)
def _letters() -> dict[int, str]:
    """Return a `str.translate` table from variants of Latin letters to ASCII letters."""
    named = {
        code: found[1].lower()
        for first, end in (*_BLOCKS, *_MORE_BLOCKS)
        for code in range(first, end)
        if (found := _NAMED.fullmatch(unicodedata.name(chr(code), "")))
    }
    return named | {ord(one): letter for one, letter in _LOOK_ALIKES.items()}


def _digit(one: str) -> str:
    """Return a digit of any script as an ASCII digit; return other characters unchanged."""
    return one if one.isascii() or not one.isdecimal() else str(unicodedata.decimal(one))
