"""An index of wiki pages by their words, and the pages that match a query best.

A posting is one row of the index: a term (a word in one part of a page), and all pages of a range
of ids that have it, each with its weight. The ranges are called spans. Weights are whole numbers
that depend only on their page, so writing a page does not change the weights of others. The rarity
of a word is computed when a query needs it. The score is BM25F with a separate rarity for each
part of a page: a word that occurs in half of all bodies may occur in few titles, and then a title
with the word is a strong match (Robertson and others, 2004).

Every page with any word of the query is ranked; none is dropped beforehand. To do that for a
hundred thousand pages, the scores of a span are the digits of one large number, with 16 bits for
each page. Adding a word to all pages then takes one multiplication and one addition. The code here
accesses no database.
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
"""The part of a page in which a word occurs.

The part "namespace" has a single word, the name of the namespace.
"""

SPAN_PAGES: Final = 16_384
"""How many page ids are in a span (a range of ids), and so in one row of the index.

The number of a span is the page id divided by this number.
"""

DENSE_FROM: Final = 1_024
"""How many pages a row of the index must have to be stored with a byte for every id.

For more pages, adding one large number is faster than adding page by page.
"""

MAX_WEIGHT: Final = 31
"""The greatest weight of a term in a page.

With 15 the right pages are found as often; above 63 rarities lose their precision.
"""

USUAL_TITLE_CHARACTERS: Final = 20
"""The number of characters of a usual page title, including its aliases.

A word in a shorter title weighs more.
"""

_MOST: Final = 0xFFFF  # the greatest score that fits in 16 bits
# How many scores are sorted to estimate the lowest score of the best pages
_PART: Final = 2_048
_ALL: Final = (1 << 16 * SPAN_PAGES) - 1
_PLACE_AND_WEIGHT: Final = calcsize("<HB")
# Slices that select the low and the high bytes of the 16-bit scores of a span of pages
_LOW: Final = slice(0 if sys.byteorder == "little" else 1, None, 2)
_HIGH: Final = slice(1 if sys.byteorder == "little" else 0, None, 2)


class Term(NamedTuple):
    """A word in one part of a wiki page (title, body or namespace)."""

    field: Field
    word: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Posting:
    """The pages with a term whose ids are in one span (range of ids): a row of the index."""

    term: Term
    span: int
    pages: int
    """The number of pages that have the term."""
    packed: bytes
    """The weights of these pages by their places in the span, as `pack_weights` returns them."""


def page_weights(page: Page, languages: Languages = ()) -> dict[Term, int]:
    """Return the weight of each word of a page, from 1 to `MAX_WEIGHT`, by part of the page.

    Stems are included. A stem that differs from the word counts as a little less than half an
    occurrence.
    """
    words = index_page(page, languages)
    title, title_stems = Counter(words.title.split()), Counter(words.title_stems.split())
    # The body includes the words of the title, so they are subtracted and count only once.
    body = Counter(words.body.split()) - title
    body_stems = Counter(words.body_stems.split()) - title_stems
    fields: dict[Field, tuple[dict[str, float], float]] = {
        "title": (_occurrences(title, title_stems), len(words.title) / USUAL_TITLE_CHARACTERS),
        "body": (_occurrences(body, body_stems), length_factor(words.body)),
    }
    weights = {Term("namespace", page.name.namespace): 1}
    for field, (counts, length) in fields.items():
        # Most words occur once, so the weight is computed once for each number of occurrences.
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
    """Pack the weights of pages, given by their places in a span of ids, into bytes.

    Weights of few pages are stored as all places followed by all weights. For `DENSE_FROM` or more
    pages there is one byte for each place of the span.
    """
    if len(weights) < DENSE_FROM:
        return pack(f"<{len(weights)}H", *weights) + bytes(weights.values())
    lanes = bytearray(SPAN_PAGES)
    for place, weight in weights.items():
        lanes[place] = weight
    return bytes(lanes)


def unpack_weights(packed: bytes) -> dict[int, int]:
    """Return the weights of pages by their places in a span of ids, unpacked from bytes."""
    if len(packed) == SPAN_PAGES:
        return {place: packed[place] for place in compress(range(SPAN_PAGES), packed)}
    return dict(_sparse_items(packed))


def _sparse_items(packed: bytes) -> Iterator[tuple[int, int]]:
    count = len(packed) // _PLACE_AND_WEIGHT
    return zip(unpack_from(f"<{count}H", packed), packed[2 * count :], strict=True)


def term_rarities(postings: Iterable[Posting]) -> dict[Term, float]:
    """Return the rarity of each term (a word in one part of a page) among all pages.

    Args:
        postings: All postings of the terms, and those of every namespace, from which the pages are
            counted.
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

    The result may have more than `most` pages if the last ones have equal scores, so that the
    caller can choose between them. Among equal scores the lower id comes first.

    Args:
        postings: The postings of the terms and of all namespaces.
        rarities: The rarity of each term of the query.
        namespaces: Return only pages in one of these.
        most: The number of pages wanted.
    """
    if not rarities:
        return []
    # Scale the rarities so that the greatest possible sum still fits in 16 bits.
    unit = (_MOST // MAX_WEIGHT - len(rarities)) / sum(rarities.values())
    factors = {term: 1 + int(unit * rare) for term, rare in rarities.items()}
    found: list[tuple[int, int]] = []
    least = 1
    for span, scores in _span_scores(postings, factors, frozenset(namespaces)):
        digits, first = memoryview(scores).cast("H"), -span * SPAN_PAGES
        # Page ids are stored negated, so that sorting in reverse order puts the lower id first.
        found += [(digits[at], first - at) for at in _places_reaching(scores, least, most)]
        if len(found) > most:
            last = nlargest(most, found)[-1][0]
            found = [one for one in found if one[0] >= last]
            least = last
    return [(-page, score / unit / MAX_WEIGHT) for score, page in sorted(found, reverse=True)]


def _span_scores(
    postings: Sequence[Posting], factors: Mapping[Term, int], namespaces: Collection[str]
) -> Iterator[tuple[int, bytes]]:
    """Yield for each span of page ids the scores of its pages, with 16 bits for each page.

    Pages outside the namespaces have the score 0.
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
            # `_total(elsewhere)` has all 16 bits set for each page in other namespaces. Inverting
            # it gives the mask that sets the scores of these pages to 0.
            scores &= _ALL ^ _total(elsewhere)
        if scores:
            yield span, scores.to_bytes(2 * SPAN_PAGES, sys.byteorder)


def _total(postings: Iterable[tuple[bytes, int]]) -> int:
    """Multiply packed weights of pages by their factors, and add them up page by page."""
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
    """Yield the places in a span whose page may be among the best `most`; scores are 1 or more.

    Comparing only the high bytes is the fastest way to scan all scores. If few pages have a score,
    the whole scores are used. For the first span, `least` is estimated from a part of the scores.
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
