"""Texts as JavaScript counts them: a character beyond the first 65,536 is a pair of surrogates.

Without the flag `u` a pattern sees the two halves: `.` is one of them, and a class of two emoji
holds their common half. Only patterns that can see a half are searched in such a text.
"""

import re
from functools import lru_cache
from typing import Final

_WIDE: Final = re.compile("[\U00010000-\U0010ffff]")


@lru_cache(maxsize=4)
def in_units(text: str) -> str:
    """The text with pairs of surrogates for all wide characters; the same one if it has none."""
    return text if text.isascii() else _WIDE.sub(_pair, text)


def in_points(units: str, start: int, end: int) -> tuple[int, int]:
    """A span of a text of units as a span of code points; a half counts as its whole character."""
    first = len(_joined(units[:start]))
    if 0 < start < len(units) and _is_split(units, start):
        first -= 1
    return first, (first if start == end else len(_joined(units[:end])))


def _is_split(units: str, at: int) -> bool:
    return "\ud800" <= units[at - 1] < "\udc00" <= units[at] < "\ue000"


def _joined(units: str) -> str:
    return units.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _pair(found: re.Match[str]) -> str:
    code = ord(found[0]) - 0x10000
    return chr(0xD800 + (code >> 10)) + chr(0xDC00 + (code & 0x3FF))
