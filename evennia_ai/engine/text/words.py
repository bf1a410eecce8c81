"""Words and letters: where a text has edges, which words stand in it, what a sign is read as.

A word is a run of letters, digits, underscores and combining marks. Scripts without blanks between
words (Chinese, Japanese, Korean, Thai, ...) have no such edges, so keys in them are found anywhere.
SillyTavern knows ASCII letters, digits and the underscore alone; both ways are here. `SCRIPTS` is
the one table of such scripts; who compares texts word by word chooses from it.

`letters_folded` gives one letter for all the signs that people read as it: upper and lower case,
accents, small capitals, letters of other alphabets that look like ours, in boxes, circles and
flags, turned upside down, of mathematics, in full width, in Braille; unseen ones go.
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
        "thai": ((0x0E00, 0x0EFF),),  # and Lao
        "burmese": ((0x1000, 0x109F),),
        "khmer": ((0x1780, 0x17FF),),
        # radicals, marks, bopomofo, the characters and those of the other planes
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
"""First and last code points of scripts that put no blanks between words.

Korean has blanks, but its particles cling to the words: where keys are looked for, it is as if it
had none.
"""


def letters_of(*scripts: Script) -> str:
    """What stands in the brackets of a pattern for a character of these scripts."""
    ranges = (one for script in scripts for one in SCRIPTS[script])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)


def words_and_signs(*scripts: Script) -> re.Pattern[str]:
    """Matches each word of a text; in these scripts each letter is one."""
    signs = letters_of(*scripts)
    return re.compile(f"(?=\\w)[{signs}]|[^\\W_{signs}]+")


_UNSPACED: Final = tuple(one for ranges in SCRIPTS.values() for one in ranges)
_RANGES: Final = letters_of(*SCRIPTS)
_RUN: Final = re.compile(f"[^\\W{_RANGES}]+")
_SIGNS: Final = words_and_signs("thai", "burmese", "khmer", "han", "kana")
_UNSPACED_RUN: Final = re.compile(f"[{_RANGES}]+")
# Everything that is no part of an ASCII word becomes a blank: by far the fastest way to split.
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
"""The commonest words of English; in other languages their shortness tells as much."""

# Whether a character makes one word with its neighbours.
InWord = Callable[[str], bool]


@lru_cache(maxsize=4096)
def in_word(char: str) -> bool:
    """Whether a character makes one word with its neighbours, in any script that has blanks."""
    if char.isascii():
        return char.isalnum() or char == "_"
    if not (char.isalnum() or unicodedata.category(char).startswith("M")):
        return False
    code = ord(char)
    return not any(first <= code <= last for first, last in _UNSPACED)


def in_ascii_word(char: str) -> bool:
    """The same where a word has ASCII characters only."""
    return char.isascii() and (char.isalnum() or char == "_")


def words_of(text: str) -> list[str]:
    """The words of `text`; combining marks part them here, in keys and texts alike."""
    if text.isascii():
        return text.translate(_BLANKED).split()
    return _RUN.findall(text)


def ascii_words_of(text: str) -> list[str]:
    """The runs of ASCII letters, digits and underscores."""
    if not text.isascii():
        text = text.encode("ascii", "replace").decode("ascii")  # one `?` a character: a blank
    return text.translate(_BLANKED).split()


def signs_of(text: str) -> list[str]:
    """The words of `text` in their order, whatever their case and width.

    In scripts without blanks each character is one, so that a phrase in them is found as well;
    Korean has blanks.
    """
    return _SIGNS.findall(unicodedata.normalize("NFKC", text).casefold())


def phrase_of(text: str) -> str:
    """Those words with a blank around each: one phrase is in another as a text is."""
    return f" {' '.join(signs_of(text))} "


def pairs_of(text: str) -> list[str]:
    """Each two neighbours, and each one alone, in the runs of scripts without blanks."""
    pairs: list[str] = []
    for run in unspaced_runs(text):
        pairs += map("".join, pairwise(run))
        pairs += run
    return pairs


def neighbours_of(text: str) -> list[str]:
    """The same for what is looked for: one alone only where it has no neighbour."""
    pairs: list[str] = []
    for run in unspaced_runs(text):
        pairs += map("".join, pairwise(run)) if len(run) > 1 else run
    return pairs


def unspaced_runs(text: str) -> list[str]:
    """The runs of characters that belong to scripts without blanks between words."""
    return [] if text.isascii() else _UNSPACED_RUN.findall(text)


class Edges:
    """The places of a text where a word may begin; worked out when first asked for.

    They let a search leave a long word at once, so hostile keys and texts cost no more than others.
    """

    __slots__ = ("_in_word", "_starts", "_text")

    def __init__(self, text: str, in_word: InWord) -> None:
        self._text = text
        self._in_word = in_word
        self._starts: list[int] | None = None

    def after(self, at: int) -> int:
        """The next place behind `at`, the length of the text where there is none."""
        if self._starts is None:
            words = [self._in_word(char) for char in self._text]
            self._starts = [i for i in range(1, len(words)) if not (words[i - 1] and words[i])]
        next_one = bisect_right(self._starts, at)
        return self._starts[next_one] if next_one < len(self._starts) else len(self._text)


def first_whole(key: str, text: str, edges: Edges) -> int:
    """Index of the first place where `key` stands as a whole word, -1 where there is none."""
    at = text.find(key)
    while at >= 0 and not _stands_alone(text, at, at + len(key)):
        at = text.find(key, edges.after(at))
    return at


def first_bounded(key: str, text: str) -> int:
    """The same for ASCII words: no part of one may stand on either side, whatever the key is."""
    at = text.find(key)
    while at >= 0:
        end = at + len(key)
        left = at == 0 or not in_ascii_word(text[at - 1])
        if left and (end == len(text) or not in_ascii_word(text[end])):
            return at
        at = text.find(key, at + 1)
    return -1


def _stands_alone(text: str, start: int, end: int) -> bool:
    runs_on_left = start > 0 and in_word(text[start - 1]) and in_word(text[start])
    runs_on_right = end < len(text) and in_word(text[end - 1]) and in_word(text[end])
    return not (runs_on_left or runs_on_right)


_UNSEEN: Final = ("Mn", "Me", "Cf", "Cc", "Co", "Cn", "Cs")
_KEPT: Final = "\n\t"
_APOSTROPHE: Final = re.compile(r"(?<=\w)['\u2019`](?=\w)")

# Small letters of the Cyrillic, Greek and phonetic alphabets that look like one of ours.
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
# Letters of flags, in circles, in squares, and the unseen ones that mark a flag's region.
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
# Where Unicode keeps letters of ours in another form that it does not take apart itself.
_BLOCKS: Final = ((0x00C0, 0x0250), (0x0250, 0x02B0), (0x1D00, 0x1DC0), (0x2C60, 0x2C80))
_MORE_BLOCKS: Final = ((0xA720, 0xA800), (0xAB30, 0xAB70))


def letters_folded(text: str) -> str:
    """`text` as it is compared: one case, no accents, nothing unseen, Latin for its look-alikes."""
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
    """What Unicode would drop or write out before its letter is known."""
    return {ord(one): letter for one, letter in (_IN_BOXES | _BRAILLE).items()}


@lru_cache(maxsize=1)
def _letters() -> dict[int, str]:
    """The letter of ours for each sign that is one in another form."""
    named = {
        code: found[1].lower()
        for first, end in (*_BLOCKS, *_MORE_BLOCKS)
        for code in range(first, end)
        if (found := _NAMED.fullmatch(unicodedata.name(chr(code), "")))
    }
    return named | {ord(one): letter for one, letter in _LOOK_ALIKES.items()}


def _digit(one: str) -> str:
    """A digit of any script as one of ours; other characters as they are."""
    return one if one.isascii() or not one.isdecimal() else str(unicodedata.decimal(one))
