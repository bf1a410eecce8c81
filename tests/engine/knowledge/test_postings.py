"""Postings: weights of words, packed, and the best pages for several words."""

import random
from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from evennia_ai.engine.knowledge.pages.page import Page, PageMeta, page_name
from evennia_ai.engine.knowledge.postings import (
    LEVELS,
    MANY,
    SPAN,
    Posting,
    Term,
    best,
    packed,
    rarities_of,
    unpacked,
    weights_of,
)

FERRY = Term("body", "ferry")
DAWN = Term("body", "dawn")
CALLED_FERRY = Term("title", "ferry")
MAIN = Term("namespace", "Main")
TALK = Term("namespace", "Talk")
weights = some.dictionaries(some.integers(0, SPAN - 1), some.integers(1, LEVELS), max_size=60)


def a_page(title: str, body: str = "", **meta) -> Page:
    return Page(name=page_name(title), body=body, meta=PageMeta(**meta))


def postings(*weighed: dict[Term, int], ids=None) -> list[Posting]:
    """The postings of pages with these weights, of the ids 1, 2 and so on or of these."""
    spans = defaultdict(dict)
    for page_id, page in zip(ids or range(1, len(weighed) + 1), weighed, strict=True):
        for term, weight in page.items():
            span, place = divmod(page_id, SPAN)
            spans[term, span][place] = weight
    return [
        Posting(term=term, span=span, pages=len(there), packed=packed(there))
        for (term, span), there in spans.items()
    ]


def order(found: list[Posting], *, namespaces=("Main",), most=9, rarities=None) -> list[int]:
    told = rarities_of(found) if rarities is None else rarities
    return [page for page, _ in best(found, told, namespaces=namespaces, most=most)]


def test_the_words_of_title_and_text_are_terms_of_their_own():
    terms = weights_of(a_page("Talk:Ferry", "at dawn", aliases=("Goose",), tags=("boat",)))

    assert {*terms} == {
        *(CALLED_FERRY, Term("title", "goose"), Term("body", "at"), DAWN),
        *(Term("body", "boat"), TALK),
    }
    assert all(1 <= weight <= LEVELS for weight in terms.values())


def test_a_word_weighs_more_the_more_often_it_stands_in_a_text():
    once, often = weights_of(a_page("A", "dawn x")), weights_of(a_page("A", "dawn dawn dawn x"))

    assert once[DAWN] < often[DAWN]


def test_a_word_weighs_less_in_a_long_text_and_in_a_long_title():
    short, long = (
        weights_of(a_page("Ferry", "dawn")),
        weights_of(a_page("Ferry house of the northern harbour", "dawn " + "x " * 900)),
    )

    assert short[DAWN] > long[DAWN]
    assert short[CALLED_FERRY] > long[CALLED_FERRY]


@given(weights)
def test_what_is_packed_is_unpacked(weighed):
    assert unpacked(packed(weighed)) == weighed


def test_many_pages_take_a_byte_each_and_few_three():
    many = {place: 1 + place % LEVELS for place in range(0, MANY * 4, 4)}
    few = dict(list(many.items())[1:])

    assert (len(packed(many)), len(packed(few))) == (SPAN, 3 * (MANY - 1))
    assert unpacked(packed(many)) == many


def test_a_word_of_few_titles_tells_more_than_the_same_word_of_many_texts():
    pages = [{MAIN: 1, FERRY: 20} for _ in range(9)]
    told = rarities_of(postings({MAIN: 1, CALLED_FERRY: 20}, *pages))

    assert told[CALLED_FERRY] > told[FERRY] > 0


def test_pages_come_by_the_sum_of_what_their_words_tell():
    found = postings(
        {MAIN: 1, FERRY: 10},
        {MAIN: 1, FERRY: 10, DAWN: 10},
        {MAIN: 1, DAWN: 12},
        {MAIN: 1, DAWN: 11},
        {MAIN: 1},
    )

    assert order(found) == [2, 1, 3, 4]


@pytest.mark.req("S0-44")
def test_pages_of_another_namespace_are_not_there():
    found = postings({MAIN: 1, FERRY: 3}, {TALK: 1, FERRY: 30})

    assert order(found) == [1]
    assert order(found, namespaces=("Talk",)) == [2]
    assert order(found, namespaces=("Main", "Talk")) == [2, 1]


def test_equal_pages_are_all_there_though_fewer_are_asked():
    found = postings(*[{MAIN: 1, FERRY: 5}] * 40, {MAIN: 1, FERRY: 6})

    assert order(found, most=3) == [41, *range(1, 41)]


def test_no_words_find_nothing():
    assert best(postings({MAIN: 1}), {}, namespaces=("Main",), most=9) == []
    assert order(postings({MAIN: 1})) == []


@settings(max_examples=15, deadline=None)
@given(some.integers(0, 10**6), some.sampled_from([1, 3, 20]))
def test_the_best_of_several_spans_are_those_of_the_plainest_sum(seed, most):
    """Whatever the numbers: many pages or few, one word or sixty, all over or in one span."""
    rng = random.Random(seed)
    terms = [Term("body", f"w{number}") for number in range(rng.choice([1, 4, 60]))]
    share = {term: rng.choice([0.001, 0.05, 0.6]) for term in terms}
    ids = rng.sample(range(3 * SPAN), 4_000)
    pages = [
        {MAIN: 1} | {t: rng.randint(1, LEVELS) for t in terms if rng.random() < share[t]}
        for _ in ids
    ]
    found = postings(*pages, ids=ids)
    rarities = {term: float(rng.randint(1, 9)) for term in {one.term for one in found} - {MAIN}}

    told = best(found, rarities, namespaces=("Main",), most=most)

    sums = {
        page_id: sum(rarities[term] * page[term] for term in page if term != MAIN) / LEVELS
        for page_id, page in zip(ids, pages, strict=True)
    }
    # Rarities are rounded, by less than one in 2,000 of their sum.
    blur = sum(rarities.values()) / 100 or 1.0
    worst = sorted(sums.values(), reverse=True)[:most][-1]
    assert all(sums[page] >= worst - blur for page, _ in told)
    assert [score for _, score in told] == pytest.approx([sums[p] for p, _ in told], abs=blur)
    assert len(told) >= min(most, sum(one > blur for one in sums.values()))
