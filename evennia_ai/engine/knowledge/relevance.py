"""Relevance: find the wiki pages that answer a query best, and the best part of a page.

Words are normalised here before a database gets them. So a search finds the same pages on SQLite
and PostgreSQL and in any script, and no text of a player is interpreted as query syntax. Stems are
stored next to the words. So other inflected forms of a word are found, too, but count less.

Each backend finds pages in its own way. The score computed here decides the order. So all backends
return pages in the same order. The score is BM25, but with a fixed text length in place of the
average length. With the average, writing one page would change the scores of all pages. Words in
titles count more. The code here accesses no database.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain, islice, repeat
from math import log
from typing import Final, TypeVar

import regex

from evennia_ai.engine.knowledge.pages.page import Page
from evennia_ai.engine.text.word_forms import Languages, stems_of
from evennia_ai.engine.text.words import indexed_pairs, query_pairs
from evennia_ai.engine.text.words import split_words as spaced_words

MOST_QUERY_WORDS: Final = 32
"""How many words of a query are searched at most.

The first words are taken, without duplicates.
"""

MOST_QUERY_CHARACTERS: Final = 4_000
"""How many characters of a query are read at most.

Questions are much shorter, and normalising takes time.
"""

MOST_INDEXED_CHARACTERS: Final = 150_000
"""How many characters of a page's words are indexed at most.

PostgreSQL can store this many in any script.
"""

MOST_WORD_CHARACTERS: Final = 64
"""How many characters of a word are compared; the rest is ignored."""

_ACCENTS: Final = re.compile("[\u0300-\u036f]")
_POSSESSIVE: Final = re.compile(r"['\u2019]s\b")
_PLURAL_FROM: Final = 4
_NO_PLURALS: Final = ("ss", "us", "is")


def index_text(text: str) -> str:
    """Return the normalised words of a text, separated by blanks, for a database to store."""
    folded = _fold_text(text[: 2 * MOST_INDEXED_CHARACTERS])
    joined = " ".join(chain(_words(folded), indexed_pairs(folded)))
    if len(joined) <= MOST_INDEXED_CHARACTERS:
        return joined
    return joined[:MOST_INDEXED_CHARACTERS].rpartition(" ")[0]


def query_weights(query: str, languages: Languages = ()) -> dict[str, float]:
    """Map the words of a query and their stems to their weights.

    A page gets 1 for a word if it contains the exact word, or the stem of the word as a word. A
    page with another inflected form counts 0.6 (see `OTHER_FORM_TIMES`). Punctuation is ignored. So
    a query without words has no weights.

    Args:
        query: The text of the query. At most `MOST_QUERY_WORDS` words are used.
        languages: The languages whose stems are searched.
    """
    query = query[:MOST_QUERY_CHARACTERS]
    folded = _fold_text(query)
    words = dict.fromkeys(chain(_words(folded), query_pairs(folded)), 1.0)
    asked = dict(islice(words.items(), MOST_QUERY_WORDS))
    for written in dict.fromkeys(_accented_words(query)) if languages else ():
        stems = _stems(written, languages)
        if stems and (word := _singular(_fold_text(written))) in asked:
            asked[word] = min(asked[word], _OF_THE_FORM)
            for stem in stems:
                asked[stem] = max(asked.get(stem, 0.0), 1 / len(stems))
    return asked


def _words(folded: str) -> list[str]:
    return [*map(_singular, spaced_words(folded))]


def _fold_text(text: str) -> str:
    """Return a text in lower case, without accents, possessive endings and underscores."""
    if not text.isascii():
        parted = unicodedata.normalize("NFKD", text)
        text = unicodedata.normalize("NFKC", _ACCENTS.sub("", parted))
    return _POSSESSIVE.sub("", text.casefold()).replace("_", " ")


def index_stems(text: str, languages: Languages) -> str:
    """Return the stems of a text that differ from its words, separated by blanks."""
    written = _accented_words(text[: 2 * MOST_INDEXED_CHARACTERS]) if languages else ()
    joined = " ".join(chain.from_iterable(map(_stems, written, repeat(languages))))
    if len(joined) <= MOST_INDEXED_CHARACTERS:
        return joined
    return joined[:MOST_INDEXED_CHARACTERS].rpartition(" ")[0]


def _accented_words(text: str) -> list[str]:
    """Return the words of a text without letter case, but with the accents that stemmers need."""
    composed = text if text.isascii() else unicodedata.normalize("NFKC", text)
    return spaced_words(_POSSESSIVE.sub("", composed.casefold()).replace("_", " "))


@lru_cache(maxsize=32_768)
def _stems(written: str, languages: Languages) -> tuple[str, ...]:
    """Return the normalised stems of a word that differ from its indexed form."""
    stems = (_fold_text(stem)[:MOST_WORD_CHARACTERS] for stem in stems_of(written, languages))
    indexed = _singular(_fold_text(written))
    return tuple(dict.fromkeys(stem for stem in stems if stem != indexed))


@lru_cache(maxsize=32_768)
def _singular(word: str) -> str:
    """Return the word without an English plural ending (the S stemmer of Harman, 1991)."""
    if len(word) < _PLURAL_FROM or not word.endswith("s") or word.endswith(_NO_PLURALS):
        return word[:MOST_WORD_CHARACTERS]
    if word.endswith("ies") and not word.endswith(("eies", "aies")):
        return (word[:-3] + "y")[:MOST_WORD_CHARACTERS]
    return word[:-1][:MOST_WORD_CHARACTERS]


Key = TypeVar("Key", bound=Hashable)

MEANING_SHARE: Final = 0.3
"""The share that the similarity of meaning has in the score of a page.

