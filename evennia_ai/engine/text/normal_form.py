"""The normal form in which keys and texts are compared: texts that look equal to people are equal.

Letters are composed (Unicode NFC), so that one character equals a letter with its accent.
Typographic apostrophes, hyphens and blanks become ASCII. Invisible characters inside words are
removed. Underscores at the edge of a word mark emphasis and become blanks. Inside a word
(`snake_case`) they are kept.
"""

import re
import unicodedata
from typing import Final

_BLANKS: Final = f"\u00a0\u1680{''.join(map(chr, range(0x2000, 0x200B)))}\u202f\u205f\u3000"
_SIGNS: Final = {
    **dict.fromkeys(map(ord, "\u00b4\u2018\u2019\u02bc\u2032\uff07"), "'"),
    **dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2212\ufe63\uff0d"), "-"),
    **dict.fromkeys(map(ord, _BLANKS), " "),
}
UNSEEN: Final = "\u00ad\u200b\u2060\ufeff"
"""Invisible characters: soft hyphen, zero width space, word joiner, byte order mark."""
_UNSEEN: Final = re.compile(f"[{UNSEEN}]")
BLANK_CHARACTERS: Final = (
    f" \t\n\r\v\f\x1c\x1d\x1e\x1f\x85\u2028\u2029\u200c\u200d\u200e\u200f{_BLANKS}{UNSEEN}"
)
"""Characters that are invisible at the beginning or end of a line: blanks and `UNSEEN`."""
LINE_END_CHARACTERS: Final = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
"""The characters that end a line, as in `str.splitlines`."""
_ODD: Final = re.compile(f"[{UNSEEN}{''.join(map(chr, _SIGNS))}]")
_MEANT: Final = {**_SIGNS, **dict.fromkeys(map(ord, UNSEEN))}
_EMPHASIS: Final = re.compile(r"(?<!\w)_+(?=[^\s_])|(?<=[^\s_])_+(?!\w)")
_LOOKED_BACK: Final = 4  # the most characters before a character that may combine with it


def normal_form(text: str) -> str:
    """Return a text in normal form, in which texts that look equal are equal.

    If nothing changes, the given string itself is returned.
    """
    if not text.isascii():
        if _ODD.search(text):
            text = text.translate(_MEANT)
        text = unicodedata.normalize("NFC", text)
    return _EMPHASIS.sub(lambda found: " " * len(found[0]), text) if "_" in text else text


def normal_positions(text: str) -> tuple[int, ...] | None:
    """Return the index in the text of each character of its normal form, then the text's length.

    Return None if every character keeps its index. A character that was composed from several has
    the index of the first.
    """
    if text.isascii():
        return None
    if unicodedata.is_normalized("NFC", text) and not _UNSEEN.search(text):
        return None
    seen = [(at, one) for at, one in enumerate(text) if one not in UNSEEN]
    places: list[int] = []
    begin = 0
    for at in range(1, len(seen) + 1):
        if at < len(seen) and _is_composed(seen, begin, at):
            continue
        together = "".join(one for _, one in seen[begin:at])
        places += [seen[begin][0]] * len(unicodedata.normalize("NFC", together))
        begin = at
    return (*places, len(text))


def _is_composed(seen: list[tuple[int, str]], begin: int, at: int) -> bool:
    """True if the characters of `seen` from `begin` to `at` form one letter in normal form."""
    one = seen[at][1]
    if one.isascii():
        return False
    if unicodedata.combining(one):
        return True
    before = "".join(other for _, other in seen[max(begin, at - _LOOKED_BACK) : at])
    together = unicodedata.normalize("NFC", before + one)
    return together != unicodedata.normalize("NFC", before) + unicodedata.normalize("NFC", one)
