"""Relevance: score how closely each memory of an NPC is related to what was just said.

The relevance of a memory is a weighted sum of four scores: for its words that were also said, for
such words in memories learnt just before or after it, for such words in the scene in which it was
learnt, and, with a sentence model, for the similarity of meaning. If the best memory is a clear
match and contains a name that was not said, that name is searched for in a second step: "who bought
the mare" is answered by one memory, "what does the buyer do" by the next. Ranks are not merged,
because a rank does not tell how good a match is.

Each score depends on the whole list of given memories. So the caller must leave out every memory
that the conversation may not reveal. The words of a memory are cached on the memory.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log
from types import MappingProxyType
from typing import Annotated, Final, Literal, NamedTuple

from pydantic import Field

from evennia_ai.engine.memory.memories import DIGITS, Memory, word_weight
from evennia_ai.engine.text.word_forms import Languages

NEIGHBOUR_HOURS: Final = 6.0
"""How far apart memories may be to count as learnt together, in hours of the game.

Such memories must also have the same place.
"""

UNRELATED: Final = 0.1
"""The cosine similarity of two sentences that have nothing in common."""

SURE_SCORE: Final = 1.5
"""The score for shared words from which a memory is a clear match.

More than one distinctive word must match to reach it.
"""

MOST_FOLLOWED_NAMES: Final = 3
"""How many names of the best memory are searched for in other memories at most.

A memory with more names is not followed, because it would lead to unrelated memories.
"""

DOUBT_OFFSET: Final = 0.1
"""A number that is added to the best sum of scores before all sums are divided by it.

It keeps the relevance of a weak best match well below 1.
"""

Nearness = Mapping[int, float]
"""The cosine similarity between each memory and what was said, by memory id."""
NO_NEARNESS: Final[Nearness] = MappingProxyType({})


RelevanceScale = Literal["best", "itself"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RelevanceWeights:
    """The weight of each source of relevance, in percent of the weight of a memory's words."""

    neighbours_percent: Annotated[int, Field(ge=0, le=1000)] = 20
    """The weight of the words of memories learnt just before or after the memory."""
    scene_percent: Annotated[int, Field(ge=0, le=1000)] = 40
    """The weight of the words of the scene in which the memory was learnt."""
    meaning_percent: Annotated[int, Field(ge=0, le=1000)] = 500
    """The weight of the similarity of meaning, if there is a sentence model."""
    second_percent: Annotated[int, Field(ge=0, le=1000)] = 80
    """The weight of names that the best memory shares; 0 disables the search for them."""
    against: RelevanceScale = "best"
    """The scale of the relevance.

    "best" divides each sum by that of the best candidate; "itself" scales each sum on its own.
    """
    languages: Languages = ()
    """The languages whose inflected word forms match each other.

    The game sets this value; the memory settings do not contain it.
    """


class RelevanceParts(NamedTuple):
    """The weighted scores that make up the relevance of a memory, by source."""

    words: float = 0.0
    neighbours: float = 0.0
    scene: float = 0.0
    meaning: float = 0.0
    second: float = 0.0

    @property
    def own(self) -> float:
        """Return the score of the memory's own text, without its neighbours and its scene."""
        return self.words + self.meaning + self.second

    def render_breakdown(self, relevance: float) -> str:
        """Render the relevance by source, for example " (words 0.40, scene 0.10)".

        The result is "" if only the memory's own words scored.
        """
        if not any(self[1:]):
            return ""
        share = relevance / sum(self)
        sources = ("words", "neighbours", "scene", "meaning", "asked in turn")
        shares = (
            f"{name} {part * share:.2f}" for name, part in zip(sources, self, strict=True) if part
        )
        return f" ({', '.join(shares)})"


NO_PARTS: Final = RelevanceParts()


class Relevance(NamedTuple):
    """The relevance of a memory to what was said, from 0 to below 1, and its parts."""

    total: float = 0.0
    parts: RelevanceParts = NO_PARTS


