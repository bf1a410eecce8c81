"""Which of the pages with the words of a query comes first."""

from evennia_ai.engine.knowledge.pages.page import Page, PageMeta, page_name
from evennia_ai.engine.knowledge.relevance import (
    asked_words,
    rarities_in,
    rarity,
    relevance,
    words_of_page,
)


def a_page(title: str, body: str = "", **meta) -> Page:
    return Page(name=page_name(title), body=body, meta=PageMeta(**meta))


def order(query: str, *pages: Page) -> list[str]:
    """The titles of the pages, best first."""
    words = {page.name.title: words_of_page(page) for page in pages}
    rarities = rarities_in(asked_words(query), list(words.values()))
    return sorted(words, key=lambda title: -relevance(words[title], rarities))


def test_a_page_with_more_of_the_words_comes_first():
    pages = [a_page("A", "the bell"), a_page("B", "the bell of bronze"), a_page("C", "the sea")]

    assert order("bronze bell", *pages) == ["B", "A", "C"]


def test_a_rare_word_counts_more_than_a_common_one():
    pages = [a_page("A", "tide"), a_page("B", "tide"), a_page("C", "kraken"), a_page("D", "tide")]

    assert order("tide kraken", *pages)[0] == "C"


def test_a_word_in_the_title_counts_more_than_many_in_the_text():
    pages = [a_page("A", "ferry " * 50), a_page("The ferry", "It crosses."), a_page("C", "rope")]

    assert order("ferry", *pages) == ["The ferry", "A", "C"]


def test_the_page_called_just_so_comes_before_one_with_a_longer_title():
    pages = [a_page("Ferry house of the north"), a_page("Ferry"), a_page("Rope"), a_page("Sea")]

    assert order("ferry", *pages)[:2] == ["Ferry", "Ferry house of the north"]


def test_an_alias_counts_like_the_title():
    pages = [a_page("A", "The ship is wide."), a_page("B", "x", aliases=("Ship",)), a_page("C")]

    assert order("ship", *pages)[0] == "B"


def test_summary_topics_and_tags_are_words_of_a_page():
    page = a_page("A", summary="a toll", topics=("trade",), tags=("harbour",))

    assert {"toll", "trade", "harbour"} <= {*words_of_page(page).body.split()}


def test_a_short_page_comes_before_a_long_one_that_says_it_once():
    pages = [a_page("A", "bell " + "sea " * 900), a_page("B", "a bell"), a_page("C")]

    assert order("bell", *pages)[0] == "B"


def test_a_word_that_every_page_has_still_tells_something():
    assert rarity(40, pages=40) > 0
    assert rarity(1, pages=40) > rarity(2, pages=40)


def test_words_side_by_side_are_each_counted():
    twice, once = (
        words_of_page(a_page("A", "x bell bell x")),
        words_of_page(a_page("A", "x bell x x")),
    )

    assert relevance(twice, {"bell": 1.0}) > relevance(once, {"bell": 1.0})


def test_no_word_of_the_page_is_no_relevance():
    assert relevance(words_of_page(a_page("A", "sea")), {"bell": 1.0}) == 0
    assert relevance(words_of_page(a_page("A", "")), {}) == 0
