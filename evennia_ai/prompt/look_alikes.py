"""Look-alikes: letters of other alphabets that pass for Latin ones.

A small table of the commonest, after Unicode's list of confusables (UTS 39): Cyrillic, Greek,
Armenian and phonetic letters, letters in boxes. Accents, strokes, hooks and small capitals are
found by the names that Unicode gives letters. Pure.
"""

import re
import unicodedata
from functools import lru_cache
from typing import Final

LATIN_FOR: Final = {
    **dict(
        zip(
            "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u0501\u04bb"
            "\u043a\u043c\u0442\u0432\u043d\u04cf"
            "\u03b1\u03bf\u03c1\u03bd\u03b9\u03ba\u03c4\u03c5\u03c7\u03b5\u03b7"
            "\u0251\u0131\u0261",
            "aeopcyxijsdhkmtbhlaopviktuxenaig",
            strict=True,
        )
    ),
    # Letters in boxes: of flags, in circles, in squares.
    **{
        chr(first + place): chr(ord("a") + place)
        for first in (0x1F1E6, 0x1F150, 0x1F170)
        for place in range(26)
    },
}
"""Small letters, and letters in boxes -> the Latin small letter they look like."""

_CAPITALS: Final = str.maketrans(
    # Greek capitals whose small letters look like something else.
    "\u039d\u03a5\u0397\u039c\u0396\u0392"
    # Armenian, and Cyrillic small letters that casefold leaves.
    "\u0555\u054f\u054d\u0585\u057d\u0578\u0570\u0566\u0581\u04ae\u04af\u051b\u051d\u0475",
    "NYHMZBOSUounhqgYyqwv",
)
_SMALL: Final = str.maketrans({**LATIN_FOR, "\u03b2": "b", "\u03c9": "w", "\u03c5": "u"})
# Not the vowel signs of other scripts, which are letters there.
_ACCENTS: Final = re.compile("[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]")
_OF_LATIN: Final = re.compile(
    r"LATIN (?:SMALL |CAPITAL )?LETTER (?:SMALL CAPITAL |SCRIPT |OPEN |DOTLESS )?"
    r"([A-Z])(?: WITH .*)?"
)


def latin(text: str) -> str:
    """`text` in small letters without accents, with Latin letters for their look-alikes."""
    if text.isascii():
        return text.lower()
    whole = unicodedata.normalize("NFKC", text).translate(_CAPITALS).casefold()
    apart = unicodedata.normalize("NFKD", whole)
    return "".join(map(_latin, _ACCENTS.sub("", apart).translate(_SMALL)))


@lru_cache(maxsize=2048)
def _latin(one: str) -> str:
    """The Latin letter that a single one is a form of; a digit of any script as one of ours."""
    if one.isascii():
        return one
    if one.isdecimal():
        return str(unicodedata.decimal(one))
    found = _OF_LATIN.fullmatch(unicodedata.name(one, ""))
    return found[1].lower() if found else one
