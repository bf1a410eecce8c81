"""Tests of finding numbers in a text."""

import pytest

from evennia_ai.engine.knowledge.restricted.numbers import (
    find_numbers,
    join_spelled_letters,
    numbers_in_text,
)


def numbers_in(text: str) -> frozenset[str]:
    return numbers_in_text(text).long


def digits_in(text: str) -> tuple[str, ...]:
    return tuple(place.joined for place in find_numbers(text) if place.is_sure)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("", set()),
        ("seven gulls", set()),
        ("47", {"47"}),
        ("4-7-1-1", {"4711"}),
        ("4,711", {"4711", "711"}),
        ("007 and 12", {"12", "712"}),
        ("forty seven", {"47"}),
        ("forty-seven eleven", {"47", "11", "4711"}),
        ("four seven one one", {"4711"}),
        ("seven hundred and eleven", {"711"}),
        ("four thousand seven hundred and eleven", {"4711"}),
        ("two dozen", {"24"}),
        ("a hundred", {"100"}),
        ("a million two", {"1000002"}),
        ("twenty ten", {"20", "10", "2010"}),
        ("12 gulls, 13 boats", {"12", "13"}),
    ],
)
def test_number_is_parsed_from_digits_and_words(text, numbers):
    assert numbers_in(text) == numbers


def test_words_between_numbers_separate_them():
    assert digits_in("4 7 gulls 1 1") == ("47", "11")


@pytest.mark.parametrize("text", ["f o u r s e v e n", "f-o-u-r-s-e-v-e-n", "fourseven"])
def test_spelled_letters_are_joined_to_number_words(text):
    assert numbers_in(join_spelled_letters(text)) == {"47"}


@pytest.mark.parametrize("text", ["stone", "one by one", "a b c d e f", "often"])
def test_words_that_begin_like_numbers_are_no_numbers(text):
    assert numbers_in(join_spelled_letters(text)) == set()


def test_very_long_number_is_cut():
    assert max(map(len, numbers_in("7" * 10_000))) == 400
