"""Tests of splitting a page into chunks, without losing any text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.knowledge.relevance import MAX_CHUNK_CHARACTERS, split_chunks
from tests.effort import little_work


def squeezed(text: str) -> str:
    return "".join(text.split())


def test_short_page_text_is_one_chunk():
    assert split_chunks("The ferry.\n\nIt crosses.") == ("The ferry.\n\nIt crosses.",)


@pytest.mark.parametrize("text", ["", "\n\n", "   \n \n"])
def test_empty_page_text_has_no_chunks(text):
    assert split_chunks(text) == ()


def test_long_page_text_is_split_between_paragraphs():
    paragraphs = [letter * 500 for letter in "abc"]

    assert split_chunks("\n\n".join(paragraphs)) == ("a" * 500 + "\n\n" + "b" * 500, "c" * 500)


def test_long_paragraph_is_split_between_sentences():
    sentence = "The ferry crosses at dusk. "

    parts = split_chunks(sentence * 100)

    assert len(parts) == 3
    assert all(part.startswith("The ferry") and part.endswith("dusk.") for part in parts)


def test_sentences_are_split_without_blanks_between_them():
    parts = split_chunks("渡船在黄昏出发。" * 200)

    assert len(parts) == 2
    assert all(part.endswith("。") for part in parts)


def test_long_sentence_is_split_between_words():
    parts = split_chunks("ferryman " * 300)

    assert {word for part in parts for word in part.split()} == {"ferryman"}


def test_very_long_word_is_split_between_letters():
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    flag = "\U0001f1f3\U0001f1f4"

    assert all(set(part.split(family)) == {""} for part in split_chunks(family * 500))
    assert all(len(part) % 2 == 0 for part in split_chunks("e\u0301" * 1501))
    assert split_chunks(flag * 601)


def test_letter_with_too_many_accents_is_split():
    parts = split_chunks("e" + "\u0301" * 5000)

    assert [len(part) <= MAX_CHUNK_CHARACTERS for part in parts] == [True] * 5


@given(st.text(alphabet="ab. \n!。\u0301", max_size=6000))
def test_chunks_of_any_page_text_fit_and_lose_nothing(text):
    parts = split_chunks(text)

    assert squeezed("".join(parts)) == squeezed(text)
    assert all(0 < len(part) <= MAX_CHUNK_CHARACTERS and part == part.strip() for part in parts)


@pytest.mark.parametrize("text", ["\n" * 400_000, ". " * 200_000, "\n \t" * 130_000, "'" * 400_000])
def test_hostile_page_texts_are_split_in_linear_time(text):
    with little_work(5):
        split_chunks(text)
