"""What searching with a pattern may cost an engine that cannot be stopped, told from its tree.

Such an engine tries every way a pattern may lie over a text. A pattern whose ways double with each
character is refused. Of any other it is told how many of its repetitions may run over the same
text, because the ways grow by that power: the more there are, the shorter a text it may see.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from evennia_ai.lorebook.patterns.charsets import CharSet, merged
from evennia_ai.lorebook.patterns.source import UnsupportedPatternError
from evennia_ai.lorebook.patterns.tree import (
    Again,
    Chain,
    Chars,
    Choice,
    Group,
    Look,
    Node,
    Repeat,
    ranges_in,
    walk,
)

# How many characters of a text a pattern may see, by its repetitions over the same text.
REACH: Final[Mapping[int, int]] = {0: 20_000, 1: 4_000, 2: 400}
_MOST_WAYS: Final = 64
_MOST_RANGES: Final = 5000
_FEW_ROUNDS: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cost:
    """In how many ways a node may match at one place, and what its open repetitions run over."""

    ways: int = 1
    runs: tuple[CharSet, ...] = ()


def reach(tree: Node) -> int:
    """How many characters of a text may be searched; UnsupportedPatternError: none at all."""
    if ranges_in(tree) > _MOST_RANGES:
        raise UnsupportedPatternError("classes of too many characters")
    cost = _cost(tree)
    if cost.ways > _MOST_WAYS:
        raise UnsupportedPatternError("too many ways to match")
    power = _power(cost.runs)
    if power not in REACH:
        raise UnsupportedPatternError("too many repetitions that may run over the same text")
    return REACH[power]


def _power(runs: tuple[CharSet, ...]) -> int:
    """The longest row of repetitions each of which may go on where the one before it stopped."""
    powers: list[int] = []
    for at, run in enumerate(runs):
        before = (powers[i] for i in range(at) if runs[i].overlaps(run))
        powers.append(1 + max(before, default=0))
    return max(powers, default=0)


def _cost(node: Node) -> _Cost:
    match node:
        case Chain(parts=parts):
            return _together(map(_cost, parts))
        case Choice(options=options):
            return _choice(options)
        case Repeat():
            return _repeat(node)
        case Group(body=body) | Look(body=body):
            return _cost(body)
        case _:
            return _Cost()


def _together(costs: Iterable[_Cost]) -> _Cost:
    ways = 1
    runs: list[CharSet] = []
    for cost in costs:
        ways = min(ways * cost.ways, _MOST_WAYS + 1)
        runs += cost.runs
    return _Cost(ways=ways, runs=tuple(runs))


def _choice(options: tuple[Node, ...]) -> _Cost:
    """Options that begin with different characters are no choice: the text decides."""
    costs = [_cost(option) for option in options]
    runs = tuple(run for cost in costs for run in cost.runs)
    ways = [cost.ways for cost in costs]
    return _Cost(ways=max(ways) if _are_apart(options) else sum(ways), runs=runs)


def _repeat(node: Repeat) -> _Cost:
    body = _cost(node.body)
    if node.most == 1:
        return _Cost(ways=body.ways + 1, runs=body.runs)
    if body.ways > 1 or body.runs:
        raise UnsupportedPatternError("a repetition of what may match in several ways")
    if any(isinstance(one, Again) for one in walk(node.body)):
        raise UnsupportedPatternError("a repeated back-reference")
    if node.most is not None and node.most - node.least < _FEW_ROUNDS:
        return _Cost(ways=node.most - node.least + 1)
    return _Cost(runs=(_all_chars(node.body),))


def _are_apart(options: tuple[Node, ...]) -> bool:
    firsts = [_first(option) for option in options]
    return all(
        one is not None and two is not None and not one.overlaps(two)
        for one, two in combinations(firsts, 2)
    )


def _first(node: Node) -> CharSet | None:
    """The set of the first character, None where that is not easily told."""
    match node:
        case Chars(chars=chars):
            return chars
        case Chain(parts=(first, *_)) | Group(body=first):
            return _first(first)
        case Repeat(body=body, least=least) if least:
            return _first(body)
        case _:
            return None


def _all_chars(node: Node) -> CharSet:
    """The set of all characters that stand anywhere in a node."""
    sets = [one.chars for one in walk(node) if isinstance(one, Chars)]
    return CharSet(
        ranges=merged(run for chars in sets for run in chars.positive()),
        properties=tuple(one for chars in sets for one in chars.properties),
    )
