"""An index of wiki pages by their words, and the search for the pages that match a query best.

A term is a word in one part of a page. A span is a range of page ids. A posting is a row of the
index: all pages of one span that have one term, each with a weight. Weights are whole numbers that
depend only on their own page. So writing a page changes no weights of other pages. The rarity of a
word is computed for each query.

The score is BM25F, with a separate rarity for each part of a page (Robertson and others, 2004). A
word that occurs in half of all bodies may be rare in titles. Then a title with this word is a good
match.

Every page with any word of the query gets a score. To be fast for a hundred thousand pages, the
scores of a span are stored in one large number, with 16 bits for each page. So one multiplication
and one addition are enough to add a word to all pages. The code here accesses no database.
"""

import sys
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import compress
from struct import calcsize, pack, unpack_from
from typing import Final, Literal, NamedTuple

from evennia_ai.engine.knowledge.pages.page import Page
from evennia_ai.engine.knowledge.relevance import (
    OTHER_FORM_TIMES,
    index_page,
    length_factor,
    term_impact,
    word_rarity,
)
from evennia_ai.engine.text.word_forms import Languages

Field = Literal["title", "body", "namespace"]
"""The part of a page that contains a word.

The part "namespace" has one word: the name of the namespace.
"""

SPAN_PAGES: Final = 16_384
"""How many page ids are in one span, and so in one row of the index.

The number of a span is the page id divided by this number.
"""

DENSE_FROM: Final = 1_024
"""From this number of pages on, a row of the index has one byte for every id of its span.

Then adding one large number is faster than adding page by page.
"""

MAX_WEIGHT: Final = 31
"""The greatest weight of a term in a page.

In tests, a maximum of 15 found the right pages equally often. Above 63, rarities lose precision.
"""

USUAL_TITLE_CHARACTERS: Final = 20
"""The number of characters of a usual page title, with its aliases.

A word weighs more in a shorter title and less in a longer one.
"""

_MOST: Final = 0xFFFF  # the greatest score that fits in 16 bits
# The size of a sample of scores, from which the lowest score of the best pages is estimated.
_PART: Final = 2_048
_ALL: Final = (1 << 16 * SPAN_PAGES) - 1
_PLACE_AND_WEIGHT: Final = calcsize("<HB")
# Slices that select the low and the high byte of each 16-bit score.
_LOW: Final = slice(0 if sys.byteorder == "little" else 1, None, 2)
_HIGH: Final = slice(1 if sys.byteorder == "little" else 0, None, 2)


class Term(NamedTuple):
    """A word in one part of a wiki page (title, body or namespace)."""

    field: Field
    word: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Posting:
    """A row of the index: the pages of one span (range of ids) that have one term."""

    term: Term
    span: int
    pages: int
    """The number of pages in this row."""
    packed: bytes
    """The weights of these pages by place in the span, in the form that `pack_weights` returns."""


def page_weights(page: Page, languages: Languages = ()) -> dict[Term, int]:
    """Map each term of a page to its weight, from 1 to `MAX_WEIGHT`.

    Stems are included. A stem that differs from the word counts a little less than half as much.
    """
    words = index_page(page, languages)
    title, title_stems = Counter(words.title.split()), Counter(words.title_stems.split())
    # The body contains the words of the title, too. Subtract them, so that they count only once.
    body = Counter(words.body.split()) - title
    body_stems = Counter(words.body_stems.split()) - title_stems
    fields: dict[Field, tuple[dict[str, float], float]] = {
        "title": (_occurrences(title, title_stems), len(words.title) / USUAL_TITLE_CHARACTERS),
        "body": (_occurrences(body, body_stems), length_factor(words.body)),
    }
    weights = {Term("namespace", page.name.namespace): 1}
    for field, (counts, length) in fields.items():
        # Most words occur once or twice. So compute the weight once for each number of occurrences.
        levels = {
            times: max(1, round(MAX_WEIGHT * term_impact(times, length=length)))
            for times in {*counts.values()}
        }
        weights.update((Term(field, word), levels[times]) for word, times in counts.items())
    return weights


def _occurrences(words: Mapping[str, int], stems: Mapping[str, int]) -> dict[str, float]:
    times: dict[str, float] = {**words}
    for stem, others in stems.items():
        times[stem] = times.get(stem, 0) + OTHER_FORM_TIMES * others
    return times


def pack_weights(weights: Mapping[int, int]) -> bytes:
    """Pack weights of pages, which are given by their places in a span, into bytes.

    Few weights are stored as all places, then all weights. From `DENSE_FROM` pages on, there is one
    byte for each place of the span.
    """
    if len(weights) < DENSE_FROM:
        return pack(f"<{len(weights)}H", *weights) + bytes(weights.values())
    lanes = bytearray(SPAN_PAGES)
    for place, weight in weights.items():
        lanes[place] = weight
    return bytes(lanes)


