"""A pattern as a tree: what was read, with all flags already applied.

Case is in the sets of characters, lines are in the edges; nothing below needs to know a flag.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from evennia_ai.lorebook.patterns.charsets import CharSet

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
