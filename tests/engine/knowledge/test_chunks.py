"""Chunks end where a reader would pause, and nothing of the text is lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.knowledge.relevance import MAX_CHARACTERS, chunks
from tests.effort import little_work


def squeezed(text: str) -> str:
    return "".join(text.split())


def test_a_short_text_is_one_chunk():
    assert chunks("The ferry.\n\nIt crosses.") == ("The ferry.\n\nIt crosses.",)


@pytest.mark.parametrize("text", ["", "\n\n", "   \n \n"])
def test_an_empty_text_has_none(text):
    assert chunks(text) == ()


def test_a_long_text_is_cut_between_paragraphs():
    paragraphs = [letter * 500 for letter in "abc"]

    assert chunks("\n\n".join(paragraphs)) == ("a" * 500 + "\n\n" + "b" * 500, "c" * 500)


def test_a_long_paragraph_is_cut_between_sentences():
    sentence = "The ferry crosses at dusk. "

    parts = chunks(sentence * 100)

    assert len(parts) == 3
    assert all(part.startswith("The ferry") and part.endswith("dusk.") for part in parts)


def test_sentences_without_blanks_between_them_are_cut_too():
    parts = chunks("渡船在黄昏出发。" * 200)

    assert len(parts) == 2
    assert all(part.endswith("。") for part in parts)


def test_a_long_sentence_is_cut_between_words():
    parts = chunks("ferryman " * 300)

    assert {word for part in parts for word in part.split()} == {"ferryman"}


def test_a_word_without_end_is_cut_between_letters():
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    flag = "\U0001f1f3\U0001f1f4"

    assert all(set(part.split(family)) == {""} for part in chunks(family * 500))
    assert all(len(part) % 2 == 0 for part in chunks("e\u0301" * 1501))
    assert chunks(flag * 601)


def test_a_letter_without_end_is_cut_somewhere():
    parts = chunks("e" + "\u0301" * 5000)

    assert [len(part) <= MAX_CHARACTERS for part in parts] == [True] * 5


@given(st.text(alphabet="ab. \n!。\u0301", max_size=6000))
def test_nothing_is_lost_and_every_chunk_fits(text):
    parts = chunks(text)

    assert squeezed("".join(parts)) == squeezed(text)
    assert all(0 < len(part) <= MAX_CHARACTERS and part == part.strip() for part in parts)


@pytest.mark.parametrize("text", ["\n" * 400_000, ". " * 200_000, "\n \t" * 130_000, "'" * 400_000])
def test_hostile_texts_take_no_longer_than_they_are(text):
    with little_work(5):
        chunks(text)
