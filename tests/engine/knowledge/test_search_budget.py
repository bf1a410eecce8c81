"""The budget of searches."""

import pytest

from evennia_ai.engine.knowledge.settings import USUAL, SearchBudget, judged, read_budget


def verdict(before: int, used: int = 0):
    return judged(USUAL, before=before, used_tokens=used, limit_tokens=100)


@pytest.mark.parametrize("before", range(5))
def test_the_first_five_are_free_however_full_the_prompt_is(before):
    assert verdict(before, used=99).is_allowed
    assert verdict(before, used=99).told == ""


def test_later_ones_are_allowed_and_say_how_many_are_left():
    assert verdict(5).told == "You may search 4 more times."
    assert verdict(8).told == "You may search 1 more time."


@pytest.mark.parametrize(
    ("used", "code"), [(69, None), (70, None), (89, None), (90, "token_limit_exceeded")]
)
def test_a_full_prompt_warns_and_then_refuses(used, code):
    assert verdict(5, used=used).code == code
    assert ("little room" in verdict(5, used=used).told) == (70 <= used < 90)


def test_the_eleventh_is_refused():
    assert verdict(9).is_allowed
    assert verdict(10).code == "max_calls_exceeded"
    assert not verdict(10).is_allowed


def test_no_room_at_all_refuses_what_is_not_free():
    assert judged(USUAL, before=6, used_tokens=0, limit_tokens=0).code == "token_limit_exceeded"


@pytest.mark.parametrize("given", [None, "", {}])
def test_nothing_given_means_the_usual_one(given):
    assert read_budget(given) == (USUAL, "")


def test_what_is_given_counts():
    assert read_budget({"calls": 3, "free": 1}) == (SearchBudget(calls=3, free=1), "")


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"calls": 5, "free": 5}, "free (5) must be less than calls (5)"),
        ({"calls": 0}, "calls and minutes must be 1 or more"),
        ({"warn_percent": 95}, "warn_percent must not be over"),
        ({"reject_percent": 101}, "warn_percent must not be over"),
        ({"calls": "10"}, "calls must be a whole number"),
        ({"calls": True}, "calls must be a whole number"),
        ({"cals": 1}, "there is no 'cals'"),
        ([10], "must be a dictionary"),
    ],
)
def test_one_that_cannot_be_is_replaced_by_the_usual_one_and_says_why(given, problem):
    budget, told = read_budget(given)
    assert budget == USUAL
    assert problem in told
