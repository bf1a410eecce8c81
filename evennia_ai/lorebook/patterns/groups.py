"""Groups that remember: how many a pattern has, their names, and what refers back to them."""

import re
from typing import Final

from evennia_ai.lorebook.patterns.source import BrokenPatternError, Flags, Source

# What matters for counting groups: escapes, classes, opening parentheses.
_PIECES: Final = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]?|\((?:\?<(?![=!]))?", re.DOTALL)
_DIGITS: Final = re.compile(r"[1-9][0-9]*")
_LONGEST_NAME: Final = 60


def survey(source: Source) -> None:
    """Count the groups of the whole pattern and note their names, before it is read."""
    names: dict[str, int] = {}
    for piece in _PIECES.finditer(source.text):
        opens = piece[0] == "(" and source.text[piece.end() : piece.end() + 1] != "?"
        if opens or piece[0] == "(?<":
            source.groups += 1
        if piece[0] == "(?<":
            name = read_name(Source(source.text[piece.end() :]))
            if name in names:
                raise BrokenPatternError(f"two groups of the name {name!r}")
            names[name] = source.groups
    source.names = names


def read_name(source: Source) -> str:
    """The name of a group; its opening angle is already taken, the closing one is taken here."""
    end = source.text.find(">", source.at)
    name = source.text[source.at : max(end, source.at)]
    if len(name) > _LONGEST_NAME or not name.replace("$", "_").isidentifier():
        raise source.broken("a group without a proper name")
    source.at = end + 1
    return name


def group_number(source: Source, flags: Flags) -> int | None:
    """The group that `\\1` or `\\k<name>` means behind a backslash, None where it means none."""
    if source.names or flags.unicode:
        if source.take("k<"):
            return _named(source)
        if source.peek() == "k":
            raise source.broken("\\k wants the name of a group")
    return _numbered(source)


def _named(source: Source) -> int:
    name = read_name(source)
    if name not in source.names:
        raise source.broken(f"no group of the name {name!r}")
    return source.names[name]


def _numbered(source: Source) -> int | None:
    digits = _DIGITS.match(source.text, source.at)
    if digits is None or int(digits[0][:9]) > source.groups:
        return None
    source.at = digits.end()
    return int(digits[0])
