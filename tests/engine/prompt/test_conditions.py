"""Tests of conditions: which facts meet them, and the reason if they are not met."""

import pytest

from evennia_ai.engine.prompt.conditions import CONDITION_TESTS, Condition, unmet_condition


def asks(test, *values, fact="fact", **more):
    return Condition(fact=fact, test=test, values=values, **more)


@pytest.mark.parametrize(
    ("test", "values", "fact", "is_met"),
    [
        ("is_any", ("Oren",), "oren", True),
        ("is_any", ("Brida", "STRASSE"), "straße", True),
        ("is_any", ("Oren",), "Orens", False),
        ("is_any", (3,), 3.0, True),
        ("is_any", ("3",), 3, False),
        ("is_any", (1,), True, False),
        ("is_any", (True,), True, True),
        ("is_any", ("hill",), ("hill",), False),
        ("is_none", ("Oren",), "Brida", True),
        ("is_none", ("Oren", "Brida"), "brida", False),
        ("has_any", ("hill", "harbour"), ("Harbour", "sea"), True),
        ("has_any", ("hill",), ("harbour",), False),
        ("has_any", ("hill",), (), False),
        ("has_any", ("hill",), "hill", True),
        ("has_none", ("hill",), ("harbour",), True),
        ("has_none", ("hill",), (), True),
        ("has_none", ("hill",), ("HILL",), False),
        ("at_least", (3,), 3, True),
        ("at_least", (3, 5), 4, False),
        ("at_least", (3,), 2.99, False),
        ("at_least", (3,), "4", False),
        ("at_least", (0,), True, False),
        ("at_most", (3,), 3, True),
        ("at_most", (3,), 3.01, False),
        ("at_most", (3,), ("1",), False),
    ],
)
def test_condition_on_a_fact_is_met_or_not(test, values, fact, is_met):
    assert (unmet_condition((asks(test, *values),), {"fact": fact}) == "") == is_met


@pytest.mark.parametrize("test", CONDITION_TESTS)
def test_condition_on_an_unknown_fact_is_met_only_when_allowed(test):
    assert unmet_condition((asks(test, 1),), {}).endswith("and the fact is unknown")
    assert unmet_condition((asks(test, 1, kept_unknown=True),), {}) == ""


@pytest.mark.parametrize(
    ("condition", "fact", "words"),
    [
        (asks("is_any", "hill", "sea"), "wood", "fact must be hill or sea, and it is wood"),
        (asks("is_none", True), True, "fact must not be true, and it is true"),
        (asks("at_least", 4), 3, "fact must be at least 4, and it is 3"),
        (asks("at_most", 2.5), 3, "fact must be at most 2.5, and it is 3"),
        (asks("has_any", "hill"), (), "fact must have hill, and it is nothing"),
        (asks("has_none", "old"), ("old",), "fact must not have old, and it is old"),
    ],
)
def test_unmet_condition_names_wanted_and_found_values(condition, fact, words):
    assert unmet_condition((condition,), {"fact": fact}) == words


def test_first_unmet_condition_on_facts_is_the_reason():
    conditions = (asks("is_any", 1, fact="a"), asks("is_any", 2, fact="b"), asks("is_any", 3))
    assert unmet_condition(conditions, {"a": 1, "b": 9}) == "b must be 2, and it is 9"
    assert unmet_condition(conditions, {"a": 1, "b": 2, "fact": 3}) == ""
    assert unmet_condition((), {}) == ""


def test_long_values_are_shortened_in_the_reason_of_an_unmet_condition():
    words = unmet_condition((asks("is_any", *("x" * 500 for _ in range(50))),), {"fact": "y" * 500})
    assert len(words) < 600
