"""Patterns of JavaScript, read into a tree by the rules of the standard and its annex B.

What is no pattern raises BrokenPatternError; what is one, but longer, deeper or with larger counts
than may run here, UnsupportedPatternError. Nothing is handed to an engine that was not read here.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from evennia_ai.engine.lorebook.scan.regex import BrokenPatternError, UnsupportedPatternError
from evennia_ai.engine.lorebook.scan.regex.chars import ANY, NO_LINE_END, WORDS, CharSet
from evennia_ai.engine.lorebook.scan.regex.escapes import (
    Flags,
    Source,
    read_char_escape,
    read_class,
    read_set_escape,
    single,
)
from evennia_ai.engine.lorebook.scan.regex.tree import (
    EMPTY,
    Again,
    Chain,
    Chars,
    Choice,
    Edge,
    Group,
    Look,
    Node,
    Repeat,
    WordEdge,
    below,
    in_units,
    ranges_in,
)

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


MOST_CHARACTERS: Final = 1000
MOST_REPEATS: Final = 1000
MOST_NESTED: Final = 40
MOST_RANGES: Final = 3000
# How a look around begins, whether it looks behind, whether it must not find anything.
_LOOKS: Final[Mapping[str, tuple[bool, bool]]] = {
    "?=": (False, False),
    "?!": (False, True),
    "?<=": (True, False),
    "?<!": (True, True),
}
_SHORT_COUNTS: Final[Mapping[str, tuple[int, int | None]]] = {
    "*": (0, None),
    "+": (1, None),
    "?": (0, 1),
}
_COUNTS: Final = re.compile(r"\{([0-9]+)(,([0-9]*))?\}")
_MODIFIERS: Final = {"i": "ignore_case", "m": "multiline", "s": "dot_all"}


def parse(body: str, flags: Flags) -> Node:
    """The tree of a pattern; raises BrokenPatternError or UnsupportedPatternError."""
    if len(body) > MOST_CHARACTERS:
        raise UnsupportedPatternError(f"longer than {MOST_CHARACTERS:,} characters")
    source = Source(body if flags.unicode else in_units(body))
    survey(source)
    tree = _Parser(source).choice(flags, depth=0)
    if source.peek():
        raise source.broken("a ) that closes nothing")
    if _length(tree) > MOST_REPEATS:
        source.refuse(f"counts that multiply to more than {MOST_REPEATS:,}")
    if ranges_in(tree) > MOST_RANGES:
        source.refuse(f"classes of more than {MOST_RANGES:,} ranges of characters")
    if source.refused:
        raise UnsupportedPatternError(source.refused)
    return Chain(parts=(Edge(place="start"), tree)) if flags.sticky else tree


class _Parser:
    """One method for each rule of the grammar, all moving one cursor."""

    __slots__ = ("_opened", "_source")

    def __init__(self, source: Source) -> None:
        self._source = source
        self._opened = 0

    def choice(self, flags: Flags, *, depth: int) -> Node:
        """Options with bars between them."""
        if depth > MOST_NESTED:
            raise UnsupportedPatternError(f"more than {MOST_NESTED} groups one inside another")
        options = [self._chain(flags, depth)]
        while self._source.take("|"):
            options.append(self._chain(flags, depth))
        return options[0] if len(options) == 1 else Choice(options=tuple(options))

    def _chain(self, flags: Flags, depth: int) -> Node:
        parts = []
        while self._source.peek() not in ("", "|", ")"):
            parts.append(self._term(flags, depth))
        return parts[0] if len(parts) == 1 else Chain(parts=tuple(parts))

    def _term(self, flags: Flags, depth: int) -> Node:
        edge = self._edge(flags)
        if edge is not None:
            return edge
        node = self._atom(flags, depth)
        if isinstance(node, Look) and (node.behind or flags.unicode):
            return node
        return self._repeated(node)

    def _edge(self, flags: Flags) -> Node | None:
        source = self._source
        if source.take("^"):
            return Edge(place="line_start" if flags.multiline else "start")
        if source.take("$"):
            return Edge(place="line_end" if flags.multiline else "end")
        for written, negated in (("\\b", False), ("\\B", True)):
            if source.take(written):
                words = CharSet(ranges=WORDS)
                words = flags.chars(words) if flags.unicode else words
                return WordEdge(words=words, negated=negated)
        return None

    def _atom(self, flags: Flags, depth: int) -> Node:
        source = self._source
        char = source.next()
        match char:
            case "(":
                return self._parenthesis(flags, depth)
            case "[":
                return Chars(chars=read_class(source, flags))
            case ".":
                return Chars(chars=ANY if flags.dot_all else NO_LINE_END)
            case "\\":
                return self._escape(flags)
            case "*" | "+" | "?":
                source.at -= 1
                raise source.broken("nothing to repeat")
            case "{" | "}" | "]":
                self._loose_bracket(char, flags)
        return Chars(chars=single(ord(char), flags))

    def _loose_bracket(self, char: str, flags: Flags) -> None:
        """A bracket that opens or closes nothing means itself without `u`, unless it counts."""
        self._source.at -= 1
        if flags.unicode or (char == "{" and self._counts() is not None):
            raise self._source.broken(f"a {char} that belongs to nothing")
        self._source.at += 1

    def _escape(self, flags: Flags) -> Node:
        source = self._source
        number = group_number(source, flags)
        if number is not None:
            return Again(number=number, folded=flags.ignore_case)
        chars = read_set_escape(source, flags)
        if chars is not None:
            return Chars(chars=flags.chars(chars))
        return Chars(chars=single(read_char_escape(source, flags, in_class=False), flags))

    def _parenthesis(self, flags: Flags, depth: int) -> Node:
        source = self._source
        for written, (behind, negative) in _LOOKS.items():
            if source.take(written):
                body = self._inside(flags, depth)
                return Look(body=body, behind=behind, negative=negative)
        if source.take("?<"):
            read_name(source)
        elif source.take("?"):
            body = self._inside(self._modified(flags), depth)
            return Chain(parts=(body,)) if isinstance(body, Look) else body
        self._opened += 1
        number = self._opened
        return Group(number=number, body=self._inside(flags, depth))

    def _inside(self, flags: Flags, depth: int) -> Node:
        body = self.choice(flags, depth=depth + 1)
        if not self._source.take(")"):
            raise self._source.broken("a ( that is never closed")
        return body

    def _modified(self, flags: Flags) -> Flags:
        """The flags of `(?:`, `(?i:` or `(?i-m:`."""
        source = self._source
        end = source.text.find(":", source.at)
        on, dash, off = source.text[source.at : max(end, source.at)].partition("-")
        both = on + off
        if end < 0 or len(set(both)) < len(both) or not set(both) <= _MODIFIERS.keys():
            raise source.broken("an unknown kind of group")
        if dash and not both:
            raise source.broken("a hyphen without flags")
        source.at = end + 1
        changed = dict.fromkeys(on, True) | dict.fromkeys(off, False)
        return replace(flags, **{_MODIFIERS[name]: state for name, state in changed.items()})

    def _repeated(self, node: Node) -> Node:
        begin = self._source.at
        counts = self._counts()
        if counts is None:
            return node
        least, most = counts
        if most is not None and least > most:
            self._source.at = begin
            raise self._source.broken("counts out of order")
        if max(least, most or 0) > MOST_REPEATS:
            self._source.refuse(f"a count above {MOST_REPEATS:,}")
        lazy = self._source.take("?")
        if isinstance(node, Look):  # annex B lets it be repeated; once says all, or nothing at all
            return node if least else EMPTY
        return Repeat(body=node, least=least, most=most, lazy=lazy)

    def _counts(self) -> tuple[int, int | None] | None:
        """Take `*`, `+`, `?` or `{2,5}` if it comes next, as the least and the most times."""
        source = self._source
        for written, counts in _SHORT_COUNTS.items():
            if source.take(written):
                return counts
        found = _COUNTS.match(source.text, source.at)
        if found is None:
            return None
        source.at = found.end()
        least = _count(found[1])
        return least, (least if found[2] is None else _count(found[3]) if found[3] else None)


def _length(node: Node) -> int:
    """How many characters a node may take, open repetitions at their least, what is empty as one.

    An engine that writes counts out would need memory by this number.
    """
    lengths = [_length(one) for one in below(node)]
    match node:
        case Choice():
            return max(lengths)
        case Repeat(least=least, most=most):
            return lengths[0] * max(1, least if most is None else most)
        case _:
            return max(1, sum(lengths))


def _count(digits: str) -> int:
    """A count; the many digits of a huge one are not worth a number."""
    return int(digits.lstrip("0")[:9] or "0")
