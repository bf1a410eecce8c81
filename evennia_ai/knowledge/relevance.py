"""Relevance: which of the pages with the words of a query answers it best.

A database finds pages, each in its own way and order; what decides is this score, so equal pages
come in one order from every backend. It is BM25 with a fixed length instead of the average one,
which would change all scores with every page that is written, and with more for titles. Pure.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Final

from evennia_ai.knowledge.pages import Page
from evennia_ai.knowledge.query_words import indexed_words

TITLE: Final = 1.5
"""How much a word counts that is in a title, where one in a text counts less than 1."""

_SATURATION: Final = 1.2
_LENGTH_SHARE: Final = 0.4
_USUAL_CHARACTERS: Final = 1_000
_MOST_TIMES_USUAL: Final = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PageWords:
    """The words of a page as they are looked for, a blank between two.

    `title` has those of its title and its aliases, `body` these and all others.
    """

    title: str
    body: str


def words_of_page(page: Page) -> PageWords:
    """The words that a page is found by: its name, its text and what is said about it."""
    meta = page.meta
    title = indexed_words("\n".join([page.name.title, *meta.aliases]))
    told = "\n".join([meta.summary, *meta.topics, *meta.tags])
    body = indexed_words("\n".join([page.name.title, *meta.aliases, told, page.body]))
    return PageWords(title=title, body=body)


def rarity(pages_with_word: int, *, pages: int) -> float:
    """How much a word tells that so many of all pages have; more than 0 even where all have it."""
    have = min(pages_with_word, pages)
    return log(1 + (pages - have + 0.5) / (have + 0.5))


def rarities_in(words: Sequence[str], found: Sequence[PageWords]) -> dict[str, float]:
    """How much each word tells among these pages, for who can count no others."""
    counts = Counter(word for page in found for word in {*words} & {*page.body.split()})
    return {word: rarity(counts[word], pages=len(found)) for word in words if counts[word]}


def relevance(page: PageWords, rarities: Mapping[str, float]) -> float:
    """How well a page fits words that tell so much each; 0 where it has none of them."""
    body, title = _spaced(page.body), _spaced(page.title)
    length = _SATURATION * _length_factor(len(page.body))
    total, named = 0.0, 0.0
    matched = 0
    for word, weight in rarities.items():
        wanted = f" {word} "
        times = body.count(wanted)
        total += weight * times / (times + length)
        if wanted in title:
            matched += 1
            named += weight
    # A title that says nothing else is the page that was asked for.
    share = matched / (page.title.count(" ") + 1)
    return total + TITLE * named * (1 + share) / 2


def _length_factor(characters: int) -> float:
    times_usual = min(characters / _USUAL_CHARACTERS, _MOST_TIMES_USUAL)
    return 1 - _LENGTH_SHARE + _LENGTH_SHARE * times_usual


def _spaced(words: str) -> str:
    """The words with two blanks between, so that each one has two of its own."""
    return f" {words.replace(' ', '  ')} "
