"""Tests of the choice of the chunk of a page that matches a query best."""

from evennia_ai.engine.knowledge.relevance import MAX_CHUNK_CHARACTERS, best_chunk, split_chunks

FILLING = "The nets were full and nobody complained of anything. " * 20


def a_body(*paragraphs: str) -> str:
    return "\n\n".join(paragraphs)


def test_best_chunk_of_a_page_has_the_words_of_the_query():
    body = a_body(FILLING, "The kraken took the bell.", FILLING)

    assert "kraken" in best_chunk(body, {"kraken": 1.0})


def test_best_chunk_of_a_page_has_the_rarer_word_of_the_query():
    body = a_body("A bell rang. " + FILLING, "The kraken came. " + FILLING)

    assert "kraken" in best_chunk(body, {"bell": 0.2, "kraken": 2.0})


def test_best_chunk_of_a_page_has_both_words_of_the_query():
    body = a_body("A bell. " + FILLING, FILLING, "The kraken took a bell. " + FILLING)

    assert "kraken" in best_chunk(body, {"bell": 1.0, "kraken": 1.0})


def test_best_chunk_of_a_page_is_the_first_when_none_matches():
    body = a_body("First. " + FILLING, FILLING)

    assert best_chunk(body, {"zyzzyva": 1.0}) == best_chunk(body, {}) == split_chunks(body)[0]


def test_best_chunk_of_a_short_page_is_its_whole_text():
    assert best_chunk("The kraken came.", {"bell": 1.0}) == "The kraken came."


def test_best_chunk_is_found_in_a_page_without_paragraphs():
    assert len(best_chunk("kraken " * 2_000, {"kraken": 1.0})) <= MAX_CHUNK_CHARACTERS


def test_best_chunk_is_empty_for_an_empty_text():
    assert best_chunk("", {"bell": 1.0}) == ""
