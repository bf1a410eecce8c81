"""Write the syntax tree of a JavaScript regular expression as a pattern for PCRE2.

PCRE2's own rules for case and words are used only for ASCII, where all engines agree. All ASCII
punctuation is escaped.

JavaScript and PCRE2 differ in two points. JavaScript clears the groups in a repetition at each
round, and it matches a lookbehind backwards. A pattern is refused if one of its backreferences
would match another text because of that.
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
    common_ranges,
    merge_ranges,
    other_ranges,
)
from evennia_ai.engine.lorebook.scan.regex.tree import (
    Backreference,
    Chain,
    Chars,
    Choice,
    Group,
    LineAnchor,
    Lookaround,
    Node,
    Place,
    Repeat,
    WordBoundary,
    child_nodes,
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


NO_GROUPS: Final[frozenset[int]] = frozenset()


def write_search(
    tree: Node, *, captured: frozenset[int] = NO_GROUPS, from_offset: bool = False
) -> str:
    """Return the pattern with which PCRE2 searches a text.

    The groups with the numbers `captured` are captured under the names `g1`, `g2` and so on. With
    `from_offset`, the search begins at the offset that the caller gives, and may look behind it.

    PCRE2 restarts its count of steps at each place where it tries a match. So this pattern begins
    at the start of the text and walks to the match, and one count covers the whole search. Callers
    must set the option `(*NO_AUTO_POSSESS)`. Without it, PCRE2 does not count each character that a
    repetition gives back.

    Raises:
        UnsupportedPatternError: PCRE2 would give another result than JavaScript.
    """
    first, may_be_empty = _first_characters(tree)
    walk_there = "(?s:.)*?"
    if not may_be_empty and first:
        skip = f"{_write_chars(CharSet(ranges=first, negated=True))}*+"
        walk_there = f"{skip}(?:(?s:.){skip})*?"
    begin = r"\G" if from_offset else r"\A"
    writer = _Writer(_referred_groups(tree), captured)
    if captured:
        _check_captures(tree, captured)
    return rf"{begin}{walk_there}\K(?:{writer.node(tree)})"


def _check_captures(tree: Node, captured: frozenset[int]) -> None:
    """Refuse groups whose captured text would differ between PCRE2 and JavaScript.

    Raises:
        UnsupportedPatternError: such a group is captured.
    """
    for node, around in _closed_nodes(tree, ()):
        if not isinstance(node, Group) or node.number not in captured:
            continue
        if any(isinstance(one, Lookaround) and one.behind for one in around):
            raise UnsupportedPatternError(f"a replacement with group {node.number} of a lookbehind")
        if any(_may_forget(one, around[at + 1 :]) for at, one in enumerate(around)):
            raise UnsupportedPatternError(
                f"a replacement with group {node.number}, which a repetition may clear"
            )


def _first_characters(node: Node) -> tuple[Ranges, bool]:
    """Return the characters with which a match may begin, and True if a match may be empty."""
    inside = [_first_characters(one) for one in child_nodes(node)]
    first: Ranges = ()
    match node:
        case Chars(chars=chars):
            return (ANY.positive() if chars.properties else chars.positive()), False
        case Chain():
            for more, may_be_empty in inside:
                first = merge_ranges((*first, *more))
                if not may_be_empty:
                    return first, False
        case Choice():
            first = merge_ranges(one for ranges, _ in inside for one in ranges)
            return first, any(may_be_empty for _, may_be_empty in inside)
        case Repeat(least=least):
            return inside[0][0], inside[0][1] or not least
        case Group():
            return inside[0]
        case Backreference():
            first = ANY.positive()
    return first, True


def _referred_groups(tree: Node) -> frozenset[int]:
    """Return the numbers of the groups whose text a backreference may use.

    A backreference to another group, or to a group that is not closed yet, matches empty text.

    Raises:
        UnsupportedPatternError: A backreference would match another text in PCRE2 than in
            JavaScript.
    """
    groups: dict[int, tuple[Node, ...]] = {}
    referred: set[int] = set()
    for node, around in _closed_nodes(tree, ()):
        if isinstance(node, Group):
            groups[node.number] = around
        if not isinstance(node, Backreference) or node.number not in groups:
            continue
        group = groups[node.number]
        shared = {id(one) for one in around}
        # Outside a negative lookaround, its groups are unset. So a backreference there matches
        # empty text.
        if any(
            isinstance(one, Lookaround) and one.negative and id(one) not in shared for one in group
        ):
            continue
        if any(isinstance(one, Lookaround) and one.behind for one in (*group, *around)):
            raise UnsupportedPatternError("a backreference together with a lookbehind")
        if any(_may_forget(one, group[at + 1 :]) for at, one in enumerate(group)):
            raise UnsupportedPatternError("a backreference to a group that a repetition may clear")
        referred.add(node.number)
    return frozenset(referred)


def _closed_nodes(node: Node, around: tuple[Node, ...]) -> Iterator[tuple[Node, tuple[Node, ...]]]:
    """Yield each node of a tree after the nodes inside it, together with the nodes around it."""
    for under in child_nodes(node):
        yield from _closed_nodes(under, (*around, node))
    yield node, around


def _may_forget(node: Node, inside: tuple[Node, ...]) -> bool:
    """True if a later round of a repetition may skip a capturing group in it and so clear its text.

    `inside` are the nodes between the repetition `node` and the group.
    """
    repeats = isinstance(node, Repeat) and node.most != 1
    return repeats and any(
        isinstance(one, Choice) or (isinstance(one, Repeat) and not one.least) for one in inside
    )


class _Writer:
    """A writer of one PCRE2 pattern.

    `referred` has the numbers of the groups that backreferences use, `captured` those of other
    groups to capture.
    """

    __slots__ = ("_captured", "_closed", "_looks", "_referred")

    def __init__(self, referred: frozenset[int], captured: frozenset[int]) -> None:
        self._referred = referred
        self._captured = referred | captured
        self._closed: set[int] = set()
        self._looks = 0  # the number of lookarounds around the current node

    def node(self, node: Node) -> str:
        """Return the PCRE2 pattern for a node of the syntax tree and all nodes under it."""
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
                written = f"({f'?P<g{number}>' if number in self._captured else '?:'}{inside})"
            case Lookaround():
                written = self._look(node)
            case Chars(chars=chars):
                written = _write_chars(chars)
            case LineAnchor(place=place):
                written = _PLACES[place]
            case WordBoundary():
                written = _write_word_edge(node)
            case Backreference():
                written = self._backreference(node)
        return written

    def _part(self, node: Node) -> str:
        written = self.node(node)
        return f"(?:{written})" if isinstance(node, Choice) else written

    def _repeat(self, node: Repeat) -> str:
        body = self.node(node.body)
        # PCRE2 never gives back characters inside a lookaround that matched, so it would not count
        # them. But it counts each round of a group. So the repeated part is written as a group.
        if not isinstance(node.body, Chars) or (self._looks and node.most is None):
            body = f"(?:{body})"
        most = "" if node.most is None else node.most
        return f"{body}{{{node.least},{most}}}" + ("?" if node.lazy else "")

    def _look(self, look: Lookaround) -> str:
        if look.behind and (longest := _longest(look.body)) > _MOST_BEHIND:
            bound = "any number of" if longest == math.inf else f"{longest:,.0f}"
            raise UnsupportedPatternError(
                f"a lookbehind over {bound} characters; at most {_MOST_BEHIND} are supported"
            )
        self._looks += 1
        body = self.node(look.body)
        self._looks -= 1
        return f"{_LOOKS[look.behind, look.negative]}{body})"

    def _backreference(self, node: Backreference) -> str:
        """Return a backreference that matches empty text if its group has not matched."""
        number = node.number
        if number not in self._referred or number not in self._closed:
            return ""
        written = f"(?P=g{number})"
        # The option `r` prevents ASCII letters from matching letters outside ASCII.
        return f"(?(<g{number}>){f'(?ri:{written})' if node.folded else written}|)"


def _longest(node: Node) -> float:
    """Return how many characters a node can match at most; infinity if there is no limit."""
    inside = [_longest(one) for one in child_nodes(node)]
    match node:
        case Chars():
            return 1
        case Choice():
            return max(inside)
        case Repeat(most=most):
            rounds = math.inf if most is None else most
            return inside[0] * rounds if inside[0] else 0
        case Backreference():
            return math.inf
        case Lookaround():
            return 0
        case _:
            return sum(inside)


def _write_word_edge(edge: WordBoundary) -> str:
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
    """Return the ranges with surrogates replaced by the private-use characters used for them."""
    surrogates = common_ranges(ranges, (SURROGATES,))
    if not surrogates:
        return ranges
    rest = common_ranges(ranges, other_ranges((SURROGATES,)))
    moved = ((first + TO_PRIVATE_USE, last + TO_PRIVATE_USE) for first, last in surrogates)
    return merge_ranges((*rest, *moved))


def _escape(code: int) -> str:
    if SURROGATES[0] <= code <= SURROGATES[1]:
        code += TO_PRIVATE_USE
    char = chr(code)
    if char.isascii():
        return char if char.isalnum() else f"\\x{code:02x}"
    return char


def uncounted_characters(node: Node, *, in_look: bool = False) -> int:
    """Return how many characters PCRE2 may walk over in one counted step of this node at most.

    PCRE2 counts neither characters in a row nor rounds of a repetition that cannot be given back.
    Backreferences are left out here, because the length of their text is not known.
    """
    inside = [
        uncounted_characters(one, in_look=in_look or isinstance(node, Lookaround))
        for one in child_nodes(node)
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
