"""The syntax tree of a regular expression, with the flags already applied to its nodes.

The flag that ignores case widens the character sets, and the multiline flag changes the anchors.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from evennia_ai.engine.lorebook.scan.regex.chars import CharSet

Place = Literal["start", "end", "line_start", "line_end"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chars:
    """A part of a regular expression that matches one character of a set."""

    chars: CharSet


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """Parts of a regular expression that match one after another."""

    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Alternatives in a regular expression. The first alternative that leads to a match is used."""

    options: tuple["Node", ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """A part of a regular expression, repeated `least` to `most` times; None means no limit."""

    body: "Node"
    least: int
    most: int | None
    lazy: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A capturing group in a regular expression. Backreferences use its number."""

    number: int
    body: "Node"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookaround:
    """A lookahead, or a lookbehind if `behind`. If `negative`, it must not match."""

    body: "Node"
    behind: bool
    negative: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LineAnchor:
    """An anchor in a regular expression: the start or end of the text, or of a line."""

    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class WordBoundary:
    """A place where a run of the characters `words` begins or ends; any other if `negated`."""

    words: CharSet
    negated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Backreference:
    """A backreference to the text that group `number` matched. If `folded`, case is ignored."""

    number: int
    folded: bool


Node = (
    Chars | Chain | Choice | Repeat | Group | Lookaround | LineAnchor | WordBoundary | Backreference
)
EMPTY: Final = Chain(parts=())


def child_nodes(node: Node) -> tuple[Node, ...]:
    """Return the nodes of the syntax tree directly under this one."""
    match node:
        case Chain(parts=nodes) | Choice(options=nodes):
            return nodes
        case Repeat(body=body) | Group(body=body) | Lookaround(body=body):
            return (body,)
        case _:
            return ()


def walk_nodes(node: Node) -> Iterator[Node]:
    """Yield this node of the syntax tree and all nodes under it."""
    yield node
    for under in child_nodes(node):
        yield from walk_nodes(under)
