"""The tree of a pattern with all flags applied, how PCRE2 reads it, and JavaScript's text units.

Case is in the sets of characters and lines are in the edges, so no node needs a flag. PCRE2 is
asked about case and words only for ASCII, where all engines agree, and every other sign of ASCII
is escaped. JavaScript forgets what groups found at each new round of a repetition around them, and
reads backwards in a look behind; PCRE2 does neither. A reference back that would come out
differently is refused.

A character beyond the first 65,536 is a pair of surrogates in JavaScript. Without the flag `u` a
pattern sees the two halves: `.` is one of them, and a class of two emoji holds their common half.
Only patterns that can see a half are searched in such a text.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from evennia_ai.engine.lorebook.scan.regex import UnsupportedPatternError
from evennia_ai.engine.lorebook.scan.regex.chars import (
    ANY,
    DIGITS,
    SURROGATES,
    WORDS,
    CharSet,
    Ranges,
    common,
    merged,
    others,
)

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


_LINE_END: Final = "[^\\n\\r\u2028\u2029]"
_PLACES: Final[Mapping[Place, str]] = {
    "start": r"\A",
    "end": r"\z",
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
_MOST_BEHIND: Final = 255
# PCRE2 takes no surrogates. They become characters of private use, in patterns and in texts.
_TO_PRIVATE_USE: Final = 0x100000
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def without_surrogates(text: str) -> str:
    """Return the text with a private character for each surrogate, as `write` writes them."""
    if text.isascii():
        return text
    return _SURROGATE.sub(lambda found: chr(ord(found[0]) + _TO_PRIVATE_USE), text)


def write_search(tree: Node) -> str:
    """Return the pattern with which PCRE2 searches a text, or raise UnsupportedPatternError.

    It needs `(*NO_AUTO_POSSESS)`: only then does PCRE2 count a step for each character that a
    repetition gives back. PCRE2 counts from zero at each place where it begins a match. So this
    pattern begins at one place, the start of the text, and walks to where the tree may match.
    """
    first, may_be_empty = _first_characters(tree)
    walk_there = "(?s:.)*?"
    if not may_be_empty and first:
        skip = f"{_written_chars(CharSet(ranges=first, negated=True))}*+"
        walk_there = f"{skip}(?:(?s:.){skip})*?"
    return rf"\A{walk_there}\K(?:{_Writer(remembered(tree)).node(tree)})"


def _first_characters(node: Node) -> tuple[Ranges, bool]:
    """Return what a match of the node may begin with, and whether the match may be empty."""
    inside = [_first_characters(one) for one in below(node)]
    first: Ranges = ()
    match node:
        case Chars(chars=chars):
            return (ANY.positive() if chars.properties else chars.positive()), False
        case Chain():
            for more, may_be_empty in inside:
                first = merged((*first, *more))
                if not may_be_empty:
                    return first, False
        case Choice():
            first = merged(one for ranges, _ in inside for one in ranges)
            return first, any(may_be_empty for _, may_be_empty in inside)
        case Repeat(least=least):
            return inside[0][0], inside[0][1] or not least
        case Group():
            return inside[0]
        case Again():
            first = ANY.positive()
    return first, True


class _Writer:
    """Writes one tree; `groups` are the numbers of the groups that the engine must remember."""

    __slots__ = ("_closed", "_groups", "_looks")

    def __init__(self, groups: frozenset[int]) -> None:
        self._groups = groups
        self._closed: set[int] = set()
        self._looks = 0  # how many look-arounds enclose what is being written

    def node(self, node: Node) -> str:
        """Return what PCRE2 reads for a node and all under it."""
        match node:
            case Chain(parts=parts):
                written = "".join(map(self._part, parts))
            case Choice(options=options):
                written = "|".join(map(self.node, options))
            case Repeat():
                written = self._repeat(node)
            case Group(number=number, body=body):
                inside = self.node(body)
                self._closed.add(number)
                written = f"({f'?P<g{number}>' if number in self._groups else '?:'}{inside})"
            case Look():
                written = self._look(node)
            case Chars(chars=chars):
                written = _written_chars(chars)
            case Edge(place=place):
                written = _PLACES[place]
            case WordEdge(words=words, negated=negated):
                written = _written_word_edge(words, negated)
            case Again(number=number, folded=folded):
                written = self._again(number, folded)
        return written

    def _part(self, node: Node) -> str:
        written = self.node(node)
        return f"(?:{written})" if isinstance(node, Choice) else written

    def _look(self, look: Look) -> str:
        if look.behind and (longest := _longest(look.body)) > _MOST_BEHIND:
            bound = "any number" if longest == math.inf else f"{longest:,.0f}"
            raise UnsupportedPatternError(
                f"a look behind over {bound} of characters; {_MOST_BEHIND} are the most"
            )
        self._looks += 1
        body = self.node(look.body)
        self._looks -= 1
        return f"{_LOOKS[look.behind, look.negative]}{body})"

    def _repeat(self, node: Repeat) -> str:
        body = self.node(node.body)
        # A look-around that succeeds gives nothing back, so PCRE2 would not count the characters
        # that a repetition in it walks over. It counts each round of a group.
        if not isinstance(node.body, Chars) or (self._looks and node.most is None):
            body = f"(?:{body})"
        most = "" if node.most is None else node.most
        return f"{body}{{{node.least},{most}}}" + ("?" if node.lazy else "")

    def _again(self, number: int, folded: bool) -> str:
        """Return a reference to what the group found; it matches "" if the group found nothing."""
        if number not in self._groups or number not in self._closed:
            return ""
        again = f"(?P=g{number})"
        # `r`: no letter of ASCII equals one that is not.
        return f"(?(<g{number}>){f'(?ri:{again})' if folded else again}|)"


def _longest(node: Node) -> float:
    """Return how many characters a node takes at most; infinity if there is no bound."""
    inside = [_longest(one) for one in below(node)]
    longest: float
    match node:
        case Chars():
            longest = 1
        case Choice():
            longest = max(inside)
        case Repeat(most=most):
            rounds = math.inf if most is None else most
            longest = inside[0] * rounds if inside[0] else 0
        case Again():
            longest = math.inf
        case Look():
            longest = 0
        case _:
            longest = sum(inside)
    return longest


def uncounted_characters(tree: Node) -> int:
    """Return how many characters one counted step of PCRE2 may walk over, at most.

    These are the characters that stand one after another, and the rounds of a repetition that it
    cannot give back. References back are not included: they walk over what their group found.
    """
    return _uncounted(tree, in_look=False)


def _uncounted(node: Node, *, in_look: bool) -> int:
    inside = [_uncounted(one, in_look=in_look or isinstance(node, Look)) for one in below(node)]
    match node:
        case Chars():
            return 1
        case Choice():
            return max(inside)
        case Repeat(least=least, most=most):
            return inside[0] * max(1, (most or 0) if in_look else 0, least)
        case _:
            return sum(inside)


def _written_word_edge(words: CharSet, negated: bool) -> str:
    if words.ranges == WORDS:
        return r"\B" if negated else r"\b"
    one = _written_chars(words)
    if negated:
        return f"(?:(?<={one})(?={one})|(?<!{one})(?!{one}))"
    return f"(?:(?<={one})(?!{one})|(?<!{one})(?={one}))"


def _written_chars(chars: CharSet) -> str:
    if chars == ANY:
        return "(?s:.)"
    if not chars.ranges and not chars.properties:
        return "(?s:.)" if chars.negated else _NEVER
    if not chars.negated and not chars.properties:
        if chars.ranges in (WORDS, DIGITS):
            return r"\w" if chars.ranges == WORDS else r"\d"
        if len(chars.ranges) == 1 and chars.ranges[0][0] == chars.ranges[0][1]:
            return _escaped(chars.ranges[0][0])
    inside = "".join(_run(*run) for run in _in_private_use(chars.ranges))
    inside += "".join(f"\\{'P' if one.negated else 'p'}{{{one.name}}}" for one in chars.properties)
    return f"[{'^' if chars.negated else ''}{inside}]"


def _in_private_use(ranges: Ranges) -> Ranges:
    """Return the ranges with private characters for the surrogates in them."""
    halves = common(ranges, (SURROGATES,))
    if not halves:
        return ranges
    rest = common(ranges, others((SURROGATES,)))
    moved = ((first + _TO_PRIVATE_USE, last + _TO_PRIVATE_USE) for first, last in halves)
    return merged((*rest, *moved))


def _run(first: int, last: int) -> str:
    return _escaped(first) if first == last else f"{_escaped(first)}-{_escaped(last)}"


def _escaped(code: int) -> str:
    if SURROGATES[0] <= code <= SURROGATES[1]:
        code += _TO_PRIVATE_USE
    char = chr(code)
    if char.isascii():
        return char if char.isalnum() else f"\\x{code:02x}"
    return char
