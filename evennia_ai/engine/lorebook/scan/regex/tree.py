"""The tree of a pattern.

All flags are applied: case is in the sets of characters, lines are in the edges.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from evennia_ai.engine.lorebook.scan.regex.chars import CharSet

Place = Literal["start", "end", "line_start", "line_end"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chars:
    """One character of a set."""

    chars: CharSet


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """Nodes that match one after another."""

    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Options, of which the first that leads to a match is taken."""

    options: tuple["Node", ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """A node that matches from `least` to `most` times; `most` is None if there is no bound."""

    body: "Node"
    least: int
    most: int | None
    lazy: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A node whose text is remembered under a number."""

    number: int
    body: "Node"


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What must follow, or must stand before if `behind`; if `negative`, what must not."""

    body: "Node"
    behind: bool
    negative: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """The start or the end of the text or of a line."""

    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class WordEdge:
    """A place where a run of `words` begins or ends; if `negated`, any other place."""

    words: CharSet
    negated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """The text that group `number` found, once more; in any case if `folded`."""

    number: int
    folded: bool


Node = Chars | Chain | Choice | Repeat | Group | Look | Edge | WordEdge | Again
EMPTY: Final = Chain(parts=())


def below(node: Node) -> tuple[Node, ...]:
    """Return the nodes directly under this one."""
    match node:
        case Chain(parts=nodes) | Choice(options=nodes):
            return nodes
        case Repeat(body=body) | Group(body=body) | Look(body=body):
            return (body,)
        case _:
            return ()


def walk(node: Node) -> Iterator[Node]:
    """Yield the node and all nodes under it."""
    yield node
    for under in below(node):
        yield from walk(under)