def unpack_weights(packed: bytes) -> dict[int, int]:
    """Return the weights of pages by place in the span, from bytes of `pack_weights`."""
    if len(packed) == SPAN_PAGES:
        return {place: packed[place] for place in compress(range(SPAN_PAGES), packed)}
    return dict(_sparse_items(packed))


def _sparse_items(packed: bytes) -> Iterator[tuple[int, int]]:
    count = len(packed) // _PLACE_AND_WEIGHT
    return zip(unpack_from(f"<{count}H", packed), packed[2 * count :], strict=True)


def term_rarities(postings: Iterable[Posting]) -> dict[Term, float]:
    """Return the rarity of each term among all pages.

    Args:
        postings: All postings of the terms, and those of every namespace. The latter are needed to
            count the pages.
    """
    counts: Counter[Term] = Counter()
    for one in postings:
        counts[one.term] += one.pages
    pages = sum(count for term, count in counts.items() if term.field == "namespace")
    return {
        term: word_rarity(count, pages=pages)
        for term, count in counts.items()
        if term.field != "namespace"
    }


def best_pages(
    postings: Sequence[Posting],
    rarities: Mapping[Term, float],
    *,
    namespaces: Collection[str],
    most: int,
) -> list[tuple[int, float]]:
    """Return the ids and scores of the pages that match a query best, best first.

    If several pages have the same score as the last one, all of them are returned, so there may be
    more than `most`. The caller can choose between them. Of equal scores, the lower id comes first.

    Args:
        postings: The postings of the terms and of all namespaces.
        rarities: The rarity of each term of the query.
        namespaces: The namespaces from which pages are returned.
        most: The number of pages wanted.
    """
    if not rarities:
        return []
    # Scale the rarities so that the greatest possible score fits into 16 bits.
    unit = (_MOST // MAX_WEIGHT - len(rarities)) / sum(rarities.values())
    factors = {term: 1 + int(unit * rare) for term, rare in rarities.items()}
    found: list[tuple[int, int]] = []
    least = 1
    for span, scores in _span_scores(postings, factors, frozenset(namespaces)):
        digits, first = memoryview(scores).cast("H"), -span * SPAN_PAGES
        # Ids are stored negated. So sorting in reverse order puts the lower of two ids first.
        found += [(digits[at], first - at) for at in _places_reaching(scores, least, most)]
        if len(found) > most:
            last = nlargest(most, found)[-1][0]
            found = [one for one in found if one[0] >= last]
            least = last
    return [(-page, score / unit / MAX_WEIGHT) for score, page in sorted(found, reverse=True)]


def _span_scores(
    postings: Sequence[Posting], factors: Mapping[Term, int], namespaces: Collection[str]
) -> Iterator[tuple[int, bytes]]:
    """Yield the number of each span, and the scores of its pages with 16 bits for each page.

    Pages in other namespaces have the score 0.
    """
    spans: dict[int, list[Posting]] = {}
    for one in postings:
        spans.setdefault(one.span, []).append(one)
    for span in sorted(spans):
        asked = [(one.packed, factors[one.term]) for one in spans[span] if one.term in factors]
        elsewhere = [
            (one.packed, _MOST)
            for one in spans[span]
            if one.term.field == "namespace" and one.term.word not in namespaces
        ]
        scores = _total(asked)
        if elsewhere:
            # `_total(elsewhere)` has all 16 bits set for each page in other namespaces. Its inverse
            # is a mask that sets the scores of these pages to 0.
            scores &= _ALL ^ _total(elsewhere)
        if scores:
            yield span, scores.to_bytes(2 * SPAN_PAGES, sys.byteorder)


def _total(postings: Iterable[tuple[bytes, int]]) -> int:
    """Multiply packed weights of pages by their factors, and add the products page by page."""
    total, few = 0, array("H", bytes(2 * SPAN_PAGES))
    for packed, factor in postings:
        if len(packed) == SPAN_PAGES:
            lanes = bytearray(2 * SPAN_PAGES)
            lanes[_LOW] = packed
            total += factor * int.from_bytes(lanes, sys.byteorder)
        else:
            for place, weight in _sparse_items(packed):
                few[place] += factor * weight
    return total + int.from_bytes(few.tobytes(), sys.byteorder)


def _places_reaching(scores: bytes, least: int, most: int) -> Iterator[int]:
    """Yield places in a span: all pages that have a score and may be among the best `most`.

    Comparing only the high bytes is the fastest way to look at all scores. If few pages have a
    score, all of those are yielded. In the first span, `least` is estimated from some of the
    scores.
    """
    high = scores[_HIGH]
    least_high = least >> 8
    if least == 1 and most <= _PART:
        least_high = sorted(high[:_PART])[-most]
    if not least_high:
        yield from compress(range(SPAN_PAGES), memoryview(scores).cast("H"))
        return
    reaches = high.translate(bytes(least_high).ljust(256, b"\1"))
    at = reaches.find(1)
    while at >= 0:
        yield at
        at = reaches.find(1, at + 1)
