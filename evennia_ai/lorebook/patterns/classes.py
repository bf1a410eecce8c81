"""Classes of characters: what stands between brackets."""

from typing import Final

from evennia_ai.lorebook.patterns.charsets import CharSet, merged, one
from evennia_ai.lorebook.patterns.escapes import read_char_escape, read_set_escape
from evennia_ai.lorebook.patterns.source import Flags, Source, UnsupportedPatternError

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
