"""Tests of the order of pages that match a query."""

from evennia_ai.engine.knowledge.pages.page import Page, PageMeta, page_name
from evennia_ai.engine.knowledge.relevance import (
    index_page,
    query_weights,
    rarities_among,
    score_page,
    word_rarity,
)


def a_page(title: str, body: str = "", **meta) -> Page:
    return Page(name=page_name(title), body=body, meta=PageMeta(**meta))


def order(query: str, *pages: Page) -> list[str]:
    """Return the titles of the pages, best first."""
    words = {page.name.title: index_page(page) for page in pages}
    rarities = rarities_among(query_weights(query), list(words.values()))
    return sorted(words, key=lambda title: -score_page(words[title], rarities))


def test_page_with_more_words_scores_higher():
    pages = [a_page("A", "the bell"), a_page("B", "the bell of bronze"), a_page("C", "the sea")]

    assert order("bronze bell", *pages) == ["B", "A", "C"]


def test_page_with_a_rarer_word_of_the_query_scores_higher():
    pages = [a_page("A", "tide"), a_page("B", "tide"), a_page("C", "kraken"), a_page("D", "tide")]

    assert order("tide kraken", *pages)[0] == "C"


def test_query_word_in_the_title_scores_higher_than_many_in_the_body():
    pages = [a_page("A", "ferry " * 50), a_page("The ferry", "It crosses."), a_page("C", "rope")]

    assert order("ferry", *pages) == ["The ferry", "A", "C"]


def test_page_title_equal_to_the_query_scores_higher_than_a_longer_title():
    pages = [a_page("Ferry house of the north"), a_page("Ferry"), a_page("Rope"), a_page("Sea")]

    assert order("ferry", *pages)[:2] == ["Ferry", "Ferry house of the north"]


def test_page_alias_scores_like_the_title():
    pages = [a_page("A", "The ship is wide."), a_page("B", "x", aliases=("Ship",)), a_page("C")]

    assert order("ship", *pages)[0] == "B"


def test_summary_topics_and_tags_of_a_page_are_indexed():
    page = a_page("A", summary="a toll", topics=("trade",), tags=("harbour",))

    assert {"toll", "trade", "harbour"} <= {*index_page(page).body.split()}


def test_short_page_scores_higher_than_a_long_one():
    pages = [a_page("A", "bell " + "sea " * 900), a_page("B", "a bell"), a_page("C")]

    assert order("bell", *pages)[0] == "B"


def test_query_word_that_every_page_has_still_scores():
    assert word_rarity(40, pages=40) > 0
    assert word_rarity(1, pages=40) > word_rarity(2, pages=40)


def test_neighbouring_equal_words_of_a_page_are_each_counted():
    twice, once = (
        index_page(a_page("A", "x bell bell x")),
        index_page(a_page("A", "x bell x x")),
    )

    assert score_page(twice, {"bell": 1.0}) > score_page(once, {"bell": 1.0})


def test_page_without_a_word_of_the_query_scores_0():
    assert score_page(index_page(a_page("A", "sea")), {"bell": 1.0}) == 0
    assert score_page(index_page(a_page("A", "")), {}) == 0
