"""The normal form in which keys and texts are compared: what people read as equal is equal.

Letters are composed (Unicode NFC), so that an accent is one character or two alike. The signs that
phones, word processors and models write for an apostrophe, a hyphen and a blank are ours. Unseen
characters inside words go. Underscores at the edge of a word are emphasis, and blanks here; inside
a word (`snake_case`) they are letters.
"""

import re
import unicodedata
from typing import Final

_SIGNS: Final = {
    **dict.fromkeys(map(ord, "\u2018\u2019\u02bc\u2032\uff07"), "'"),
    **dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2212\ufe63\uff0d"), "-"),
    **dict.fromkeys(map(ord, "\u00a0\u2007\u202f"), " "),
}
UNSEEN: Final = "\u00ad\u200b\u2060\ufeff"
"""Soft hyphen, blank without width, joiner of words, mark of the byte order."""
_UNSEEN: Final = re.compile(f"[{UNSEEN}]")
BLANKS: Final = (
    " \t\n\r\v\f\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000"
    f"{''.join(map(chr, range(0x2000, 0x2010)))}{UNSEEN}"
)
"""What nobody sees at the edges of a line: blanks of all kinds, and unseen characters."""
LINE_ENDS: Final = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
"""The characters that end a line, as `str.splitlines` has them."""
_ODD: Final = re.compile(f"[{UNSEEN}{''.join(map(chr, _SIGNS))}]")
_MEANT: Final = {**_SIGNS, **dict.fromkeys(map(ord, UNSEEN))}
_EMPHASIS: Final = re.compile(r"(?<!\w)_+(?=[^\s_])|(?<=[^\s_])_+(?!\w)")
_LOOKED_BACK: Final = 4  # characters that one behind them may be composed with


def normal_form(text: str) -> str:
    """Return the text as it is compared, its case kept: itself, if nothing of it differs."""
    if not text.isascii():
        if _ODD.search(text):
            text = text.translate(_MEANT)
        text = unicodedata.normalize("NFC", text)
    return _EMPHASIS.sub(lambda found: " " * len(found[0]), text) if "_" in text else text


def normal_places(text: str) -> tuple[int, ...] | None:
    """Return where each character of the normal form stands in the text, and where the text ends.

    None if all stand where they stood. A character made of several stands at the first of them.
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
    """True if the character at `at` is one letter with those before it, from `begin` on."""
    one = seen[at][1]
    if one.isascii():
        return False
    if unicodedata.combining(one):
        return True
    before = "".join(other for _, other in seen[max(begin, at - _LOOKED_BACK) : at])
    together = unicodedata.normalize("NFC", before + one)
    return together != unicodedata.normalize("NFC", before) + unicodedata.normalize("NFC", one)
