"""One order made of what words find and of what is near in meaning."""

import pytest

from evennia_ai.engine.knowledge.relevance import MEANING, ranked_by_both


def order(words, near, reachable=10.0):
    return [key for key, _ in ranked_by_both(words, near, reachable=reachable)]


def test_the_score_is_the_sum_of_a_share_of_what_words_could_tell_and_of_nearness():
    found = ranked_by_both([("a", 5.0), ("b", 2.0)], {"b": 0.5}, reachable=10.0)

    assert found == [
        ("a", pytest.approx((1 - MEANING) * 0.5)),
        ("b", pytest.approx((1 - MEANING) * 0.2 + MEANING * 0.5)),
    ]


def test_words_that_are_sure_come_before_what_is_near():
    assert order([("a", 9.0)], {"b": 0.9}) == ["a", "b"]


def test_what_is_near_comes_before_words_that_say_little():
    assert order([("a", 1.0)], {"b": 0.6}) == ["b", "a"]


def test_what_both_find_comes_before_what_one_finds_as_well():
    assert order([("a", 5.0), ("b", 5.0)], {"b": 0.4, "c": 0.4}) == ["b", "a", "c"]


def test_one_way_alone_keeps_its_order():
    assert order([("c", 3.0), ("a", 2.0)], {}) == ["c", "a"]
    assert order([], {"b": 0.9, "a": 0.4}, reachable=0.0) == ["b", "a"]


def test_nothing_makes_nothing():
    assert order([], {}, reachable=0.0) == []
