"""A pattern as a tree with all flags applied, what it is for the package `regex`, and texts as
JavaScript counts them.

Case is in the sets of characters, lines are in the edges; nothing below needs to know a flag. What
is written uses no idea of the engine's of case, words or lines but for ASCII, where all agree, and
every sign that may mean something is escaped. JavaScript forgets what groups found at each new
round of a repetition around them, and reads backwards behind a place; Python does neither. A
reference back that would come out differently is refused.

A character beyond the first 65,536 is a pair of surrogates in JavaScript. Without the flag `u` a
pattern sees the two halves: `.` is one of them, and a class of two emoji holds their common half.
Only patterns that can see a half are searched in such a text.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from evennia_ai.lorebook.scan.regex import UnsupportedPatternError
from evennia_ai.lorebook.scan.regex.chars import ANY, DIGITS, WORDS, CharSet, Ranges, common

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


Place = Literal["start", "end", "line_start", "line_end"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chars:
    """One character of a set."""

    chars: CharSet


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """One after the other."""

    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One of these, the first that leads to a match."""

    options: tuple["Node", ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """Again and again; `most` is None where there is no end."""

    body: "Node"
    least: int
    most: int | None
    lazy: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """What was found is remembered under a number."""

    number: int
    body: "Node"


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What stands ahead or behind, without going there; `negative`: what must not."""

    body: "Node"
    behind: bool
    negative: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """A place of the text."""

    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class WordEdge:
    """A place where a run of these characters begins or ends; `negated`: any other place."""

    words: CharSet
    negated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """What group `number` found, once more; `folded`: in any case."""

    number: int
    folded: bool


Node = Chars | Chain | Choice | Repeat | Group | Look | Edge | WordEdge | Again
EMPTY = Chain(parts=())


def below(node: Node) -> tuple[Node, ...]:
    """The nodes directly under this one."""
    match node:
        case Chain(parts=nodes) | Choice(options=nodes):
            return nodes
        case Repeat(body=body) | Group(body=body) | Look(body=body):
            return (body,)
        case _:
            return ()


def walk(node: Node) -> Iterator[Node]:
    """The node and all under it."""
    yield node
    for under in below(node):
        yield from walk(under)


def ranges_in(tree: Node) -> int:
    """How many ranges of characters all sets have together."""
    return sum(len(node.chars.ranges) for node in walk(tree) if isinstance(node, Chars))


# A node under all that is around it, the outermost first.
Around = tuple[Node, ...]


def remembered(tree: Node) -> frozenset[int]:
    """Numbers of the groups that an engine must remember.

    A reference to any other group, or to one that is not closed yet, is to nothing, and matches
    nothing. Raises UnsupportedPatternError.
    """
    groups: dict[int, Around] = {}
    wanted: set[int] = set()
    for node, place in _closed(tree, ()):
        if isinstance(node, Group):
            groups[node.number] = place
        elif isinstance(node, Again) and _is_readable(groups.get(node.number), place):
            wanted.add(node.number)
    return frozenset(wanted)


def _closed(node: Node, around: Around) -> Iterator[tuple[Node, Around]]:
    """All nodes in the order in which they end."""
    for under in below(node):
        yield from _closed(under, (*around, node))
    yield node, around


def _is_readable(group: Around | None, place: Around) -> bool:
    """Whether a group may have found something; one inside a negative look has not, outside."""
    if group is None:
        return False
    around = {id(node) for node in place}
    left = [node for node in group if isinstance(node, Look) and id(node) not in around]
    if any(node.negative for node in left):
        return False
    if any(isinstance(node, Look) and node.behind for node in (*group, *place)):
        raise UnsupportedPatternError("a back-reference and a look behind")
    if any(_forgets(node, group[at + 1 :]) for at, node in enumerate(group)):
        raise UnsupportedPatternError("a back-reference to what a repetition may forget")
    return True


def _forgets(node: Node, inside: Around) -> bool:
    """Whether a later round of this repetition may pass by a group that is so deep inside."""
    repeats = isinstance(node, Repeat) and node.most != 1
    return repeats and any(
        isinstance(one, Choice) or (isinstance(one, Repeat) and not one.least) for one in inside
    )


_LINE_END: Final = r"[^\n\r\u2028\u2029]"
_PLACES: Final[Mapping[Place, str]] = {
    "start": r"\A",
    "end": r"\Z",
    "line_start": f"(?<!{_LINE_END})",
    "line_end": f"(?!{_LINE_END})",
}
_LOOKS: Final[Mapping[tuple[bool, bool], str]] = {
    (False, False): "(?=",
    (False, True): "(?!",
    (True, False): "(?<=",
    (True, True): "(?<!",
}
_NEVER: Final = "(?!)"
_CAPITALS: Final[Ranges] = ((0x41, 0x5A),)
_SMALL: Final[Ranges] = ((0x61, 0x7A),)
_BETWEEN_CASES: Final = 0x20


def write(tree: Node) -> str:
    """The pattern for Python's engines; raises UnsupportedPatternError.

    Properties are written as `regex` has them, so a tree for `re` must have none.
    """
    return _Writer(tree).written()


class _Writer:
    """`is_ascii`: `\\w`, `\\b` and case may be left to the engine, which then knows ASCII alone."""

    __slots__ = ("_closed", "_groups", "_is_ascii", "_is_folded", "_tree")

    def __init__(self, tree: Node) -> None:
        nodes = tuple(walk(tree))
        sets = [node.chars for node in nodes if isinstance(node, Chars)]
        self._tree = tree
        self._groups = remembered(tree)
        self._closed: set[int] = set()
        self._is_ascii = not any(chars.properties for chars in sets)
        self._is_folded = self._is_ascii and all(
            node.folded for node in nodes if isinstance(node, Again)
        )
        self._is_folded = self._is_folded and all(_has_both_cases(chars.ranges) for chars in sets)

    def written(self) -> str:
        flags = ("a" if self._is_ascii else "") + ("i" if self._is_folded else "")
        return (f"(?{flags})" if flags else "") + self._node(self._tree)

    def _node(self, node: Node) -> str:
        match node:
            case Chain(parts=parts):
                return "".join(map(self._part, parts))
            case Choice(options=options):
                return "|".join(map(self._node, options))
            case Repeat():
                return self._repeat(node)
            case Group(number=number, body=body):
                return self._group(number, body)
            case Look(body=body, behind=behind, negative=negative):
                return f"{_LOOKS[behind, negative]}{self._node(body)})"
            case _:
                return self._leaf(node)

    def _leaf(self, node: Chars | Edge | WordEdge | Again) -> str:
        match node:
            case Chars(chars=chars):
                return self._chars(chars)
            case Edge(place=place):
                return _PLACES[place]
            case WordEdge(words=words, negated=negated):
                return self._word_edge(words, negated)
            case Again(number=number, folded=folded):
                return self._again(number, folded)

    def _part(self, node: Node) -> str:
        written = self._node(node)
        return f"(?:{written})" if isinstance(node, Choice) else written

    def _repeat(self, node: Repeat) -> str:
        body = self._node(node.body)
        if not isinstance(node.body, Chars):
            body = f"(?:{body})"
        most = "" if node.most is None else node.most
        return f"{body}{{{node.least},{most}}}" + ("?" if node.lazy else "")

    def _group(self, number: int, body: Node) -> str:
        written = self._node(body)
        self._closed.add(number)
        return f"(?P<g{number}>{written})" if number in self._groups else f"(?:{written})"

    def _again(self, number: int, folded: bool) -> str:
        """What the group found, or nothing where it found nothing: that is no failure."""
        if number not in self._groups or number not in self._closed:
            return ""
        again = f"(?P=g{number})"
        return f"(?(g{number}){f'(?i:{again})' if folded else again}|)"

    def _word_edge(self, words: CharSet, negated: bool) -> str:
        if self._is_ascii and words.ranges == WORDS:
            return r"(?!\b)" if negated else r"\b"
        one = self._chars(words)
        if negated:
            return f"(?:(?<={one})(?={one})|(?<!{one})(?!{one}))"
        return f"(?:(?<={one})(?!{one})|(?<!{one})(?={one}))"

    def _chars(self, chars: CharSet) -> str:
        if chars == ANY:
            return "(?s:.)"
        if not chars.ranges and not chars.properties:
            return _NEVER
        single = None if chars.negated or chars.properties else self._single(chars.ranges)
        if single is not None:
            return single
        inside = "".join(_run(*run) for run in chars.ranges)
        inside += "".join(
            f"\\{'P' if one.negated else 'p'}{{{one.name}}}" for one in chars.properties
        )
        written = f"[{'^' if chars.negated else ''}{inside}]"
        # Both cases are named; `re` mistakes some sets beyond ASCII where it is to ignore case.
        return f"(?-i:{written})" if self._is_folded else written

    def _single(self, ranges: Ranges) -> str | None:
        if ranges in (WORDS, DIGITS) and self._is_ascii:
            return r"\w" if ranges == WORDS else r"\d"
        if self._is_folded:
            ranges = tuple(run for run in ranges if run not in _capitals_of(ranges))
        if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
            return _escaped(ranges[0][0])
        return None


def _run(first: int, last: int) -> str:
    return _escaped(first) if first == last else f"{_escaped(first)}-{_escaped(last)}"


def _has_both_cases(ranges: Ranges) -> bool:
    """Whether of each ASCII letter both cases are there, or neither."""
    small = common(ranges, _SMALL)
    raised = tuple((first - _BETWEEN_CASES, last - _BETWEEN_CASES) for first, last in small)
    return raised == common(ranges, _CAPITALS)


def _capitals_of(ranges: Ranges) -> Ranges:
    """The single capitals whose small letters are there."""
    return tuple(
        (code, code)
        for code, last in ranges
        if code == last and common(((code, code),), _CAPITALS)
        if common(((code + _BETWEEN_CASES, code + _BETWEEN_CASES),), ranges)
    )


def _escaped(code: int) -> str:
    char = chr(code)
    if char.isascii() and char.isalnum():
        return char
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
