"""One order made of several."""

import pytest

from evennia_ai.knowledge.relevance import fused


def keys(*rankings):
    return [key for key, _ in fused(*rankings)]


def test_what_both_orders_have_comes_before_what_is_first_in_one():
    assert keys(["a", "b", "c"], ["d", "b"]) == ["b", "a", "d", "c"]


def test_one_order_stays_as_it_is():
    assert keys(["c", "a", "b"]) == ["c", "a", "b"]


def test_equals_stay_in_the_order_in_which_they_are_met():
    assert keys(["b"], ["a"]) == ["b", "a"]


def test_the_score_is_the_sum_of_one_by_sixty_and_the_place():
    assert dict(fused(["a", "b"], ["b"])) == {
        "a": pytest.approx(1 / 61),
        "b": pytest.approx(1 / 62 + 1 / 61),
    }


def test_a_key_twice_in_one_order_counts_by_its_first_place():
    assert keys(["a", "b", "b", "b"]) == ["a", "b"]


def test_nothing_makes_nothing():
    assert fused([], []) == []
    assert fused() == []
