"""Readings: find texts that are hidden in a text, by undoing the usual ways to hide them.

Each reading is a normalised text that is compared like the text itself. Look-alike signs become
letters (`h4rb0ur`), doubled letters become single letters, and upside-down letters become upright
letters. Runs of base64, base32, hexadecimal, bits or character codes are decoded. A code may be
split into pieces. So each run is decoded separately, and also all runs joined.

The code here has no side effects. Its time is linear in the length of the text: no reading is
longer than the text, and there are at most `MOST_READINGS` readings. Most texts have only one.
"""

import base64
import binascii
import re
import unicodedata
from collections.abc import Callable, Iterator
from itertools import islice
from string import ascii_lowercase
from typing import Final

from evennia_ai.engine.text.words import fold_letters

MOST_READINGS: Final = 24
SHORTEST_READING: Final = 6
"""From how many characters on a decoded run counts as a hidden text."""

_UPSIDE_DOWN: Final = (
    "\u0250q\u0254p\u01dd\u025f\u0183\u0265\u1d09\u027e\u029el\u026f"
    "uodb\u0279s\u0287n\u028c\u028dx\u028ez"
)
_TURNED: Final = frozenset(one for one in _UPSIDE_DOWN if not one.isascii())
_UPRIGHT: Final = str.maketrans(_UPSIDE_DOWN, ascii_lowercase)
_SIGNS: Final = "013457@$!|+8"
_SIGN_BESIDE_LETTER: Final = re.compile(rf"[a-z][{re.escape(_SIGNS)}]|[{re.escape(_SIGNS)}][a-z]")
_AS_I: Final = str.maketrans(_SIGNS, "oieastasiltb")
_AS_L: Final = str.maketrans(_SIGNS, "oleastasiltb")
_DOUBLED: Final = re.compile(r"([^\W\d_])\1")
_SEVERAL: Final = re.compile(r"([^\W\d_])\1+")
_TOKEN: Final = re.compile(r"[A-Za-z0-9+/_=-]{3,}")
_ODD: Final = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]|[A-Za-z][0-9]|[0-9][A-Za-z]|[+/=]")
_HEX: Final = re.compile(r"(?<![0-9A-Za-z])(?:0x|\\x|%|\\?u00)?((?:[0-9a-fA-F]{2})+)(?![g-zG-Z])")
_PREFIXED_HEX: Final = re.compile(r"(?:0x|\\x|%|\\u00|u00)(?=[0-9a-fA-F]{2})")
_BITS: Final = re.compile(r"(?<!\d)[01]{8}(?!\d)")
_CODE: Final = re.compile(r"(?<!\d)\d{2,3}(?!\d)")
_READABLE: Final = 0.9
_MOST_ALONE: Final = 8


def decode_readings(text: str) -> Iterator[str]:
    """Yield a text in normalised form, then each text decoded from it, without duplicates."""
    plain = fold_letters(text)
    found = dict.fromkeys(islice(_all_readings(text, plain), MOST_READINGS))
    yield from found


def _all_readings(text: str, plain: str) -> Iterator[str]:
    yield plain
    if _SIGN_BESIDE_LETTER.search(plain):
        yield plain.translate(_AS_I)
        yield plain.translate(_AS_L)
    if 3 * len(_DOUBLED.findall(plain)) > sum(map(str.isalpha, plain)):
        yield _DOUBLED.sub(r"\1", plain)
    if not _TURNED.isdisjoint(text):
        yield fold_letters(text.lower().translate(_UPRIGHT))
    seen = _visible(text)
    for decoded in _decode_runs(seen):
        yield fold_letters(decoded)


def _visible(text: str) -> str:
    """Remove invisible characters from a text. Letter case is kept."""
    if text.isascii():
        return text
    kept = (one for one in unicodedata.normalize("NFKC", text) if unicodedata.category(one) != "Cf")
    return "".join(kept)


def _decode_runs(text: str) -> Iterator[str]:
    """Yield the texts that bits, numbers, hexadecimal, base64 and base32 in a text encode.

    Codes that are written backwards are decoded, too.
    """
    yield from _readable(bytes(int(bits, 2) for bits in _BITS.findall(text)))
    yield from _readable(bytes(c for one in _CODE.findall(text) if 32 <= (c := int(one)) < 127))
    digits = "".join(_HEX.findall(_PREFIXED_HEX.sub(" ", text)))
    if any(map(str.isdigit, digits)):
        for run in (digits, digits[::-1]):
            yield from _readable(bytes.fromhex(run))
    tokens = [one for one in _TOKEN.findall(text) if _ODD.search(one)]
    runs = dict.fromkeys(
        run for run in ("".join(tokens), *tokens[:_MOST_ALONE]) if len(run) >= SHORTEST_READING
    )
    for run in runs:
        for way in (run, run[::-1]):
            yield from _from_base(way, "-_", base64.b64decode, group=4)
        if run.isupper():
            yield from _from_base(run, "", base64.b32decode, group=8)


def _from_base(
    run: str, others: str, decode: Callable[[str], bytes], *, group: int
) -> Iterator[str]:
    """Decode a run of code, for each possible start of its first group.

    A few characters in front of a code shift its groups.
    """
    plain = run.replace("=", "")
    if others:
        plain = plain.translate(str.maketrans(others, "+/"))
    for start in range(group if len(plain) > 2 * group else 1):
        body = plain[start:]
        padded = body[: len(body) - 1] if len(body) % 4 == 1 and group == 4 else body
        try:
            made = decode(padded + "=" * (-len(padded) % group))
        except (binascii.Error, ValueError):
            continue
        yield from _readable(made)


def _readable(made: bytes) -> Iterator[str]:
    """Yield decoded bytes as text, if most of the characters are readable."""
    if len(made) < SHORTEST_READING:
        return
    text = made.decode("utf-8", "ignore")
    good = sum(one.isalpha() or one in " ,.;:'-!?\n" for one in text)
    if text and good >= _READABLE * len(made):
        yield text


def squeeze_letters(text: str) -> str:
    """Replace each run of the same letter in a text by a single letter."""
    return _SEVERAL.sub(r"\1", text)
