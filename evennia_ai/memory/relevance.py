"""Relevance: how much each of some memories has to do with what was just said.

A weighted sum of what speaks for a memory: words that it shares with what was said; words that the
memories learnt just before or after it share; words of the scene it was learnt in; and, where a
model for sentences is there, how near their meanings lie. Where the best memory is sure and names
somebody or something that was not spoken of, that is asked for in turn: "who bought the mare" is
answered by one memory, "what does the buyer do" by the next. Ranks are never fused: a place in an
order does not say how sure the words were.

All is worked out among the memories that are given, so whoever must not be told of one leaves it
out before. What a memory is compared by is worked out once and kept with it.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, NamedTuple

from pydantic import Field

from evennia_ai.memory.memories import DIGITS, Memory, weight_of
from evennia_ai.text.word_forms import Languages

NEIGHBOUR_HOURS: Final = 6.0
"""Hours of the game within which two memories of one place were learnt together."""

UNRELATED: Final = 0.1
"""How near the meanings of two sentences lie that have nothing in common."""

SURE: Final = 1.5
"""What the words of a memory count that is surely meant: more than one telling word."""

MOST_NAMES: Final = 3
"""Names that may be asked for in turn: a memory with more of them leads everywhere."""

DOUBT: Final = 0.1
"""How much what fits best must count to be trusted by half."""

Nearness = Mapping[int, float]
"""Memory id -> how near its meaning lies to what was said: the cosine of their vectors."""
NOT_KNOWN: Final[Nearness] = MappingProxyType({})


Against = Literal["best", "itself"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RelevanceWeights:
    """What each thing that speaks for a memory counts, its own words counting 100."""

    neighbours_percent: Annotated[int, Field(ge=0, le=1000)] = 20
    """The words of what was learnt just before or after it."""
    scene_percent: Annotated[int, Field(ge=0, le=1000)] = 40
    """The words of the scene it was learnt in."""
    meaning_percent: Annotated[int, Field(ge=0, le=1000)] = 500
    """How near its meaning lies, where there is a model for sentences."""
    second_percent: Annotated[int, Field(ge=0, le=1000)] = 80
    """That it has a name which the best memory named; 0: nothing is asked for in turn."""
    against: Against = "best"
    """What the sum is measured by: the best of the candidates, or each by itself."""
    languages: Languages = ()
    """In which other forms of a word count as the word: the game's, not a setting of memories."""


class Parts(NamedTuple):
    """What speaks for a memory, each already weighted."""

    words: float = 0.0
    neighbours: float = 0.0
    scene: float = 0.0
    meaning: float = 0.0
    second: float = 0.0

    @property
    def own(self) -> float:
        """What it says itself: all but what stands around it."""
        return self.words + self.meaning + self.second

    def told(self, relevance: float) -> str:
        """The share of each in a relevance; nothing where its own words alone speak for it."""
        if not any(self[1:]):
            return ""
        share = relevance / sum(self)
        told = (
            f"{name} {part * share:.2f}" for name, part in zip(_TOLD, self, strict=True) if part
        )
        return f" ({', '.join(told)})"


_TOLD: Final = ("words", "neighbours", "scene", "meaning", "asked in turn")
NO_PARTS: Final = Parts()


class Relevance(NamedTuple):
    """How much a memory has to do with what was said, from 0 to below 1, and why."""

    total: float = 0.0
    parts: Parts = NO_PARTS


_NOTHING: Final = Relevance()


def relevances(
    memories: Sequence[Memory],
    said: frozenset[str],
    *,
    weights: RelevanceWeights,
    near: Nearness = NOT_KNOWN,
) -> list[Relevance]:
    """The relevance of each memory among these, when these words were just said."""
    if not memories or not (said or near):
        return [_NOTHING] * len(memories)
    texts = [memory.words_in(weights.languages) for memory in memories]
    words = _shared(texts, said)
    columns = [
        words,
        _weighted(weights.neighbours_percent, _neighbours, memories, words),
        _weighted(weights.scene_percent, _scenes, memories, said),
        _weighted(weights.meaning_percent if near else 0, _meanings, memories, near),
    ]
    sums = [*map(sum, zip(*columns, strict=True))]
    best = max(range(len(memories)), key=lambda place: (sums[place], -memories[place].id))
    named = [memory.names_in(weights.languages) for memory in memories]
    names = _asked_in_turn(texts, named, best, said) if words[best] >= SURE else frozenset()
    percent = weights.second_percent if names else 0
    columns.append(_weighted(percent, _second, memories, texts, names, best))
    return _measured([*zip(*columns, strict=True)], against=weights.against)


