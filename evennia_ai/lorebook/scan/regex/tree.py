"""A pattern as a tree, with all flags applied; the text it needs, and texts as JavaScript counts.

Case is in the sets of characters, lines are in the edges; nothing below needs to know a flag.

The text that every match must contain tells at once where there is none. It is looked for in the
lower-cased text. A character may be part of it only if all that the pattern takes in its place have
one and the same small letter: an `s` that also means the long s does not, and ends the run.

A character beyond the first 65,536 is a pair of surrogates in JavaScript. Without the flag `u` a
pattern sees the two halves: `.` is one of them, and a class of two emoji holds their common half.
Only patterns that can see a half are searched in such a text.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from evennia_ai.lorebook.scan.regex.chars import CharSet

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
