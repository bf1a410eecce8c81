"""Relevance: which of the pages with the words of a query answers it best, and which part of one.

A database is given words that were folded here, never a text: so it finds the same on SQLite and
on PostgreSQL, in any script, and what a player writes is never read as its query language. Words
stand beside their stems, so that other forms of them are found as well, and count less. A backend
finds pages, each in its own way and order; what decides is this score, so equal pages come in one
order from every backend. It is BM25 with a fixed length instead of the average one, which would
change all scores with every page that is written, and with more for titles. Pure: no database is
known.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice, repeat
from math import log
from typing import Final, TypeVar

import regex

from evennia_ai.engine.knowledge.pages.page import Page
from evennia_ai.engine.text.word_forms import Languages, stems_of
from evennia_ai.engine.text.words import neighbours_of, pairs_of
from evennia_ai.engine.text.words import words_of as spaced_words

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


def asked_words(query: str, languages: Languages = ()) -> dict[str, float]:
    """The different words of a query in their order, and their stems, with what each counts.

    There are at most `MOST_ASKED` words. Of a word and its stems together a page that has this very
    form gets 1, as does one whose form is the stem; any other form gets 0.6 (see `OTHER_FORM`).
    Marks and signs that belong to no word are dropped, so a query of them alone asks for nothing.
    """
    query = query[:MOST_ASKED_CHARACTERS]
    folded = _folded(query)
    words = dict.fromkeys(chain(_words(folded), neighbours_of(folded)), 1.0)
    asked = dict(islice(words.items(), MOST_ASKED))
    for written in dict.fromkeys(_written(query)) if languages else ():
        stems = _stems(written, languages)
        if stems and (word := _compared(written)) in asked:
            asked[word] = min(asked[word], _OF_THE_FORM)
            for stem in stems:
                asked[stem] = max(asked.get(stem, 0.0), 1 / len(stems))
    return asked


def _words(folded: str) -> list[str]:
    return [*map(_singular, spaced_words(folded))]


def _folded(text: str) -> str:
    """The text in small letters, without accents, marks of possession and underscores."""
    if not text.isascii():
        parted = unicodedata.normalize("NFKD", text)
        text = unicodedata.normalize("NFKC", _ACCENTS.sub("", parted))
    return _POSSESSIVE.sub("", text.casefold()).replace("_", " ")


def indexed_stems(text: str, languages: Languages) -> str:
    """The stems of a page's text that are none of its words, a blank between two."""
    written = _written(text[: 2 * MOST_INDEXED_CHARACTERS]) if languages else ()
    joined = " ".join(chain.from_iterable(map(_stems, written, repeat(languages))))
    if len(joined) <= MOST_INDEXED_CHARACTERS:
        return joined
    return joined[:MOST_INDEXED_CHARACTERS].rpartition(" ")[0]


def _written(text: str) -> list[str]:
    """The words of a text with their accents, without which no language knows its endings."""
    composed = text if text.isascii() else unicodedata.normalize("NFKC", text)
    return spaced_words(_POSSESSIVE.sub("", composed.casefold()).replace("_", " "))


@lru_cache(maxsize=32_768)
def _stems(written: str, languages: Languages) -> tuple[str, ...]:
    """The stems of a word as they are compared, but for what the word itself is compared as."""
    stems = (_folded(stem)[:LONGEST] for stem in stems_of(written, languages))
    return tuple(dict.fromkeys(stem for stem in stems if stem != _compared(written)))


def _compared(written: str) -> str:
    return _singular(_folded(written))


@lru_cache(maxsize=32_768)
def _singular(word: str) -> str:
    """The word without the ending of an English plural (Harman's S stemmer, 1991)."""
    if len(word) < _PLURAL_FROM or not word.endswith("s") or word.endswith(_NO_PLURALS):
        return word[:LONGEST]
    if word.endswith("ies") and not word.endswith(("eies", "aies")):
        return (word[:-3] + "y")[:LONGEST]
    return word[:-1][:LONGEST]


K = TypeVar("K", bound=Hashable)

MEANING: Final = 0.3
"""The share of meaning in the order of pages that are found by words and by what they mean."""


