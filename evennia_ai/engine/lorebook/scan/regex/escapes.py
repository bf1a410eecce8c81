"""The cursor over a pattern; what follows a backslash, and what stands between brackets.

As the standard and its annex B say: without the flag `u` nearly every character may be escaped and
then means itself; with it only those that have a meaning of their own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from evennia_ai.engine.lorebook.scan.regex import BrokenPatternError, UnsupportedPatternError
from evennia_ai.engine.lorebook.scan.regex.chars import (
    BLANKS,
    DIGITS,
    LAST,
    WORDS,
    CharSet,
    merged,
    one,
    others,
    property_of,
    with_kin,
)

_HEX: Final = frozenset("0123456789abcdefABCDEF")
_OCTAL: Final = frozenset("01234567")


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """The flags that bear on what is matched; `unicode` is `u`, or `v` where it reads the same."""

    ignore_case: bool = False
    multiline: bool = False
    dot_all: bool = False
    unicode: bool = False
    sets: bool = False
    sticky: bool = False

    def chars(self, chars: CharSet) -> CharSet:
        """The set as it is matched under these flags."""
        return with_kin(chars, unicode=self.unicode) if self.ignore_case else chars


class Source:
    """A cursor over the body of a pattern; `groups` counts all captures, `names` numbers them.

    `refused` says what in it cannot run here, "" while all can. That is told only when the whole
    is read, because what is broken further on is no pattern at all.
    """

    __slots__ = ("at", "groups", "names", "refused", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.names: Mapping[str, int] = {}
        self.groups = 0
        self.refused = ""

    def peek(self) -> str:
        """The next character, "" at the end."""
        return self.text[self.at : self.at + 1]

    def next(self) -> str:
        """The next character, taken; a pattern that ends here is broken."""
        if self.at >= len(self.text):
            raise self.broken("ends too early")
        self.at += 1
        return self.text[self.at - 1]

    def take(self, wanted: str) -> bool:
        """Take `wanted` if it comes next."""
        if not self.text.startswith(wanted, self.at):
            return False
        self.at += len(wanted)
        return True

    def number(self, *, digits: int, octal: bool = False) -> int | None:
        """Take exactly so many hexadecimal digits, or at most so many octal ones, as a number."""
        allowed = _OCTAL if octal else _HEX
        end = self.at
        while (
            end < self.at + digits and self.text[end : end + 1] in allowed and end < len(self.text)
        ):
            end += 1
        if end == self.at or (not octal and end < self.at + digits):
            return None
        found, self.at = int(self.text[self.at : end], 8 if octal else 16), end
        return found

    def refuse(self, what: str) -> None:
        """Note that something cannot run here; the first such thing is told."""
        self.refused = self.refused or what

    def broken(self, what: str) -> BrokenPatternError:
        """The error that the pattern is broken at this place."""
        return BrokenPatternError(f"{what} at character {self.at + 1}")


_SIGNS: Final = frozenset("^$\\.*+?()[]{}|/")
_CONTROLS: Final[Mapping[str, int]] = {"f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_NAMED: Final = {"d": DIGITS, "w": WORDS, "s": BLANKS}
_LETTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_HIGH: Final = range(0xD800, 0xDC00)
_LOW: Final = range(0xDC00, 0xE000)


def read_set_escape(source: Source, flags: Flags) -> CharSet | None:
    """The set of `\\d`, `\\p{Lu}` and their like behind a backslash, None where there is none."""
    letter = source.peek()
    if letter.lower() in _NAMED and letter:
        source.next()
        ranges = _NAMED[letter.lower()]
        if letter in "wW" and flags.unicode:
            ranges = flags.chars(CharSet(ranges=ranges)).ranges
        return CharSet(ranges=ranges if letter.islower() else others(ranges))
    if letter in ("p", "P") and flags.unicode:
        source.next()
        return _property(source, flags, negated=letter == "P")
    return None


def _property(source: Source, flags: Flags, *, negated: bool) -> CharSet:
    end = source.text.find("}", source.at)
    if source.peek() != "{" or end < 0:
        raise source.broken("\\p wants a name in braces")
    name = source.text[source.at + 1 : end]
    found = property_of(name, negated=negated)
    if found is None:
        raise source.broken(f"unknown property {name[:40]!r}")
    source.at = end + 1
    if isinstance(found, tuple):
        return CharSet(ranges=found)
    if flags.ignore_case and not found.category and "=" not in found.name:
        source.refuse(f"the property {name} without regard to case")
    if flags.ignore_case and flags.sets and negated:
        source.refuse("\\P without regard to case and with the flag v")
    return CharSet(properties=(found,))


def read_char_escape(source: Source, flags: Flags, *, in_class: bool) -> int:
    """The code point that is escaped behind a backslash."""
    letter = source.next()
    if letter in _CONTROLS:
        return _CONTROLS[letter]
    if letter == "c":
        return _control(source, flags, in_class=in_class)
    if letter.isdecimal() and letter.isascii():
        return _octal(source, flags, letter)
    if letter == "x" and (code := source.number(digits=2)) is not None:
        return code
    if letter == "u" and (code := _unicode(source, flags)) is not None:
        return code
    return _itself(source, flags, letter, in_class=in_class)


def _itself(source: Source, flags: Flags, letter: str, *, in_class: bool) -> int:
    free = letter in _SIGNS or (in_class and letter == "-")
    if flags.unicode and not free:
        source.at -= 1
        raise source.broken(f"a backslash before {letter!r}, which the flag u forbids,")
    if letter == "k" and source.names:
        raise source.broken("\\k wants the name of a group")
    return ord(letter)


def _control(source: Source, flags: Flags, *, in_class: bool) -> int:
    letter = source.peek()
    if letter in _LETTERS and letter:
        source.next()
        return ord(letter) % 32
    if flags.unicode:
        raise source.broken("\\c wants a letter")
    if in_class and letter and letter in "0123456789_":
        source.next()
        return ord(letter) % 32
    source.at -= 1  # the backslash means itself, and the c comes next
    return ord("\\")


def _octal(source: Source, flags: Flags, digit: str) -> int:
    if flags.unicode:
        if digit == "0" and source.peek() not in tuple("0123456789"):
            return 0
        raise source.broken("a number without a group")
    if digit in "89":
        return ord(digit)
    source.at -= 1
    code = source.number(digits=3 if digit in "0123" else 2, octal=True)
    return code or 0


def _unicode(source: Source, flags: Flags) -> int | None:
    begin = source.at
    if flags.unicode and source.take("{"):
        end = source.text.find("}", source.at)
        digits = source.text[source.at : max(end, source.at)].lstrip("0")[:7] or "0"
        source_digits = max(end, source.at) - source.at
        code = Source(digits).number(digits=len(digits))
        if end < 0 or not source_digits or code is None or code > LAST:
            raise source.broken("\\u{} wants a code point")
        source.at = end + 1
        return code
    code = source.number(digits=4)
    if code is None:
        source.at = begin
        return None
    return _joined(source, code) if flags.unicode and code in _HIGH else code


def _joined(source: Source, high: int) -> int:
    """A pair of surrogates that are escaped one after the other is one character."""
    begin = source.at
    low = source.number(digits=4) if source.take("\\u") else None
    if low is None or low not in _LOW:
        source.at = begin
        return high
    return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)


def single(code: int, flags: Flags) -> CharSet:
    """The set that one written character matches under the flags."""
    return flags.chars(one(code))


# What means more inside a class with the flag v than with u.
_SET_SIGNS: Final = frozenset("()[{}/|-")
_SET_PAIRS: Final = frozenset("&!#$%*+,.:;<=>?@^`~")
_BACKSPACE: Final = 8


def read_class(source: Source, flags: Flags) -> CharSet:
    """The set of a class; the opening bracket is already taken."""
    negated = source.take("^")
    found: list[CharSet] = []
    while not source.take("]"):
        begin = source.at
        first = _member(source, flags)
        if source.peek() == "-" and source.text[source.at + 1 : source.at + 2] != "]":
            source.next()
            found += _span(source, flags, first, begin)
        else:
            found.append(first)
    ranges = merged(pair for chars in found for pair in chars.ranges)
    properties = tuple(dict.fromkeys(one for chars in found for one in chars.properties))
    if negated and flags.sets and flags.ignore_case:
        source.refuse("[^...] without regard to case and with the flag v")
    chars = flags.chars(CharSet(ranges=ranges, properties=properties))
    return CharSet(ranges=chars.ranges, properties=properties, negated=negated)


def _span(source: Source, flags: Flags, first: CharSet, begin: int) -> list[CharSet]:
    """From `first` to what comes next; a hyphen beside a set means itself without `u`."""
    last = _member(source, flags)
    low, high = _code(first), _code(last)
    if low is None or high is None:
        if flags.unicode:
            raise source.broken("a range wants single characters")
        return [first, one(ord("-")), last]
    if low > high:
        source.at = begin
        raise source.broken("a range out of order")
    return [CharSet(ranges=((low, high),))]


def _code(chars: CharSet) -> int | None:
    """The code point of a single character that was written as one."""
    if chars.properties or len(chars.ranges) != 1 or chars.ranges[0][0] != chars.ranges[0][1]:
        return None
    return chars.ranges[0][0]


def _member(source: Source, flags: Flags) -> CharSet:
    if flags.sets:
        _refuse_set_notation(source)
    if not source.take("\\"):
        return one(ord(source.next()))
    if flags.sets and source.peek() == "q":
        raise UnsupportedPatternError("\\q with the flag v")
    chars = read_set_escape(source, flags)
    if chars is not None:
        return chars
    if source.take("b"):
        return one(_BACKSPACE)
    return one(read_char_escape(source, flags, in_class=True))


def _refuse_set_notation(source: Source) -> None:
    char, pair = source.peek(), source.text[source.at : source.at + 2]
    if (char and char in _SET_SIGNS) or (char and char in _SET_PAIRS and pair == char * 2):
        raise UnsupportedPatternError("set notation in a class with the flag v")
