"""Tests that words of pages and of queries are normalised in the same way."""

import pytest

from evennia_ai.engine.knowledge.relevance import (
    MOST_INDEXED_CHARACTERS,
    MOST_QUERY_WORDS,
    MOST_WORD_CHARACTERS,
    index_text,
    query_weights,
)


def finds(query: str, text: str) -> bool:
    """True if the text contains all words of the query."""
    return {*query_weights(query)} <= {*index_text(text).split()}


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
def test_query_words_match_in_any_script_and_case(query, text):
    assert query_weights(query)
    assert finds(query, text)


@pytest.mark.parametrize(("query", "text"), [("ferry", "fairy"), ("渡船", "船渡"), ("gas", "ga")])
def test_query_words_do_not_match_different_words(query, text):
    assert not finds(query, text)


def test_query_words_are_in_order_without_duplicates():
    assert tuple(query_weights("Ferry and tide and ferry")) == ("ferry", "and", "tide")


@pytest.mark.parametrize("query", ["", '"', "*", "-- ( ) :", "\0", "\ud800", "…"])
def test_query_without_words_has_no_weights(query):
    assert query_weights(query) == {}


def test_query_syntax_of_databases_becomes_words():
    assert tuple(query_weights('title:"ferry" NEAR(tide*) AND NOT {x}\0')) == (
        *("title", "ferry", "near", "tide", "and", "not", "x"),
    )


def test_search_uses_only_the_first_words_of_a_long_query():
    assert tuple(query_weights(" ".join(f"w{n}x" for n in range(10_000)))) == tuple(
        f"w{n}x" for n in range(MOST_QUERY_WORDS)
    )


def test_search_finds_a_long_word_by_its_start():
    assert tuple(query_weights("a" * 900)) == ("a" * MOST_WORD_CHARACTERS,)
    assert finds("a" * 900, "a" * 901)


def test_search_index_has_only_the_start_of_a_huge_page():
    words = index_text("harbour " * 100_000)

    assert len(words) <= MOST_INDEXED_CHARACTERS
    assert {*words.split(" ")} == {"harbour"}


def test_index_of_an_empty_text_is_empty():
    assert index_text("") == ""
