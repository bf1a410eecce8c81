"""Relevance: which of the pages with the words of a query answers it best, and which part of one.

A database is given words that were folded here, never a text: so it finds the same on SQLite and
on PostgreSQL, in any script, and what a player writes is never read as its query language. It finds
pages, each in its own way and order; what decides is this score, so equal pages come in one order
from every backend. It is BM25 with a fixed length instead of the average one, which would change
all scores with every page that is written, and with more for titles. Pure: no database is known.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import log
from typing import Final, TypeVar

import regex

from evennia_ai.knowledge.pages.page import Page
from evennia_ai.text.words import neighbours_of, pairs_of
from evennia_ai.text.words import words_of as spaced_words

MOST_ASKED: Final = 32
"""Words of a query that count: the first ones, each once."""

MOST_ASKED_CHARACTERS: Final = 4_000
"""Of a query: nobody asks longer, and to fold more would take time."""

MOST_INDEXED_CHARACTERS: Final = 150_000
"""Of the words of a page: what PostgreSQL has room for whatever the script is."""

LONGEST: Final = 64
"""Characters of a word that count."""

_ACCENTS: Final = re.compile("[\u0300-\u036f]")
_POSSESSIVE: Final = re.compile(r"['\u2019]s\b")
_PLURAL_FROM: Final = 4
_NO_PLURALS: Final = ("ss", "us", "is")


def indexed_words(text: str) -> str:
    """All words of a page's text in one string, a blank between two, as databases keep them."""
    folded = _folded(text[: 2 * MOST_INDEXED_CHARACTERS])
    joined = " ".join(chain(_words(folded), pairs_of(folded)))
    if len(joined) <= MOST_INDEXED_CHARACTERS:
        return joined
    return joined[:MOST_INDEXED_CHARACTERS].rpartition(" ")[0]


def asked_words(query: str) -> tuple[str, ...]:
    """The different words of a query in their order, at most `MOST_ASKED`.

    Marks and signs that belong to no word are dropped, so a query of them alone asks for nothing.
    """
    folded = _folded(query[:MOST_ASKED_CHARACTERS])
    return tuple(dict.fromkeys(chain(_words(folded), neighbours_of(folded))))[:MOST_ASKED]


def _words(folded: str) -> list[str]:
    return [_singular(word)[:LONGEST] for word in spaced_words(folded)]


def _folded(text: str) -> str:
    """The text in small letters, without accents, marks of possession and underscores."""
    if not text.isascii():
        parted = unicodedata.normalize("NFKD", text)
        text = unicodedata.normalize("NFKC", _ACCENTS.sub("", parted))
    return _POSSESSIVE.sub("", text.casefold()).replace("_", " ")


def _singular(word: str) -> str:
    """The word without the ending of an English plural (Harman's S stemmer, 1991)."""
    if len(word) < _PLURAL_FROM or not word.endswith("s") or word.endswith(_NO_PLURALS):
        return word
    if word.endswith("ies") and not word.endswith(("eies", "aies")):
        return word[:-3] + "y"
    return word[:-1]


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
    length = length_of_text(page.body)
    total, named = 0.0, 0.0
    matched = 0
    for word, weight in rarities.items():
        wanted = f" {word} "
        total += weight * impact(body.count(wanted), length=length)
        if wanted in title:
            matched += 1
            named += weight
    # A title that says nothing else is the page that was asked for.
    share = matched / (page.title.count(" ") + 1)
    return total + TITLE * named * (1 + share) / 2


def impact(times: int, *, length: float) -> float:
    """How much a word says that stands so many times in what is so long, less than 1; BM25."""
    return times / (times + _SATURATION * length)


def length_of_text(words: str) -> float:
    """How long the words of a text are, 1 for usual ones; they differ less than they are long."""
    times_usual = min(len(words) / _USUAL_CHARACTERS, _MOST_TIMES_USUAL)
    return 1 - _LENGTH_SHARE + _LENGTH_SHARE * times_usual


def _spaced(words: str) -> str:
    """The words with two blanks between, so that each one has two of its own."""
    return f" {words.replace(' ', '  ')} "


MAX_CHARACTERS: Final = 1200

_PARAGRAPHS: Final = re.compile(r"\n[ \t]*\n\s*")
_SENTENCE_END: Final = re.compile(r"[.!?…][\"'”’»)\]]{0,4}\s+|[。！？][」』”’）]{0,4}|\n")
_BLANK: Final = re.compile(r"\s+")
_LETTER: Final = regex.compile(r"\X")


def chunks(body: str) -> tuple[str, ...]:
    """The parts of a text in their order, none empty, none over `MAX_CHARACTERS`."""
    paragraphs = (part.strip() for part in _PARAGRAPHS.split(body))
    pieces = (piece for paragraph in paragraphs for piece in _pieces(paragraph))
    return tuple(_packed(pieces, joint="\n\n"))


def _pieces(paragraph: str) -> Iterable[str]:
    """A paragraph, or what it falls into."""
    return _fitting(paragraph, [_sentences, _between_blanks, _letters])


def _fitting(text: str, cuts: list[Callable[[str], Iterator[str]]]) -> Iterator[str]:
    """The text where it fits, else its parts by the first cut, and those by the next."""
    if len(text) <= MAX_CHARACTERS:
        yield text
        return
    cut, *finer = cuts
    parts = (part for piece in cut(text) for part in _fitting(piece, finer))
    yield from (part.strip() for part in _packed(parts, joint=""))


def _packed(parts: Iterable[str], *, joint: str) -> Iterator[str]:
    """As many parts together as fit."""
    packed: list[str] = []
    size = 0
    for part in parts:
        if packed and size + len(joint) + len(part) > MAX_CHARACTERS:
            yield joint.join(packed)
            packed, size = [], 0
        if part:
            size += len(part) + (len(joint) if packed else 0)
            packed.append(part)
    if packed:
        yield joint.join(packed)


def _sentences(text: str) -> Iterator[str]:
    return _cut_after(text, _SENTENCE_END)


def _between_blanks(text: str) -> Iterator[str]:
    return _cut_after(text, _BLANK)


def _cut_after(text: str, border: re.Pattern[str]) -> Iterator[str]:
    start = 0
    for found in border.finditer(text):
        yield text[start : found.end()]
        start = found.end()
    yield text[start:]


def _letters(text: str) -> Iterator[str]:
    """Its letters with their marks, and of more marks than fit single ones."""
    for letter in _LETTER.findall(text):
        yield from (letter,) if len(letter) <= MAX_CHARACTERS else letter


def passage(body: str, rarities: Mapping[str, float]) -> str:
    """The chunk of a text that has most of these words, by how much they tell.

    The first one where several are as good or none has any; "" for an empty text.
    """
    parts = chunks(body)
    if len(parts) < 2 or not rarities:
        return parts[0] if parts else ""
    return max(parts, key=lambda part: relevance(_words_of(part), rarities))


def _words_of(part: str) -> PageWords:
    return PageWords(title="", body=indexed_words(part))
