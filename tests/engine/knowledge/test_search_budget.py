"""Tests of the limits on searches of knowledge bases."""

import pytest

from evennia_ai.engine.knowledge.settings import (
    DEFAULT_SEARCH_BUDGET,
    SearchBudget,
    judge_search,
    read_search_budget,
)


def verdict(before: int, used: int = 0):
    return judge_search(DEFAULT_SEARCH_BUDGET, before=before, used_tokens=used, limit_tokens=100)


@pytest.mark.parametrize("before", range(5))
def test_first_five_searches_are_free(before):
    assert verdict(before, used=99).is_allowed
    assert verdict(before, used=99).message == ""


def test_searches_after_the_free_ones_say_how_many_are_left():
    assert verdict(5).message == "You may search 4 more times."
    assert verdict(8).message == "You may search 1 more time."


@pytest.mark.parametrize(
    ("used", "code"), [(69, None), (70, None), (89, None), (90, "token_limit_exceeded")]
)
def test_search_is_warned_then_refused_in_a_full_prompt(used, code):
    assert verdict(5, used=used).code == code
    assert ("little room" in verdict(5, used=used).message) == (70 <= used < 90)


def test_eleventh_search_is_refused():
    assert verdict(9).is_allowed
    assert verdict(10).code == "max_calls_exceeded"
    assert not verdict(10).is_allowed


def test_search_is_refused_when_the_prompt_has_no_room():
    assert (
        judge_search(DEFAULT_SEARCH_BUDGET, before=6, used_tokens=0, limit_tokens=0).code
        == "token_limit_exceeded"
    )


@pytest.mark.parametrize("given", [None, "", {}])
def test_search_budget_is_the_default_when_empty(given):
    assert read_search_budget(given) == (DEFAULT_SEARCH_BUDGET, "")


def test_search_budget_takes_fields_of_a_dictionary():
    assert read_search_budget({"calls": 3, "free": 1}) == (SearchBudget(calls=3, free=1), "")


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"calls": 5, "free": 5}, "free (5) must be less than calls (5)"),
        ({"calls": 0}, "calls and minutes must be 1 or more"),
        ({"warn_percent": 95}, "warn_percent must be at most"),
        ({"reject_percent": 101}, "warn_percent must be at most"),
        ({"calls": "10"}, "calls must be a whole number"),
        ({"calls": True}, "calls must be a whole number"),
        ({"cals": 1}, "there is no 'cals'"),
        ([10], "must be a dictionary"),
    ],
)
def test_search_budget_is_the_default_when_a_field_is_invalid(given, problem):
    budget, told = read_search_budget(given)
    assert budget == DEFAULT_SEARCH_BUDGET
    assert problem in told
