"""Convert texts to the units of JavaScript: UTF-16 code units instead of code points.

JavaScript stores a character beyond U+FFFF as two surrogates. Without the flag `u`, a pattern sees
two characters there: `.` matches one of them, and a class of two emoji contains the surrogate that
both have in common.
"""

import re
from functools import lru_cache
from typing import Final

SURROGATES: Final = (0xD800, 0xDFFF)
TO_PRIVATE_USE: Final = 0x100000
"""This offset turns surrogates into private-use characters. PCRE2 accepts no surrogates."""

_WIDE: Final = re.compile("[\U00010000-\U0010ffff]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


@lru_cache(maxsize=4)
def to_utf16_units(text: str) -> str:
    """Return the text with a surrogate pair for each character beyond U+FFFF."""
    return text if text.isascii() else _WIDE.sub(_pair, text)


def _pair(found: re.Match[str]) -> str:
    code = ord(found[0]) - 0x10000
    return chr(0xD800 + (code >> 10)) + chr(0xDC00 + (code & 0x3FF))


def to_code_points(units: str, start: int, end: int) -> tuple[int, int]:
    """Convert the start and end of a match from UTF-16 units to code points.

    If a match begins or ends inside a surrogate pair, the whole character counts.
    """
    first = _count_points(units[:start])
    if (
        0 < start < len(units)
        and "\ud800" <= units[start - 1] < "\udc00" <= units[start] < "\ue000"
    ):
        first -= 1
    return first, (first if start == end else _count_points(units[:end]))


def _count_points(units: str) -> int:
    return len(units.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass"))


@lru_cache(maxsize=4)
def without_surrogates(text: str) -> str:
    """Return the text with each surrogate replaced by a private-use character, for PCRE2."""
    if text.isascii():
        return text
    return _SURROGATE.sub(lambda found: chr(ord(found[0]) + TO_PRIVATE_USE), text)