def score_relevance(
    memories: Sequence[Memory],
    said: frozenset[str],
    *,
    weights: RelevanceWeights,
    near: Nearness = NO_NEARNESS,
) -> list[Relevance]:
    """Return the relevance of each memory to the words that were just said.

    Args:
        memories: The candidates. Every score depends on all of them.
        said: The words of the newest messages, in the form for comparison.
        weights: The weight of each source of relevance.
        near: Similarities of meaning by memory id; empty without a sentence model.
    """
    if not memories or not (said or near):
        return [Relevance()] * len(memories)
    nothing = [0.0] * len(memories)
    texts = [memory.words_in(weights.languages) for memory in memories]

    words = _shared_word_scores(texts, said)
    neighbours = _neighbour_scores(memories, words) if weights.neighbours_percent else nothing
    scenes = nothing
    if weights.scene_percent:
        scenes = _shared_word_scores([memory.scene_words for memory in memories], said)
    meanings = [max(0.0, near.get(memory.id, 0.0) - UNRELATED) for memory in memories]
    columns = [
        words,
        _weighted(weights.neighbours_percent, neighbours),
        _weighted(weights.scene_percent, scenes),
        _weighted(weights.meaning_percent if near else 0, meanings),
    ]

    sums = [*map(sum, zip(*columns, strict=True))]
    best = max(range(len(memories)), key=lambda place: (sums[place], -memories[place].id))
    followed = nothing
    if words[best] >= SURE_SCORE and weights.second_percent:
        named = [memory.names_in(weights.languages) for memory in memories]
        if names := _names_to_follow(texts, named, best=best, said=said):
            # The names come from the best memory, so that memory itself scores 0 here. The scores
            # of the others are scaled so that the highest becomes 1.
            shared = _shared_word_scores(texts, names)
            shared[best] = 0.0
            most = max(shared)
            followed = [count / most for count in shared]
    columns.append(_weighted(weights.second_percent, followed))

    parts = [*zip(*columns, strict=True)]
    sums = [*map(sum, parts)]
    # "best" keeps the ratios between memories. "itself" maps each sum to a value below 1: a sum of
    # 1 becomes 1/2, a sum of 2 becomes 2/3.
    highest = DOUBT_OFFSET + max(sums)
    return [
        Relevance(
            round(total / (highest if weights.against == "best" else 1 + total), DIGITS),
            RelevanceParts(*of_sources),
        )
        if total
        else Relevance()
        for total, of_sources in zip(sums, parts, strict=True)
    ]


def _weighted(percent: int, scores: Sequence[float]) -> list[float]:
    return [percent / 100 * score for score in scores]


def _shared_word_scores(texts: Sequence[frozenset[str]], said: frozenset[str]) -> list[float]:
    """Return a score for each memory: the total weight of those of its words that were said.

    A long word that only one text contains counts 1. Common and short words count less.
    """
    shared = [words & said for words in texts]
    seen = Counter(word for words in shared for word in words)
    rarest = log(1 + len(texts))
    weights = {word: log(1 + len(texts) / seen[word]) / rarest * word_weight(word) for word in seen}
    # Sort before adding, because the iteration order of a set differs between processes and would
    # change the last digit of the sum.
    return [sum(sorted([weights[word] for word in words])) if words else 0.0 for words in shared]


def _neighbour_scores(memories: Sequence[Memory], words: Sequence[float]) -> list[float]:
    """Return for each memory the highest word score among the memories learnt next to it.

    These are the two memories before and the two after it. The farther ones count half.
    """
    found = [0.0] * len(memories)
    for places in _places_learnt_together(memories):
        for at, place in enumerate(places):
            if not words[place]:
                continue
            for other in (at - 2, at - 1, at + 1, at + 2):
                if not 0 <= other < len(places):
                    continue
                neighbour = places[other]
                apart = abs(memories[place].created_at - memories[neighbour].created_at)
                if apart <= NEIGHBOUR_HOURS:
                    found[neighbour] = max(found[neighbour], words[place] / abs(other - at))
    return found


def _places_learnt_together(memories: Sequence[Memory]) -> Iterable[list[int]]:
    """Yield indices of memories that were learnt at one place in the same way, in time order.

    Whispers of different people are in different groups. Memories written by builders are in no
    group, because a builder writes down at one time what happened at different times.
    """
    apart: defaultdict[tuple[str, str, str], list[int]] = defaultdict(list)
    for place, memory in enumerate(memories):
        if not memory.is_by_builder:
            whisperer = memory.about if memory.learnt == "private" else ""
            apart[memory.place_ref, memory.learnt, whisperer].append(place)
    for places in apart.values():
        places.sort(key=lambda place: (memories[place].created_at, memories[place].id))
    return apart.values()


def _names_to_follow(
    texts: Sequence[frozenset[str]],
    named: Sequence[frozenset[str]],
    *,
    best: int,
    said: frozenset[str],
) -> frozenset[str]:
    """Return the names in the best memory that were not said and that other memories share.

    A word is a name if every memory that contains it writes it with a capital letter.
    """
    new = named[best] - said
    having = {word: [place for place, words in enumerate(texts) if word in words] for word in new}
    names = {
        word
        for word, places in having.items()
        if len(places) > 1 and all(word in named[place] for place in places)
    }
    return frozenset(names) if len(names) <= MOST_FOLLOWED_NAMES else frozenset()
