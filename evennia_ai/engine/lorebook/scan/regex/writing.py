"""A pattern's tree, written for PCRE2.

PCRE2 is asked about case and words only for ASCII, where all engines agree, and every other sign of
ASCII is escaped. JavaScript forgets what groups found at each new round of a repetition around
them, and reads backwards in a look behind; PCRE2 does neither. A reference back that would come out
differently is refused.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Final

from evennia_ai.engine.lorebook.scan.regex import UnsupportedPatternError
from evennia_ai.engine.lorebook.scan.regex.chars import (
    ANY,
    DIGITS,
    WORDS,
    CharSet,
    Ranges,
    common,
    merged,
    others,
)
from evennia_ai.engine.lorebook.scan.regex.tree import (
    Again,
    Chain,
    Chars,
    Choice,
    Edge,
    Group,
    Look,
    Node,
    Place,
    Repeat,
    WordEdge,
    below,
)
from evennia_ai.engine.lorebook.scan.regex.units import SURROGATES, TO_PRIVATE_USE

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
_MOST_BEHIND: Final = 255


def write_search(tree: Node) -> str:
    """Return the pattern with which PCRE2 searches a text, or raise UnsupportedPatternError.

    It needs `(*NO_AUTO_POSSESS)`: only then does PCRE2 count a step for each character that a
    repetition gives back. PCRE2 counts from zero at each place where it begins a match. So this
    pattern begins at one place, the start of the text, and walks to where the tree may match.
    """
    first, may_be_empty = _first_characters(tree)
    walk_there = "(?s:.)*?"
    if not may_be_empty and first:
        skip = f"{_write_chars(CharSet(ranges=first, negated=True))}*+"
        walk_there = f"{skip}(?:(?s:.){skip})*?"
    return rf"\A{walk_there}\K(?:{_Writer(_referred_groups(tree)).node(tree)})"


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


def _referred_groups(tree: Node) -> frozenset[int]:
    """Return the numbers of the groups that a reference back may read.

    A reference to any other group, or to one that is not closed yet, matches the empty text.

    Raises:
        UnsupportedPatternError: PCRE2 would read another text than JavaScript.
    """
    groups: dict[int, tuple[Node, ...]] = {}
    referred: set[int] = set()
    for node, around in _closed_nodes(tree, ()):
        if isinstance(node, Group):
            groups[node.number] = around
        if not isinstance(node, Again) or node.number not in groups:
            continue
        group = groups[node.number]
        shared = {id(one) for one in around}
        # Outside a negative look-around its groups have found nothing.
        if any(isinstance(one, Look) and one.negative and id(one) not in shared for one in group):
            continue
        if any(isinstance(one, Look) and one.behind for one in (*group, *around)):
            raise UnsupportedPatternError("a back-reference and a look behind")
        if any(_may_forget(one, group[at + 1 :]) for at, one in enumerate(group)):
            raise UnsupportedPatternError("a back-reference to what a repetition may forget")
        referred.add(node.number)
    return frozenset(referred)


def _closed_nodes(node: Node, around: tuple[Node, ...]) -> Iterator[tuple[Node, tuple[Node, ...]]]:
    """Yield all nodes in the order in which they end, each with the nodes around it."""
    for under in below(node):
        yield from _closed_nodes(under, (*around, node))
    yield node, around


def _may_forget(node: Node, inside: tuple[Node, ...]) -> bool:
    """True if a later round of this node may pass by a group that is inside these nodes of it."""
    repeats = isinstance(node, Repeat) and node.most != 1
    return repeats and any(
        isinstance(one, Choice) or (isinstance(one, Repeat) and not one.least) for one in inside
    )


class _Writer:
    """Writes one tree; `referred` are the numbers of the groups that PCRE2 must remember."""

    __slots__ = ("_closed", "_looks", "_referred")

    def __init__(self, referred: frozenset[int]) -> None:
        self._referred = referred
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
                written = f"({f'?P<g{number}>' if number in self._referred else '?:'}{inside})"
            case Look():
                written = self._look(node)
            case Chars(chars=chars):
                written = _write_chars(chars)
            case Edge(place=place):
                written = _PLACES[place]
            case WordEdge():
                written = _write_word_edge(node)
            case Again():
                written = self._again(node)
        return written

    def _part(self, node: Node) -> str:
        written = self.node(node)
        return f"(?:{written})" if isinstance(node, Choice) else written

    def _repeat(self, node: Repeat) -> str:
        body = self.node(node.body)
        # A look-around that succeeds gives nothing back, so PCRE2 would not count the characters
        # that a repetition in it walks over. It counts each round of a group.
        if not isinstance(node.body, Chars) or (self._looks and node.most is None):
            body = f"(?:{body})"
        most = "" if node.most is None else node.most
        return f"{body}{{{node.least},{most}}}" + ("?" if node.lazy else "")

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

    def _again(self, again: Again) -> str:
        """Return a reference to what the group found; it matches "" if the group found nothing."""
        number = again.number
        if number not in self._referred or number not in self._closed:
            return ""
        written = f"(?P=g{number})"
        # `r`: no letter of ASCII equals one that is not.
        return f"(?(<g{number}>){f'(?ri:{written})' if again.folded else written}|)"


def _longest(node: Node) -> float:
    """Return how many characters a node takes at most; infinity if there is no bound."""
    inside = [_longest(one) for one in below(node)]
    match node:
        case Chars():
            return 1
        case Choice():
            return max(inside)
        case Repeat(most=most):
            rounds = math.inf if most is None else most
            return inside[0] * rounds if inside[0] else 0
        case Again():
            return math.inf
        case Look():
            return 0
        case _:
            return sum(inside)


def _write_word_edge(edge: WordEdge) -> str:
    if edge.words.ranges == WORDS:
        return r"\B" if edge.negated else r"\b"
    one = _write_chars(edge.words)
    if edge.negated:
        return f"(?:(?<={one})(?={one})|(?<!{one})(?!{one}))"
    return f"(?:(?<={one})(?!{one})|(?<!{one})(?={one}))"


def _write_chars(chars: CharSet) -> str:
    if chars == ANY:
        return "(?s:.)"
    if not chars.ranges and not chars.properties:
        return "(?!)"
    if not chars.negated and not chars.properties:
        if chars.ranges in (WORDS, DIGITS):
            return r"\w" if chars.ranges == WORDS else r"\d"
        if len(chars.ranges) == 1 and chars.ranges[0][0] == chars.ranges[0][1]:
            return _escape(chars.ranges[0][0])
    inside = ""
    for first, last in _in_private_use(chars.ranges):
        inside += _escape(first) if first == last else f"{_escape(first)}-{_escape(last)}"
    for one in chars.properties:
        inside += f"\\{'P' if one.negated else 'p'}{{{one.name}}}"
    return f"[{'^' if chars.negated else ''}{inside}]"


def _in_private_use(ranges: Ranges) -> Ranges:
    """Return the ranges with characters of private use for the surrogates in them."""
    surrogates = common(ranges, (SURROGATES,))
    if not surrogates:
        return ranges
    rest = common(ranges, others((SURROGATES,)))
    moved = ((first + TO_PRIVATE_USE, last + TO_PRIVATE_USE) for first, last in surrogates)
    return merged((*rest, *moved))


def _escape(code: int) -> str:
    if SURROGATES[0] <= code <= SURROGATES[1]:
        code += TO_PRIVATE_USE
    char = chr(code)
    if char.isascii():
        return char if char.isalnum() else f"\\x{code:02x}"
    return char


def uncounted_characters(node: Node, *, in_look: bool = False) -> int:
    """Return how many characters one counted step of PCRE2 may walk over, at most.

    These are the characters that stand one after another, and the rounds of a repetition that it
    cannot give back. References back are not included: they walk over what their group found.
    """
    inside = [
        uncounted_characters(one, in_look=in_look or isinstance(node, Look)) for one in below(node)
    ]
    match node:
        case Chars():
            return 1
        case Choice():
            return max(inside)
        case Repeat(least=least, most=most):
            return inside[0] * max(1, (most or 0) if in_look else 0, least)
        case _:
            return sum(inside)
