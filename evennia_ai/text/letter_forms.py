"""Letter forms: one letter for all the signs that people read as it.

Upper and lower case, accents, small capitals, letters of other alphabets that look like ours, in
boxes, circles and flags, turned upside down, of mathematics, in full width, in Braille, and those
that nobody sees. Pure.
"""

import re
import unicodedata
from functools import lru_cache
from string import ascii_lowercase
from typing import Final

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