The rest of the score comes from words of the query that the page contains.
"""


def merge_rankings(
    words: Sequence[tuple[Key, float]], near: Mapping[Key, float], *, reachable: float
) -> list[tuple[Key, float]]:
    """Merge pages found by words and pages found by meaning into one list, best first.

    The score is a weighted sum of both scores. Ranks are not used, because a rank does not say how
    good a match is.

    Args:
        words: The keys of pages, with their scores by words.
        near: The similarity of meaning of each page, by key of the page.
        reachable: The score of a page with all words of the query. Scores by words are divided by
            it.
    """
    found = {key: (1 - MEANING_SHARE) * score / reachable for key, score in words}
    for key, similarity in near.items():
        found[key] = found.get(key, 0.0) + MEANING_SHARE * similarity
    return sorted(found.items(), key=lambda item: -item[1])


OTHER_FORM_TIMES: Final = 0.45
"""How much another inflected form of a word counts as an occurrence.

With this value, such a form scores 0.6 times as much as the exact word.
"""

# The weight of an exact word of a query that has stems. The stems share the rest of the weight.
_OF_THE_FORM: Final = 0.4

TITLE_WEIGHT: Final = 1.5
"""The weight of a word in the title of a page.

The weight of a word in the body is always less than 1.
"""

_SATURATION: Final = 1.2
_LENGTH_SHARE: Final = 0.4
_USUAL_CHARACTERS: Final = 1_000
_MOST_TIMES_USUAL: Final = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PageWords:
    """The words of a wiki page as they are searched, separated by blanks."""

    title: str
    """The words of the title and the aliases."""
    body: str
    """All words of the page, including the title."""
    title_stems: str = ""
    """The stems of the title that differ from its words."""
    body_stems: str = ""


def index_page(page: Page, languages: Languages = ()) -> PageWords:
    """Return the words and stems of a wiki page, from its name, its text and its metadata."""
    meta = page.meta
    title = "\n".join([page.name.title, *meta.aliases])
    body = "\n".join([title, meta.summary, *meta.topics, *meta.tags, page.body])
    return PageWords(
        title=index_text(title),
        body=index_text(body),
        title_stems=index_stems(title, languages),
        body_stems=index_stems(body, languages),
    )


def word_rarity(pages_with_word: int, *, pages: int) -> float:
    """Return how rare a word is among pages (the IDF of BM25). The result is always above 0."""
    have = min(pages_with_word, pages)
    return log(1 + (pages - have + 0.5) / (have + 0.5))


def rarities_among(asked: Mapping[str, float], found: Sequence[PageWords]) -> dict[str, float]:
    """Return the weight of each query word, multiplied by its rarity among the found pages.

    This is for backends that cannot count the pages that were not found.

    Args:
        asked: The words of the query with their weights.
        found: The words of the pages that were found.
    """
    there = ({*page.body.split(), *page.body_stems.split()} for page in found)
    counts = Counter(word for words in there for word in asked.keys() & words)
    return {
        word: count * word_rarity(counts[word], pages=len(found))
        for word, count in asked.items()
        if counts[word]
    }


def score_page(page: PageWords, rarities: Mapping[str, float]) -> float:
    """Return the score of a wiki page for a query; 0 if the page has no word of the query.

    `rarities` has the weight of each query word, multiplied by its rarity.
    """
    body, title = _widen_blanks(page.body), _widen_blanks(page.title)
    body_stems, title_stems = _widen_blanks(page.body_stems), _widen_blanks(page.title_stems)
    length = length_factor(page.body)
    total, named = 0.0, 0.0
    matched = 0
    for word, weight in rarities.items():
        wanted = f" {word} "
        times = body.count(wanted) + OTHER_FORM_TIMES * body_stems.count(wanted)
        total += weight * term_impact(times, length=length)
        if wanted in title:
            matched += 1
            named += weight
        elif wanted in title_stems:
            named += weight * OTHER_FORM_TIMES
    # A title that has only words of the query is most likely the page that is wanted. So a title
    # scores more the greater the share of matching words in it.
    share = matched / (page.title.count(" ") + 1)
    return total + TITLE_WEIGHT * named * (1 + share) / 2


def term_impact(times: float, *, length: float) -> float:
    """Return the BM25 weight of a word in a text, always below 1.

    It depends on how often the word occurs, and on the length from `length_factor`.
    """
    return times / (times + _SATURATION * length)


def length_factor(words: str) -> float:
    """Return the length of a text compared with a usual text, damped; 1 for a usual text."""
    times_usual = min(len(words) / _USUAL_CHARACTERS, _MOST_TIMES_USUAL)
    return 1 - _LENGTH_SHARE + _LENGTH_SHARE * times_usual


def _widen_blanks(words: str) -> str:
    """Put two blanks between words that are separated by one blank.

    Then `count(" word ")` also counts the same word twice in a row.
    """
    return f" {words.replace(' ', '  ')} "


MAX_CHUNK_CHARACTERS: Final = 1200

_PARAGRAPHS: Final = re.compile(r"\n[ \t]*\n\s*")
_SENTENCE_END: Final = re.compile(r"[.!?…][\"'”’»)\]]{0,4}\s+|[。！？][」』”’）]{0,4}|\n")
_BLANK: Final = re.compile(r"\s+")
_LETTER: Final = regex.compile(r"\X")


def split_chunks(body: str) -> tuple[str, ...]:
    """Split a page's text into parts of at most `MAX_CHUNK_CHARACTERS`, in order.

    The text is split between paragraphs. A paragraph that is too long is split between sentences,
    then between words, then between letters. No part is empty.
    """
    paragraphs = (part.strip() for part in _PARAGRAPHS.split(body))
    finer: list[Callable[[str], Iterator[str]]] = [
        partial(_cut_after, border=_SENTENCE_END),
        partial(_cut_after, border=_BLANK),
        _letters,
    ]
    pieces = (piece for paragraph in paragraphs for piece in _split_to_fit(paragraph, finer))
    return tuple(_join_parts(pieces, joint="\n\n"))


def _split_to_fit(text: str, cuts: Sequence[Callable[[str], Iterator[str]]]) -> Iterator[str]:
    """Yield a text that fits into one part of a page, or else the parts into which it is split.

    The first of `cuts` splits the text. The other ones split what is still too long.
    """
    if len(text) <= MAX_CHUNK_CHARACTERS:
        yield text
        return
    cut, *finer = cuts
    parts = (part for piece in cut(text) for part in _split_to_fit(piece, finer))
    yield from (part.strip() for part in _join_parts(parts, joint=""))


def _join_parts(parts: Iterable[str], *, joint: str) -> Iterator[str]:
    """Join short texts into parts of a page that are as long as possible."""
    packed: list[str] = []
    size = 0
    for part in parts:
        if packed and size + len(joint) + len(part) > MAX_CHUNK_CHARACTERS:
            yield joint.join(packed)
            packed, size = [], 0
        if part:
            size += len(part) + (len(joint) if packed else 0)
            packed.append(part)
    if packed:
        yield joint.join(packed)


def _cut_after(text: str, border: re.Pattern[str]) -> Iterator[str]:
    start = 0
    for found in border.finditer(text):
        yield text[start : found.end()]
        start = found.end()
    yield text[start:]


def _letters(text: str) -> Iterator[str]:
    """Yield each letter with its combining marks.

    If a letter has too many marks, its characters are yielded one by one.
    """
    for letter in _LETTER.findall(text):
        yield from (letter,) if len(letter) <= MAX_CHUNK_CHARACTERS else letter


def best_chunk(body: str, rarities: Mapping[str, float], languages: Languages = ()) -> str:
    """Return the part of a page's text that matches a query best.

    Of several equal parts it is the first. An empty text gives "".
    """
    parts = split_chunks(body)
    if len(parts) < 2 or not rarities:
        return parts[0] if parts else ""

    def score(part: str) -> float:
        stems = index_stems(part, languages)
        return score_page(PageWords(title="", body=index_text(part), body_stems=stems), rarities)

    return max(parts, key=score)
