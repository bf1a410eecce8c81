"""Fusion: one order made of several, such as that of words and that of meanings. Pure."""

from collections.abc import Hashable, Sequence
from typing import Final, TypeVar

K = TypeVar("K", bound=Hashable)

LEVELLING: Final = 60
"""How little it matters to be first rather than second; Cormack and others found 60 (2009)."""


def fused(*rankings: Sequence[K]) -> list[tuple[K, float]]:
    """What the rankings hold, each best first, by its places in them, with its score.

    Reciprocal rank fusion: a place counts 1 / (60 + its number), so scores of different kinds need
    not be compared. Equal ones stay in the order in which they are met.
    """
    scores: dict[K, float] = {}
    for ranking in rankings:
        for place, key in enumerate(dict.fromkeys(ranking), start=1):
            scores[key] = scores.get(key, 0.0) + 1 / (LEVELLING + place)
    return sorted(scores.items(), key=lambda item: -item[1])
