"""Postings: which pages have a word, how much it tells of each, and the best pages for some words.

A posting is the row of an inverted index: one word in one field of a page, and all pages of a span
of ids that have it, each with its weight. Weights are whole numbers and depend on their page alone,
so a page that is written changes its own and no others; how much the word tells besides (`rarity`)
is counted when it is asked. The score is BM25F with a rarity for each field: a word that half of
all texts have may be in few titles, and then a title with it says a lot (Robertson and others,
2004).

Every page that has any of the words is ranked; none is left out beforehand. To do that for a
hundred thousand pages, the scores of a span are the digits of one large number, 16 bits a page:
adding a word to all of them is one multiplication and one addition. Pure: no database is known.
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
    OTHER_FORM,
    impact,
    length_of_text,
    rarity,
    words_of_page,
)
from evennia_ai.engine.text.word_forms import Languages

Field = Literal["title", "body", "namespace"]
"""Where on a page a word stands; the name of its namespace is the one word of that field."""

SPAN: Final = 16_384
"""Pages of a posting: those whose ids, divided by this number, give its span."""

MANY: Final = 1_024
"""From so many pages on, one number for the whole span is added sooner than one for each page."""

LEVELS: Final = 31
"""The greatest weight. With 15 as many pages are found; more than 63 would blur the rarities."""

USUAL_TITLE: Final = 20
"""Characters of a usual title, with its aliases; a word of a shorter one weighs more."""

_MOST: Final = 0xFFFF
_PART: Final = 2_048
_ALL: Final = (1 << 16 * SPAN) - 1
_PLACE_AND_WEIGHT: Final = calcsize("<HB")
_LOW: Final = slice(0 if sys.byteorder == "little" else 1, None, 2)
_HIGH: Final = slice(1 if sys.byteorder == "little" else 0, None, 2)


class Term(NamedTuple):
    """A word in a field."""

    field: Field
    word: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Posting:
    """The pages of a span that have a term."""

    term: Term
    span: int
    pages: int
    """How many there are."""
    packed: bytes
    """Their places in the span, each with its weight; see `packed`."""


def weights_of(page: Page, languages: Languages = ()) -> dict[Term, int]:
    """The terms of a page and their stems in some languages, each with its weight, 1 to `LEVELS`.

    A stem that is not the word itself is a word that is there a little less than half.
    """
    words = words_of_page(page, languages)
    title, title_stems = Counter(words.title.split()), Counter(words.title_stems.split())
    body = Counter(words.body.split()) - title
    body_stems = Counter(words.body_stems.split()) - title_stems
    fields: dict[Field, tuple[dict[str, float], float]] = {
        "title": (_times(title, title_stems), len(words.title) / USUAL_TITLE),
        "body": (_times(body, body_stems), length_of_text(words.body)),
    }
    weights = {Term("namespace", page.name.namespace): 1}
    for field, (counts, length) in fields.items():
        # Most words of a page are there once.
        levels = {
            times: max(1, round(LEVELS * impact(times, length=length)))
            for times in {*counts.values()}
        }
        weights.update((Term(field, word), levels[times]) for word, times in counts.items())
    return weights


def _times(words: Mapping[str, int], stems: Mapping[str, int]) -> dict[str, float]:
    times: dict[str, float] = {**words}
    for stem, others in stems.items():
        times[stem] = times.get(stem, 0) + OTHER_FORM * others
    return times


def packed(weights: Mapping[int, int]) -> bytes:
    """Weights by their places in a span: all the places and then the weights, or one byte a place.

    The latter, which is as long as the span, where there are `MANY` or more.
    """
    if len(weights) < MANY:
        return pack(f"<{len(weights)}H", *weights) + bytes(weights.values())
    lanes = bytearray(SPAN)
    for place, weight in weights.items():
        lanes[place] = weight
    return bytes(lanes)


def unpacked(told: bytes) -> dict[int, int]:
    """The weights by their places, as they were packed."""
    if len(told) == SPAN:
        return {place: told[place] for place in compress(range(SPAN), told)}
    return dict(_listed(told))


def _listed(told: bytes) -> Iterator[tuple[int, int]]:
    count = len(told) // _PLACE_AND_WEIGHT
    return zip(unpack_from(f"<{count}H", told), told[2 * count :], strict=True)


def rarities_of(postings: Iterable[Posting]) -> dict[Term, float]:
    """How much each term tells, by how many pages have it and how many there are.

    All postings of the terms and of every namespace must be there.
    """
    counts: Counter[Term] = Counter()
    for one in postings:
        counts[one.term] += one.pages
    pages = sum(count for term, count in counts.items() if term.field == "namespace")
    return {
        term: rarity(count, pages=pages)
        for term, count in counts.items()
        if term.field != "namespace"
    }


def best(
    postings: Sequence[Posting],
    rarities: Mapping[Term, float],
    *,
    namespaces: Collection[str],
    most: int,
) -> list[tuple[int, float]]:
    """At least so many pages with the greatest scores, if there are, best first.

    Each is the id of a page in one of the namespaces and its score; of equal ones the lower id
    comes first. There are more where the last ones are equal.
    """
    if not rarities:
        return []
    unit = (_MOST // LEVELS - len(rarities)) / sum(rarities.values())
    tells = {term: 1 + int(unit * told) for term, told in rarities.items()}
    found: list[tuple[int, int]] = []
    least = 1
    for span, scores in _scored(postings, tells, frozenset(namespaces)):
        told, first = memoryview(scores).cast("H"), -span * SPAN
        found += [(told[at], first - at) for at in _reaching(scores, least, most)]
        if len(found) > most:
            last = nlargest(most, found)[-1][0]
            found = [one for one in found if one[0] >= last]
            least = last
    return [(-page, score / unit / LEVELS) for score, page in sorted(found, reverse=True)]


def _scored(
    postings: Sequence[Posting], tells: Mapping[Term, int], namespaces: Collection[str]
) -> Iterator[tuple[int, bytes]]:
    """For each span the scores of its pages in 16 bits each, 0 for one in no such namespace."""
    spans: dict[int, list[Posting]] = {}
    for one in postings:
        spans.setdefault(one.span, []).append(one)
    for span in sorted(spans):
        asked = [(one.packed, tells[one.term]) for one in spans[span] if one.term in tells]
        elsewhere = [
            (one.packed, _MOST)
            for one in spans[span]
            if one.term.field == "namespace" and one.term.word not in namespaces
        ]
        scores = _total(asked)
        if elsewhere:
            scores &= _ALL ^ _total(elsewhere)
        if scores:
            yield span, scores.to_bytes(2 * SPAN, sys.byteorder)


def _total(told: Iterable[tuple[bytes, int]]) -> int:
    """The sums of packed weights, each as often as is told with it, as digits of one number."""
    total, few = 0, array("H", bytes(2 * SPAN))
    for one, times in told:
        if len(one) == SPAN:
            lanes = bytearray(2 * SPAN)
            lanes[_LOW] = one
            total += times * int.from_bytes(lanes, sys.byteorder)
        else:
            for place, weight in _listed(one):
                few[place] += times * weight
    return total + int.from_bytes(few.tobytes(), sys.byteorder)


def _reaching(scores: bytes, least: int, most: int) -> Iterator[int]:
    """The places of scores that may be among so many, and be at least 1 and as much as that.

    The upper half of a score tells, as nothing faster looks at all of them; where few have any, the
    whole. What is asked at first is what so many of a part of them reach.
    """
    high = scores[_HIGH]
    least_high = least >> 8
    if least == 1 and most <= _PART:
        least_high = sorted(high[:_PART])[-most]
    if not least_high:
        yield from compress(range(SPAN), memoryview(scores).cast("H"))
        return
    reaches = high.translate(bytes(least_high).ljust(256, b"\1"))
    at = reaches.find(1)
    while at >= 0:
        yield at
        at = reaches.find(1, at + 1)