def ranked_by_both(
    words: Sequence[tuple[K, float]], near: Mapping[K, float], *, reachable: float
) -> list[tuple[K, float]]:
    """What is found by words, with its scores, and by meaning, with its nearness: best first.

    A weighted sum. A score is measured by `reachable`, what all words that were asked tell
    together: how sure they are counts, which places in an order would not say.
    """
    found = {key: (1 - MEANING) * score / reachable for key, score in words}
    for key, similarity in near.items():
        found[key] = found.get(key, 0.0) + MEANING * similarity
    return sorted(found.items(), key=lambda item: -item[1])


OTHER_FORM: Final = 0.45
"""How often a word is there of which another form is: it says 0.6 of what the form itself does."""

_OF_THE_FORM: Final = 0.4

TITLE: Final = 1.5
"""How much a word counts that is in a title, where one in a text counts less than 1."""

_SATURATION: Final = 1.2
_LENGTH_SHARE: Final = 0.4
_USUAL_CHARACTERS: Final = 1_000
_MOST_TIMES_USUAL: Final = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PageWords:
    """The words of a page as they are looked for, a blank between two."""

    title: str
    """Those of its title and its aliases."""
    body: str
    """These and all others."""
    title_stems: str = ""
    """The stems of those in the title, where a stem is not the word itself."""
    body_stems: str = ""


def words_of_page(page: Page, languages: Languages = ()) -> PageWords:
    """The words that a page is found by: its name, its text and what is said about it.

    With their stems in some languages.
    """
    meta = page.meta
    title = "\n".join([page.name.title, *meta.aliases])
    body = "\n".join([title, meta.summary, *meta.topics, *meta.tags, page.body])
    return PageWords(
        title=indexed_words(title),
        body=indexed_words(body),
        title_stems=indexed_stems(title, languages),
        body_stems=indexed_stems(body, languages),
    )


def rarity(pages_with_word: int, *, pages: int) -> float:
    """How much a word tells that so many of all pages have; more than 0 even where all have it."""
    have = min(pages_with_word, pages)
    return log(1 + (pages - have + 0.5) / (have + 0.5))


def rarities_in(asked: Mapping[str, float], found: Sequence[PageWords]) -> dict[str, float]:
    """How much each word tells among these pages, for who can count no others.

    `asked` is what each one counts.
    """
    there = ({*page.body.split(), *page.body_stems.split()} for page in found)
    counts = Counter(word for words in there for word in asked.keys() & words)
    return {
        word: count * rarity(counts[word], pages=len(found))
        for word, count in asked.items()
        if counts[word]
    }


def relevance(page: PageWords, rarities: Mapping[str, float]) -> float:
    """How well a page fits words that tell so much each; 0 where it has none of them."""
    body, title = _spaced(page.body), _spaced(page.title)
    body_stems, title_stems = _spaced(page.body_stems), _spaced(page.title_stems)
    length = length_of_text(page.body)
    total, named = 0.0, 0.0
    matched = 0
    for word, weight in rarities.items():
        wanted = f" {word} "
        times = body.count(wanted) + OTHER_FORM * body_stems.count(wanted)
        total += weight * impact(times, length=length)
        if wanted in title:
            matched += 1
            named += weight
        elif wanted in title_stems:
            named += weight * OTHER_FORM
    # A title that says nothing else is the page that was asked for.
    share = matched / (page.title.count(" ") + 1)
    return total + TITLE * named * (1 + share) / 2


def impact(times: float, *, length: float) -> float:
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


def passage(body: str, rarities: Mapping[str, float], languages: Languages = ()) -> str:
    """The chunk of a text that has most of these words and stems, by how much they tell.

    The first one where several are as good or none has any; "" for an empty text.
    """
    parts = chunks(body)
    if len(parts) < 2 or not rarities:
        return parts[0] if parts else ""
    return max(parts, key=lambda part: relevance(_words_of(part, languages), rarities))


def _words_of(part: str, languages: Languages) -> PageWords:
    stems = indexed_stems(part, languages)
    return PageWords(title="", body=indexed_words(part), body_stems=stems)
