"""Scoring: how much a memory counts now, by recency, importance and relevance.

After Park et al. 2023, "Generative Agents", section 4: the three are equal, each from 0 to 1.
Recency falls by half a percent an hour of the game since the memory was last recalled. Relevance is
what it shares with what was said, rare words weighing more; no model is asked. The paper stretches
each number over the memories at hand; here 0 and 1 are fixed, so that a minute between two
memories is not worth as much as everything else about them.
"""

from collections import Counter
from collections.abc import Sequence
from math import log
from typing import Final, NamedTuple

from evennia_ai.memory.memories import LEAST_IMPORTANT, MOST_IMPORTANT, Memory
from evennia_ai.memory.words import weight_of

KEPT_PER_HOUR: Final = 0.995
_DIGITS: Final = 4  # what is beyond may differ between machines


class Score(NamedTuple):
    """What a memory counts, and the three numbers it is made of."""

    recency: float
    importance: float
    relevance: float

    @property
    def total(self) -> float:
        """The mean of the three."""
        return round(sum(self) / len(self), _DIGITS)

    def __str__(self) -> str:
        return (
            f"score {self.total:.2f}: recency {self.recency:.2f},"
            f" importance {self.importance:.2f}, relevance {self.relevance:.2f}"
        )


def scored(memories: Sequence[Memory], *, hours: float, said: frozenset[str]) -> list[Score]:
    """The score of each memory at this hour of the game, when these words were just said."""
    relevances = _relevances(memories, said)
    return [
        Score(recency(memory, hours=hours), importance(memory), relevance)
        for memory, relevance in zip(memories, relevances, strict=True)
    ]


def recency(memory: Memory, *, hours: float) -> float:
    """1 for what was recalled this hour, falling with every hour since."""
    since = max(0.0, hours - memory.recalled_at)
    return round(float(KEPT_PER_HOUR**since), _DIGITS)


def importance(memory: Memory) -> float:
    """The importance from 0 to 1."""
    span = MOST_IMPORTANT - LEAST_IMPORTANT
    return round((memory.importance - LEAST_IMPORTANT) / span, _DIGITS)


def standing(memory: Memory, *, hours: float) -> float:
    """What a memory counts whatever is spoken of: the mean of recency and importance."""
    return round((recency(memory, hours=hours) + importance(memory)) / 2, _DIGITS)


def _relevances(memories: Sequence[Memory], said: frozenset[str]) -> list[float]:
    """From 0 to below 1: a single telling word gives a half, two of them two thirds."""
    if not said:
        return [0.0] * len(memories)
    shared = [memory.words & said for memory in memories]
    seen = Counter(word for words in shared for word in words)
    weights = {word: _weight(word, seen[word], len(memories)) for word in seen}
    # Added up in one order, so that the last digit is the same wherever it is done.
    found = [sum(sorted(weights[word] for word in words)) for words in shared]
    return [round(weight / (1 + weight), _DIGITS) for weight in found]


def _weight(word: str, seen: int, memories: int) -> float:
    """What a word tells: 1 for a long one that a single memory has."""
    rarity = log(1 + memories / seen) / log(1 + memories)
    return rarity * weight_of(word)
