"""The part of a page that answers a query best."""

from evennia_ai.engine.knowledge.relevance import MAX_CHARACTERS, chunks, passage

FILLING = "The nets were full and nobody complained of anything. " * 20


def a_body(*paragraphs: str) -> str:
    return "\n\n".join(paragraphs)


def test_the_part_with_the_words_is_the_passage():
    body = a_body(FILLING, "The kraken took the bell.", FILLING)

    assert "kraken" in passage(body, {"kraken": 1.0})


def test_the_part_with_the_word_that_tells_more_is_the_passage():
    body = a_body("A bell rang. " + FILLING, "The kraken came. " + FILLING)

    assert "kraken" in passage(body, {"bell": 0.2, "kraken": 2.0})


def test_the_part_with_both_words_comes_before_one_with_one_of_them():
    body = a_body("A bell. " + FILLING, FILLING, "The kraken took a bell. " + FILLING)

    assert "kraken" in passage(body, {"bell": 1.0, "kraken": 1.0})


def test_the_first_part_is_the_passage_where_none_has_the_words():
    body = a_body("First. " + FILLING, FILLING)

    assert passage(body, {"zyzzyva": 1.0}) == passage(body, {}) == chunks(body)[0]


def test_a_short_text_is_its_own_passage():
    assert passage("The kraken came.", {"bell": 1.0}) == "The kraken came."


def test_a_text_without_paragraphs_has_passages_as_well():
    assert len(passage("kraken " * 2_000, {"kraken": 1.0})) <= MAX_CHARACTERS


def test_an_empty_text_has_no_passage():
    assert passage("", {"bell": 1.0}) == ""
