"""Scores of pages, worked out by hand."""

import pytest

from evennia_ai.engine.knowledge.assembly.packages import PackedPage, packed, ranked, score
from tests.engine.knowledge.assembly.driver import a_page

STOP = frozenset({"the", "a", "of"})


def a_packed(title: str, text: str, bucket="encyclopedia") -> PackedPage:
    return packed(a_page(title, text), bucket, why="test")


@pytest.mark.req("S4-19")
@pytest.mark.parametrize(
    ("title", "text", "expected"),
    [
        # One of four words, none in the title.
        ("Brass", "otter races weir", 1 / 4),
        # The title's word counts twice: (2 + 1) of three words.
        ("Weir", "the weir groaned", 3 / 3),
        # Stop words count nowhere, not even for the length.
        ("The Mill", "a mill of the weir", (2 + 1 + 1) / 3),
        # Each of the task's words by how often it stands there.
        ("Ledger", "weir weir mill flour", 3 / 5),
        ("Brass", "an otter", 0.0),
        ("The", "the of", 0.0),
    ],
)
def test_a_score_is_as_worked_out_by_hand(title, text, expected):
    found = score(title, text, terms=["weir", "mill"], stop_words=STOP)

    assert found == pytest.approx(expected)


@pytest.mark.req("S4-19")
def test_the_words_of_a_task_count_once_however_often_it_has_them():
    page = a_packed("Brass", "weir otter")
    once, often = (
        ranked([page], task=task, stop_words=STOP) for task in ("the weir", "weir, weir, weir")
    )

    assert once == often


@pytest.mark.req("S4-19")
def test_pages_of_one_score_keep_their_order():
    pages = [a_packed(one, "Text.") for one in ("Yew", "Elm", "Oak")]

    assert ranked(pages, task="weir", stop_words=STOP) == tuple(pages)


@pytest.mark.req("S4-19")
def test_buckets_stand_in_their_order_and_the_best_page_first_in_each():
    pages = [
        a_packed("Talk:Sources:L", "Text.", "talk"),
        a_packed("Sources:L", "Text.", "sources"),
        a_packed("Brass", "Otter."),
        a_packed("Weir", "Text."),
    ]
    found = ranked(pages, task="the weir", stop_words=STOP)

    assert [one.heading for one in found] == ["Weir", "Brass", "Sources:L", "Talk:Sources:L"]


def test_instructions_keep_their_order():
    pages = [a_packed(f"Instructions:{one}", "Text.", "instructions") for one in ("A", "Weir")]
    found = ranked(pages, task="weir", stop_words=STOP)

    assert [one.heading for one in found] == ["Instructions:A", "Instructions:Weir"]


def test_nothing_is_ranked_as_nothing():
    assert ranked([], task="weir", stop_words=STOP) == ()
