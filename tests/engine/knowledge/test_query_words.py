"""Words of pages and queries: one way of folding for both."""

import pytest

from evennia_ai.engine.knowledge.relevance import (
    LONGEST,
    MOST_ASKED,
    MOST_INDEXED_CHARACTERS,
    asked_words,
    indexed_words,
)


def finds(query: str, text: str) -> bool:
    """Whether all words of the query are among those of the text."""
    return {*asked_words(query)} <= {*indexed_words(text).split()}


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("FERRY", "The ferry at dawn."),
        ("ferries", "The ferry at dawn."),
        ("ferry", "Two ferries cross."),
        ("smugglers' cave", "the Smuggler\u2019s cave"),
        ("glass", "a glass of rum"),
        ("cafe", "the Café"),
        ("naïve", "a naive man"),
        ("Straße", "STRASSE"),
        ("iron_key", "the iron key"),
        ("паром", "Паром на рассвете"),
        ("渡船", "清晨的渡船出港"),
        ("茶", "一杯红茶"),
        ("ガラス", "古いガラスの瓶"),
        ("ｆｅｒｒｙ", "ferry"),
        ("한국", "한국어를"),
        ("ท่าเรือ", "ที่ท่าเรือเก่า"),
    ],
)
def test_a_query_finds_its_words_in_any_script_and_case(query, text):
    assert asked_words(query)
    assert finds(query, text)


@pytest.mark.parametrize(("query", "text"), [("ferry", "fairy"), ("渡船", "船渡"), ("gas", "ga")])
def test_other_words_are_not_found(query, text):
    assert not finds(query, text)


def test_each_word_is_asked_once_in_the_order_of_the_query():
    assert tuple(asked_words("Ferry and tide and ferry")) == ("ferry", "and", "tide")


@pytest.mark.parametrize("query", ["", '"', "*", "-- ( ) :", "\0", "\ud800", "…"])
def test_what_is_no_word_asks_for_nothing(query):
    assert asked_words(query) == {}


def test_what_is_a_query_to_a_database_is_only_words():
    assert tuple(asked_words('title:"ferry" NEAR(tide*) AND NOT {x}\0')) == (
        *("title", "ferry", "near", "tide", "and", "not", "x"),
    )


def test_a_long_query_counts_by_its_first_words():
    assert tuple(asked_words(" ".join(f"w{n}x" for n in range(10_000)))) == tuple(
        f"w{n}x" for n in range(MOST_ASKED)
    )


def test_a_long_word_counts_by_its_beginning_in_query_and_page():
    assert tuple(asked_words("a" * 900)) == ("a" * LONGEST,)
    assert finds("a" * 900, "a" * 901)


def test_a_huge_page_is_known_by_as_many_words_as_there_is_room_for():
    words = indexed_words("harbour " * 100_000)

    assert len(words) <= MOST_INDEXED_CHARACTERS
    assert {*words.split(" ")} == {"harbour"}


def test_an_empty_text_has_no_words():
    assert indexed_words("") == ""
