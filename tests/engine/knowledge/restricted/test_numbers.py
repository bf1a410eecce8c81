"""Numbers that a text says."""

import pytest

from evennia_ai.engine.knowledge.restricted.numbers import all_numbers, places, spelt_together


def numbers_in(text: str) -> frozenset[str]:
    return all_numbers(text).long


def digits_in(text: str) -> tuple[str, ...]:
    return tuple(place.joined for place in places(text) if place.is_sure)


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
def test_a_number_is_read_in_digits_and_in_words(text, numbers):
    assert numbers_in(text) == numbers


def test_what_stands_between_numbers_parts_them():
    assert digits_in("4 7 gulls 1 1") == ("47", "11")


@pytest.mark.parametrize("text", ["f o u r s e v e n", "f-o-u-r-s-e-v-e-n", "fourseven"])
def test_number_words_are_put_together_from_their_letters(text):
    assert numbers_in(spelt_together(text)) == {"47"}


@pytest.mark.parametrize("text", ["stone", "one by one", "a b c d e f", "often"])
def test_other_words_have_no_number_in_them(text):
    assert numbers_in(spelt_together(text)) == set()


def test_a_number_without_an_end_is_cut():
    assert max(map(len, numbers_in("7" * 10_000))) == 400
