"""Ranking: how much a page has to do with a task, by its words alone.

The score of a page is the sum, over the different words of the task, of how often each stands in
it, a word of the title counted twice, divided by the words that the page has. Stop words count
nowhere. It is the term frequency of the field, without a collection to weigh words by.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

from evennia_ai.knowledge.assembly.packed import BUCKETS, PackedPage
from evennia_ai.knowledge.assembly.words import words_of

TITLE_WEIGHT: Final = 2
MOST_RANKED: Final = 40_000
"""Characters of a page that are looked through: a longer one is judged by its beginning."""


def ranked(
    pages: Sequence[PackedPage], *, task: str, stop_words: Collection[str]
) -> tuple[PackedPage, ...]:
    """The pages with their scores, by bucket and in each the best ones first.

    Instructions keep their order, forced pages stand before the others of their bucket in the order
    they were asked for. Pages of one score keep their order, in which what the task names is before
    what is only linked.
    """
    terms = frozenset(_content(task, stop_words))
    scored = [
        replace(one, score=score(one.heading, one.text, terms=terms, stop_words=stop_words))
        for one in pages
    ]
    buckets = ([one for one in scored if one.bucket == bucket] for bucket in BUCKETS)
    return tuple(chain.from_iterable(map(_best_first, buckets)))


def score(title: str, text: str, *, terms: Collection[str], stop_words: Collection[str]) -> float:
    """How much of a page are the words of a task; 0 where it has no words."""
    in_title = Counter(_content(title, stop_words))
    in_text = Counter(_content(text[:MOST_RANKED], stop_words))
    length = in_title.total() + in_text.total()
    found = sum(in_text[term] + TITLE_WEIGHT * in_title[term] for term in terms)
    return found / length if length else 0.0


def _best_first(pages: Sequence[PackedPage]) -> list[PackedPage]:
    if pages and pages[0].bucket == "instructions":
        return list(pages)
    forced = [one for one in pages if one.forced]
    free = [one for one in pages if not one.forced]
    return forced + sorted(free, key=lambda one: -one.score)


def _content(text: str, stop_words: Collection[str]) -> list[str]:
    return [word for word in words_of(text) if word not in stop_words]