def _measured(found: Sequence[Sequence[float]], *, against: Against) -> list[Relevance]:
    """The sums as numbers from 0 to below 1.

    Against the best, which itself is trusted the less the less it counts, a memory keeps its
    distance to the others; by itself a sum of 1 gives a half, 2 two thirds.
    """
    sums = [*map(sum, found)]
    highest = DOUBT + max(sums)
    return [
        Relevance(
            round(total / (highest if against == "best" else 1 + total), DIGITS), Parts(*parts)
        )
        if total
        else _NOTHING
        for total, parts in zip(sums, found, strict=True)
    ]


def _weighted(
    percent: int, counted: Callable[..., Iterable[float]], memories: Sequence[Memory], *given: Any
) -> list[float]:
    """What `counted` finds for each memory, weighted; nothing is worked out that counts nothing."""
    if not percent:
        return [0.0] * len(memories)
    return [percent / 100 * count for count in counted(memories, *given)]


def _shared(texts: Sequence[frozenset[str]], said: frozenset[str]) -> list[float]:
    """What the words that each text shares with what was said count; rare and long ones most."""
    shared = [words & said for words in texts]
    seen = Counter(word for words in shared for word in words)
    tells = {word: _tells(word, seen[word], len(texts)) for word in seen}
    # Added up in one order, so that the last digit is the same wherever it is done.
    return [sum(sorted([tells[word] for word in words])) if words else 0.0 for words in shared]


def _tells(word: str, seen: int, texts: int) -> float:
    """What a word tells: 1 for a long one that a single text has."""
    return log(1 + texts / seen) / log(1 + texts) * weight_of(word)


def _scenes(memories: Sequence[Memory], said: frozenset[str]) -> list[float]:
    return _shared([memory.scene_words for memory in memories], said)


def _meanings(memories: Sequence[Memory], near: Nearness) -> Iterator[float]:
    for memory in memories:
        yield max(0.0, near.get(memory.id, 0.0) - UNRELATED)


def _neighbours(memories: Sequence[Memory], words: Sequence[float]) -> list[float]:
    """The most that a memory's neighbours in time count by their words, halved at each step."""
    found = [0.0] * len(memories)
    for places in _lived_through(memories):
        for at, place in enumerate(places):
            if not (count := words[place]):
                continue
            for other in (at - 2, at - 1, at + 1, at + 2):
                if 0 <= other < len(places) and _is_soon(memories[place], memories[places[other]]):
                    heard = count / abs(other - at)
                    found[places[other]] = max(found[places[other]], heard)
    return found


def _is_soon(one: Memory, other: Memory) -> bool:
    return abs(one.created_at - other.created_at) <= NEIGHBOUR_HOURS


def _lived_through(memories: Sequence[Memory]) -> Iterable[list[int]]:
    """The places of memories that were learnt in one place the same way, in order of time.

    A builder writes down what happened together and what did not: those have no neighbours.
    """
    apart: defaultdict[tuple[str, str, str], list[int]] = defaultdict(list)
    for place, memory in enumerate(memories):
        if not memory.is_builders:
            told_by = memory.about if memory.learnt == "private" else ""
            apart[memory.place_ref, memory.learnt, told_by].append(place)
    for places in apart.values():
        places.sort(key=lambda place: (memories[place].created_at, memories[place].id))
    return apart.values()


def _asked_in_turn(
    texts: Sequence[frozenset[str]],
    named: Sequence[frozenset[str]],
    best: int,
    said: frozenset[str],
) -> frozenset[str]:
    """The names in the best memory that were not said and that others have, too.

    A name is a word that all who have it write with a capital letter.
    """
    new = named[best] - said
    having = {word: [place for place, words in enumerate(texts) if word in words] for word in new}
    names = {
        word
        for word, places in having.items()
        if len(places) > 1 and all(word in named[place] for place in places)
    }
    return frozenset(names) if len(names) <= MOST_NAMES else frozenset()


def _second(
    _: Sequence[Memory], texts: Sequence[frozenset[str]], names: frozenset[str], best: int
) -> Iterator[float]:
    """1 for the memory that has most of these names; the one that named them is found already."""
    found = _shared(texts, names)
    found[best] = 0.0
    most = max(found)
    for count in found:
        yield count / most
