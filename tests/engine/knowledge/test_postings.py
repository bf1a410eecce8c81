"""Tests of postings: weights, packing, and the best pages for several words."""

import random
from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from evennia_ai.engine.knowledge.pages.page import Page, PageMeta, page_name
from evennia_ai.engine.knowledge.postings import (
    DENSE_FROM,
    MAX_WEIGHT,
    SPAN_PAGES,
    Posting,
    Term,
    best_pages,
    pack_weights,
    page_weights,
    term_rarities,
    unpack_weights,
)

FERRY = Term("body", "ferry")
DAWN = Term("body", "dawn")
CALLED_FERRY = Term("title", "ferry")
MAIN = Term("namespace", "Main")
TALK = Term("namespace", "Talk")
weights = some.dictionaries(
    some.integers(0, SPAN_PAGES - 1), some.integers(1, MAX_WEIGHT), max_size=60
)


def a_page(title: str, body: str = "", **meta) -> Page:
    return Page(name=page_name(title), body=body, meta=PageMeta(**meta))


def postings(*weighed: dict[Term, int], ids=None) -> list[Posting]:
    """Make the postings of pages with these weights. The page ids are `ids`, or 1, 2 and so on."""
    spans = defaultdict(dict)
    for page_id, page in zip(ids or range(1, len(weighed) + 1), weighed, strict=True):
        for term, weight in page.items():
            span, place = divmod(page_id, SPAN_PAGES)
            spans[term, span][place] = weight
    return [
        Posting(term=term, span=span, pages=len(there), packed=pack_weights(there))
        for (term, span), there in spans.items()
    ]


def order(found: list[Posting], *, namespaces=("Main",), most=9, rarities=None) -> list[int]:
    told = term_rarities(found) if rarities is None else rarities
    return [page for page, _ in best_pages(found, told, namespaces=namespaces, most=most)]


def test_word_in_title_and_body_gives_two_index_terms():
    terms = page_weights(a_page("Talk:Ferry", "at dawn", aliases=("Goose",), tags=("boat",)))

    assert {*terms} == {
        *(CALLED_FERRY, Term("title", "goose"), Term("body", "at"), DAWN),
        *(Term("body", "boat"), TALK),
    }
    assert all(1 <= weight <= MAX_WEIGHT for weight in terms.values())


def test_index_weight_grows_with_the_occurrences_of_a_word():
    once, often = page_weights(a_page("A", "dawn x")), page_weights(a_page("A", "dawn dawn dawn x"))

    assert once[DAWN] < often[DAWN]


def test_index_weight_falls_with_the_length_of_text_and_title():
    short, long = (
        page_weights(a_page("Ferry", "dawn")),
        page_weights(a_page("Ferry house of the northern harbour", "dawn " + "x " * 900)),
    )

    assert short[DAWN] > long[DAWN]
    assert short[CALLED_FERRY] > long[CALLED_FERRY]


@given(weights)
def test_packed_weights_are_unpacked_unchanged(weighed):
    assert unpack_weights(pack_weights(weighed)) == weighed


def test_packed_weights_take_one_byte_for_many_pages_and_three_for_few():
    many = {place: 1 + place % MAX_WEIGHT for place in range(0, DENSE_FROM * 4, 4)}
    few = dict(list(many.items())[1:])

    assert (len(pack_weights(many)), len(pack_weights(few))) == (SPAN_PAGES, 3 * (DENSE_FROM - 1))
    assert unpack_weights(pack_weights(many)) == many


def test_word_rarity_is_higher_in_few_titles_than_in_many_bodies():
    pages = [{MAIN: 1, FERRY: 20} for _ in range(9)]
    told = term_rarities(postings({MAIN: 1, CALLED_FERRY: 20}, *pages))

    assert told[CALLED_FERRY] > told[FERRY] > 0


def test_best_pages_are_ordered_by_the_sum_of_their_word_scores():
    found = postings(
        {MAIN: 1, FERRY: 10},
        {MAIN: 1, FERRY: 10, DAWN: 10},
        {MAIN: 1, DAWN: 12},
        {MAIN: 1, DAWN: 11},
        {MAIN: 1},
    )

    assert order(found) == [2, 1, 3, 4]


@pytest.mark.req("S0-44")
def test_best_pages_are_only_of_the_given_namespaces():
    found = postings({MAIN: 1, FERRY: 3}, {TALK: 1, FERRY: 30})

    assert order(found) == [1]
    assert order(found, namespaces=("Talk",)) == [2]
    assert order(found, namespaces=("Main", "Talk")) == [2, 1]


def test_best_pages_include_all_with_the_score_of_the_last():
    found = postings(*[{MAIN: 1, FERRY: 5}] * 40, {MAIN: 1, FERRY: 6})

    assert order(found, most=3) == [41, *range(1, 41)]


def test_no_best_pages_are_found_without_query_words():
    assert best_pages(postings({MAIN: 1}), {}, namespaces=("Main",), most=9) == []
    assert order(postings({MAIN: 1})) == []


@pytest.mark.long
@settings(max_examples=15, deadline=None)
@given(some.integers(0, 10**6), some.sampled_from([1, 3, 20]))
def test_best_pages_equal_a_plain_calculation_over_several_spans_of_ids(seed, most):
    """Draw many pages or few, one word or sixty, spread over several spans or in one."""
    rng = random.Random(seed)
    terms = [Term("body", f"w{number}") for number in range(rng.choice([1, 4, 60]))]
    share = {term: rng.choice([0.001, 0.05, 0.6]) for term in terms}
    ids = rng.sample(range(3 * SPAN_PAGES), 4_000)
    pages = [
        {MAIN: 1} | {t: rng.randint(1, MAX_WEIGHT) for t in terms if rng.random() < share[t]}
        for _ in ids
    ]
    found = postings(*pages, ids=ids)
    rarities = {term: float(rng.randint(1, 9)) for term in {one.term for one in found} - {MAIN}}

    told = best_pages(found, rarities, namespaces=("Main",), most=most)

    sums = {
        page_id: sum(rarities[term] * page[term] for term in page if term != MAIN) / MAX_WEIGHT
        for page_id, page in zip(ids, pages, strict=True)
    }
    # Each rarity is rounded by less than 1/2000 of their sum, and a score adds up many of them.
    blur = sum(rarities.values()) / 100 or 1.0
    worst = sorted(sums.values(), reverse=True)[:most][-1]
    assert all(sums[page] >= worst - blur for page, _ in told)
    assert [score for _, score in told] == pytest.approx([sums[p] for p, _ in told], abs=blur)
    assert len(told) >= min(most, sum(one > blur for one in sums.values()))
