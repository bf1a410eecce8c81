"""Tests of merging the pages found by words with the pages found by meaning."""

import pytest

from evennia_ai.engine.knowledge.relevance import MEANING_SHARE, merge_rankings


def order(words, near, reachable=10.0):
    return [key for key, _ in merge_rankings(words, near, reachable=reachable)]


def test_merged_page_score_is_a_weighted_sum_of_words_and_meaning():
    found = merge_rankings([("a", 5.0), ("b", 2.0)], {"b": 0.5}, reachable=10.0)

    assert found == [
        ("a", pytest.approx((1 - MEANING_SHARE) * 0.5)),
        ("b", pytest.approx((1 - MEANING_SHARE) * 0.2 + MEANING_SHARE * 0.5)),
    ]


def test_page_with_all_query_words_comes_before_one_of_similar_meaning():
    assert order([("a", 9.0)], {"b": 0.9}) == ["a", "b"]


def test_page_of_similar_meaning_comes_before_one_with_few_query_words():
    assert order([("a", 1.0)], {"b": 0.6}) == ["b", "a"]


def test_page_found_by_words_and_by_meaning_comes_first():
    assert order([("a", 5.0), ("b", 5.0)], {"b": 0.4, "c": 0.4}) == ["b", "a", "c"]


def test_merged_ranking_keeps_the_order_of_pages_found_one_way():
    assert order([("c", 3.0), ("a", 2.0)], {}) == ["c", "a"]
    assert order([], {"b": 0.9, "a": 0.4}, reachable=0.0) == ["b", "a"]


def test_merged_ranking_is_empty_without_pages():
    assert order([], {}, reachable=0.0) == []
