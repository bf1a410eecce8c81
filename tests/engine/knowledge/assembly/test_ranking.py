"""Tests of the scores of pages, with expected scores calculated by hand."""

import pytest

from evennia_ai.engine.knowledge.assembly.packages import (
    PackedPage,
    pack_page,
    rank_pages,
    task_word_share,
)
from tests.engine.knowledge.assembly.driver import a_page

STOP = frozenset({"the", "a", "of"})


def a_packed(title: str, text: str, bucket="encyclopedia") -> PackedPage:
    return pack_page(a_page(title, text), bucket, why="test")


@pytest.mark.req("S4-19")
@pytest.mark.parametrize(
    ("title", "text", "expected"),
    [
        # One of four words is in the task, and none in the title.
        ("Brass", "otter races weir", 1 / 4),
        # The word in the title counts twice: (2 + 1) of three words.
        ("Weir", "the weir groaned", 3 / 3),
        # Stop words never count, not even for the number of words.
        ("The Mill", "a mill of the weir", (2 + 1 + 1) / 3),
        # Each word of the task counts as often as it occurs.
        ("Ledger", "weir weir mill flour", 3 / 5),
        ("Brass", "an otter", 0.0),
        ("The", "the of", 0.0),
    ],
)
def test_page_score_matches_a_hand_calculation(title, text, expected):
    found = task_word_share(title, text, terms=["weir", "mill"], stop_words=STOP)

    assert found == pytest.approx(expected)


@pytest.mark.req("S4-19")
def test_page_score_counts_each_task_word_once():
    page = a_packed("Brass", "weir otter")
    once, often = (
        rank_pages([page], task=task, stop_words=STOP) for task in ("the weir", "weir, weir, weir")
    )

    assert once == often


@pytest.mark.req("S4-19")
def test_page_ranking_keeps_the_order_of_equal_scores():
    pages = [a_packed(one, "Text.") for one in ("Yew", "Elm", "Oak")]

    assert rank_pages(pages, task="weir", stop_words=STOP) == tuple(pages)


@pytest.mark.req("S4-19")
def test_page_ranking_is_by_section_then_score():
    pages = [
        a_packed("Talk:Sources:L", "Text.", "talk"),
        a_packed("Sources:L", "Text.", "sources"),
        a_packed("Brass", "Otter."),
        a_packed("Weir", "Text."),
    ]
    found = rank_pages(pages, task="the weir", stop_words=STOP)

    assert [one.heading for one in found] == ["Weir", "Brass", "Sources:L", "Talk:Sources:L"]


def test_page_ranking_keeps_the_order_of_instructions():
    pages = [a_packed(f"Instructions:{one}", "Text.", "instructions") for one in ("A", "Weir")]
    found = rank_pages(pages, task="weir", stop_words=STOP)

    assert [one.heading for one in found] == ["Instructions:A", "Instructions:Weir"]


def test_page_ranking_is_empty_without_pages():
    assert rank_pages([], task="weir", stop_words=STOP) == ()
