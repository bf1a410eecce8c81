"""What follows a backslash, outside and inside of a class, as the standard and its annex B say.

Without the flag `u` nearly every character may be escaped and then means itself; with it only
those that have a meaning of their own.
"""

from collections.abc import Mapping
from typing import Final

from evennia_ai.lorebook.patterns.charsets import (
    BLANKS,
    DIGITS,
    LAST,
    WORDS,
    CharSet,
    one,
    others,
)
from evennia_ai.lorebook.patterns.properties import property_of
from evennia_ai.lorebook.patterns.source import Flags, Source

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
