"""Sets of characters: what one place of a pattern may match.

A set is ranges of code points, Unicode properties by name, and whether it means all the others.
The named sets are those of the JavaScript standard: `\\d` and `\\w` are ASCII, `\\s` is not.
"""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

# First and last code point of each run, ascending, none touching the next.
Ranges = tuple[tuple[int, int], ...]
LAST: Final = 0x10FFFF
SURROGATES: Final = (0xD800, 0xDFFF)


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """A Unicode property as Python's `regex` writes it, or all that do not have it.

    `category` is the general category where it is one, "" otherwise.
    """

    name: str
    category: str = ""
    negated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CharSet:
    """The characters one place of a pattern may match; `negated`: all but those named."""

    ranges: Ranges = ()
    properties: tuple[Property, ...] = ()
    negated: bool = False

    def has(self, code: int) -> bool:
        """Whether the ranges have this code point; properties are not asked."""
        at = bisect_right(self.ranges, (code, LAST)) - 1
        return (at >= 0 and self.ranges[at][1] >= code) is not self.negated

    def overlaps(self, other: "CharSet") -> bool:
        """Whether a character may be in both; where properties are asked it always may."""
        if self.properties or other.properties:
            return True
        return bool(common(self.positive(), other.positive()))

    def positive(self) -> Ranges:
        """The ranges of what is matched, properties aside."""
        return others(self.ranges) if self.negated else self.ranges


def merged(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """The ranges in order, with those that touch made one."""
    result: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if result and first <= result[-1][1] + 1:
            result[-1] = (result[-1][0], max(last, result[-1][1]))
        else:
            result.append((first, last))
    return tuple(result)


def others(ranges: Ranges) -> Ranges:
    """All code points that are in none of the ranges."""
    result = []
    begin = 0
    for first, last in ranges:
        if first > begin:
            result.append((begin, first - 1))
        begin = last + 1
    if begin <= LAST:
        result.append((begin, LAST))
    return tuple(result)


def common(left: Ranges, right: Ranges) -> Ranges:
    """The code points that are in both."""
    return others(merged((*others(left), *others(right))))


def one(code: int) -> CharSet:
    """The set of a single character."""
    return CharSet(ranges=((code, code),))


DIGITS: Final[Ranges] = ((0x30, 0x39),)
WORDS: Final[Ranges] = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
BLANKS: Final[Ranges] = (
    (0x09, 0x0D),
    (0x20, 0x20),
    (0xA0, 0xA0),
    (0x1680, 0x1680),
    (0x2000, 0x200A),
    (0x2028, 0x2029),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
    (0xFEFF, 0xFEFF),
)
LINE_ENDS: Final[Ranges] = ((0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029))
ANY: Final = CharSet(negated=True)
NONE: Final = CharSet()
NO_LINE_END: Final = CharSet(ranges=LINE_ENDS, negated=True)
