"""Tests of `PassSchedule`: which kind of pass comes next, and when activation ends."""

import pytest

from evennia_ai.engine.lorebook.activation.passes import MOST_WIDENED, PassResult, PassSchedule
from evennia_ai.engine.lorebook.rules import ActivationRules
from tests.engine.lorebook.builders import a_book, a_scan, an_entry, awake, texts


def a_result(passed_on=0, *, active=0, full=False):
    return PassResult(passed_on=passed_on, active=active, budget_is_full=full)


def a_schedule(*, recursive=True, levels=(), length=0, **rules):
    return PassSchedule(ActivationRules(**rules), recursive=recursive, levels=levels, length=length)


def walked(schedule, *results):
    """Return the kinds of pass that follow the first pass, if passes have these results."""
    kinds = []
    for result in results:
        if not schedule.move_on(result):
            break
        kinds.append(schedule.kind)
    return kinds


def test_activation_ends_when_no_new_entry_text_is_left_to_search():
    assert walked(a_schedule(), a_result(0)) == []
    assert walked(a_schedule(), a_result(1), a_result(0)) == ["recursion"]


@pytest.mark.parametrize(("steps", "made"), [(1, 1), (3, 3), (0, 9)])
def test_recursion_limit_does_not_count_the_first_activation_pass(steps, made):
    schedule = a_schedule(max_recursion_steps=steps)
    assert walked(schedule, *[a_result(1)] * 9) == ["recursion"] * made
    assert schedule.number == made + 1


def test_activation_has_no_recursion_pass_when_recursion_is_off():
    assert walked(a_schedule(recursive=False), a_result(5)) == []


def test_full_lore_budget_ends_recursion_and_widening_of_the_scan():
    schedule = a_schedule(min_activations=9, length=50)
    assert walked(schedule, a_result(1, active=1, full=True)) == []


def test_delay_levels_are_reached_one_by_one_after_recursion_began():
    schedule = a_schedule(levels=[7, 2, 7])
    assert schedule.level == 2
    assert walked(schedule, a_result(1), a_result(0), a_result(0)) == ["recursion", "recursion"]
    assert schedule.level == 7


def test_delay_levels_are_not_reached_without_recursion():
    assert walked(a_schedule(levels=[1]), a_result(0)) == []


def test_no_recursion_follows_a_widened_scan_without_new_entries():
    schedule = a_schedule(scan_depth=1, min_activations=2, length=5)
    assert walked(schedule, a_result(1, active=1), *[a_result(0, active=1)] * 9) == [
        "recursion",
        *["widened"] * 4,
    ]
    assert schedule.widened == 4


def test_recursion_follows_a_widened_scan_while_delayed_entries_wait():
    schedule = a_schedule(scan_depth=1, min_activations=2, length=3, levels=[1])
    assert walked(schedule, a_result(1, active=1), *[a_result(0, active=1)] * 9) == [
        *("recursion", "widened", "recursion", "widened", "recursion"),
    ]


def test_scan_is_widened_when_recursion_is_at_its_limit():
    schedule = a_schedule(scan_depth=1, min_activations=9, max_recursion_steps=1, length=3)
    assert walked(schedule, *[a_result(1, active=1)] * 9) == ["recursion", "widened", "widened"]


@pytest.mark.parametrize(("deepest", "widened"), [(0, 9), (4, 3), (1, 0), (99, 9)])
def test_scan_widening_ends_at_its_limit_or_at_the_oldest_message(deepest, widened):
    schedule = a_schedule(
        scan_depth=1, min_activations=9, min_activations_depth_max=deepest, length=10
    )
    walked(schedule, *[a_result()] * 50)
    assert schedule.widened == widened


def test_scan_widening_ends_when_enough_entries_are_active():
    schedule = a_schedule(scan_depth=1, min_activations=2, length=10)
    assert walked(schedule, a_result(active=1), a_result(active=2)) == ["widened"]


def test_scan_widening_ends_in_a_long_history_without_the_key():
    rules = ActivationRules(scan_depth=1, min_activations=2)
    lines = ["user: coin", *["user: -"] * (MOST_WIDENED + 50), "user: gate"]
    book = a_book(an_entry("Far."), an_entry("Near.", keys=["gate"]))
    assert texts(awake(book, scan=a_scan(*lines), rules=rules)) == ["Near."]


def test_entry_found_by_a_widened_scan_activates_others_by_recursion():
    rules = ActivationRules(scan_depth=1, min_activations=3)
    lines = ["user: coin", *["user: -"] * 20, "user: gate"]
    book = a_book(
        an_entry("The bell."), an_entry("Near.", keys=["gate"]), an_entry("Fed.", keys=["bell"])
    )
    result = awake(book, scan=a_scan(*lines), rules=rules)
    assert texts(result) == ["Near.", "The bell.", "Fed."]
