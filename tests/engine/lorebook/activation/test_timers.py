"""Tests of timers: which state of lore lasts from turn to turn, and for how long."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.lorebook.activation.timers import (
    NO_STATE,
    Clock,
    LoreState,
    Spell,
    state_from,
)
from evennia_ai.engine.lorebook.rules import ActivationRules
from evennia_ai.engine.lorebook.scan.window import Scan
from tests.engine.lorebook.builders import a_book, a_scan, an_entry, texts
from tests.engine.lorebook.turns import a_turn, over_turns

COIN = a_scan("user: coin")
HM = a_scan("user: hm")


def at(turns, **more):
    return Clock(turns=turns, **more)


def timed(content="Some lore.", *, own=None, **timing):
    """Make an entry with timers. `own` is its data in `extensions.evennia_ai`."""
    return an_entry(content, extensions={**timing, "evennia_ai": own or {}})


def active(results):
    return [texts(result) for result in results]


@pytest.mark.parametrize(("name", "count"), [("turns", 2), ("messages", 7), ("seconds", 1.5)])
def test_entry_timers_can_count_turns_messages_or_seconds(name, count):
    assert Clock(turns=2, messages=7, seconds=1.5).read(name) == count


def test_rules_choose_the_clock_of_timers_when_the_entry_does_not():
    book = a_book(timed(sticky=2))
    for clock, over in (("turns", 2), ("messages", 2), ("seconds", 2)):
        rules = ActivationRules(clock=clock)
        start = Clock(turns=0, messages=0, seconds=0)
        state = a_turn(book, scan=COIN, rules=rules, clock=start).after
        assert state.sticky == {"book#0": Spell(0, over)}
        still = Clock(**{"turns": 9, "messages": 9, "seconds": 9, clock: 1})
        assert texts(a_turn(book, scan=HM, rules=rules, clock=still, state=state))
        gone = Clock(**{"turns": 0, "messages": 0, "seconds": 0, clock: 2})
        assert not texts(a_turn(book, scan=HM, rules=rules, clock=gone, state=state))


def test_timer_state_is_the_same_object_after_a_turn_without_changes():
    book = a_book(timed(sticky=9), an_entry("Plain."))
    first, second, third = over_turns(book, said=["coin", "coin", "hm"])
    assert second.after is first.after
    assert third.after is first.after
    (plain,) = over_turns(a_book(an_entry()), said=["coin"])
    assert plain.after is NO_STATE


def test_timer_state_round_trips_through_json():
    state = LoreState(
        sticky={"book#1": Spell(1, 4), "book#0": Spell(2, 3)},
        cooldown={"book#1": Spell(0.5, 60.25, settled=True)},
        groups={"weather": Spell(1, 2)},
        matched=frozenset({"b", "a"}),
    )
    plain = state.to_plain()
    assert state_from(json.loads(json.dumps(plain))) == state
    assert list(plain["sticky"]) == ["book#0", "book#1"]
    assert plain["matched"] == ["a", "b"]
    assert state_from({}) == NO_STATE


def test_edited_entry_keeps_its_running_timer():
    before = a_book(timed("Old words.", sticky=3), revision=1)
    after = a_book(timed("New words.", sticky=9), revision=2)
    state = a_turn(before, scan=COIN, clock=at(1)).after
    staying = [a_turn(after, scan=HM, state=state, clock=at(turn)) for turn in (3, 4)]
    assert active(staying) == [["New words."], []]


def test_timer_removed_from_an_entry_ends_at_once():
    state = a_turn(a_book(timed(sticky=5, cooldown=5)), scan=COIN, clock=at(1)).after
    without = a_turn(a_book(an_entry()), scan=HM, state=state, clock=at(2))
    assert texts(without) == []
    assert without.after == NO_STATE
    assert texts(a_turn(a_book(an_entry()), scan=COIN, state=state, clock=at(2)))


def test_timer_of_a_missing_entry_runs_until_its_end():
    book, other = a_book(timed(sticky=4)), a_book(label="other")
    state = a_turn(book, scan=COIN, clock=at(1)).after
    away = a_turn(other, scan=HM, state=state, clock=at(2))
    assert away.after is state
    assert texts(a_turn(book, scan=HM, state=away.after, clock=at(3)))
    assert a_turn(other, scan=HM, state=state, clock=at(5)).after == NO_STATE


def test_earlier_match_is_remembered_while_the_book_is_missing():
    book = a_book(an_entry("@@dont_activate_after_match\nOnce."))
    state = a_turn(book, scan=COIN).after
    away = a_turn(a_book(label="other"), scan=HM, state=state, clock=at(2)).after
    assert texts(a_turn(book, scan=COIN, state=away, clock=at(3))) == []


def test_timer_does_not_start_when_the_entry_did_not_fit_or_failed_its_chance():
    book = a_book(timed("one two three", sticky=3))
    assert a_turn(book, scan=COIN, rules=ActivationRules(budget_tokens=2)).after is NO_STATE
    unlucky = a_book(timed(sticky=3, probability=10))
    assert a_turn(unlucky, scan=COIN, rules=ActivationRules(dice=0.5)).after is NO_STATE


def test_sticky_entry_is_active_again_when_the_budget_has_room():
    book = a_book(timed("one two three", sticky=3))
    state = a_turn(book, scan=COIN, clock=at(1)).after
    tight = ActivationRules(budget_tokens=2)
    second = a_turn(book, scan=HM, state=state, clock=at(2), rules=tight)
    assert texts(second) == []
    assert texts(a_turn(book, scan=HM, state=second.after, clock=at(3))) == ["one two three"]


def test_disabled_entry_does_not_stay_sticky():
    state = a_turn(a_book(timed(sticky=3)), scan=COIN, clock=at(1)).after
    off = a_book({**timed(sticky=3), "enabled": False})
    assert texts(a_turn(off, scan=HM, state=state, clock=at(2))) == []


def test_turn_without_books_keeps_the_timer_state():
    state = LoreState(sticky={"book#0": Spell(1, 9)})
    assert a_turn(scan=HM, state=state, clock=at(2)).after is state


def test_preset_evennia_ai_keeps_timers_when_the_clock_does_not_move():
    book = a_book(timed(sticky=2))
    state = a_turn(book, scan=COIN, clock=at(1)).after
    assert texts(a_turn(book, scan=HM, state=state, clock=at(1))) == ["Some lore."]


TIMED = st.fixed_dictionaries(
    {},
    optional={
        "sticky": st.integers(0, 3),
        "cooldown": st.integers(0, 3),
        "delay": st.integers(0, 3),
        "probability": st.sampled_from([0, 50, 100]),
        "group": st.sampled_from(["", "g", "g,h"]),
    },
)
OWN = st.fixed_dictionaries(
    {},
    optional={
        "clock": st.sampled_from(["turns", "messages", "seconds"]),
        "group_cooldown": st.integers(0, 3),
    },
)
HEADS = st.sampled_from(["", "@@keep_activate_after_match\n", "@@dont_activate_after_match\n"])
ENTRIES = st.lists(st.tuples(TIMED, OWN, HEADS, st.sampled_from(["coin", "gate"])), max_size=5)


@given(ENTRIES, st.lists(st.sampled_from(["coin", "gate", "hm"]), max_size=6))
def test_stored_timer_state_equals_the_running_state_after_any_turns(entries, said):
    book = a_book(
        *(
            {**timed(f"{head}Text {n}.", own=own, **timing), "keys": [key]}
            for n, (timing, own, head, key) in enumerate(entries)
        )
    )
    state, stored = NO_STATE, NO_STATE
    for turns, text in enumerate(said, start=1):
        clock = Clock(turns=turns, messages=2 * turns, seconds=1.5 * turns)
        scan = Scan(history=a_scan(f"user: {text}").history)
        plain = a_turn(book, scan=scan, state=state, clock=clock)
        again = a_turn(book, scan=scan, state=stored, clock=clock)
        assert again.verdicts == plain.verdicts
        assert again.after == plain.after
        state = plain.after
        stored = state_from(json.loads(json.dumps(plain.after.to_plain())))


@given(ENTRIES, st.lists(st.sampled_from(["coin", "gate", "hm"]), max_size=5), st.booleans())
def test_activation_with_equal_timers_gives_the_same_result(entries, said, dry):
    book = a_book(
        *(
            {**timed(f"{head}Text {n}.", own=own, **timing), "keys": [key]}
            for n, (timing, own, head, key) in enumerate(entries)
        )
    )
    rules = ActivationRules(dry_run=dry)
    results = over_turns(book, said=said, rules=rules)
    for turns, (text, result) in enumerate(zip(said, results, strict=True), start=1):
        before = results[turns - 2].after if turns > 1 else NO_STATE
        clock = Clock(turns=turns, messages=2 * turns - 1, seconds=60.0 * (turns - 1))
        scan = a_scan(f"user: {text}")
        again = a_turn(book, scan=scan, state=before, clock=clock, rules=rules)
        assert (again.verdicts, again.after) == (result.verdicts, result.after)
        assert not dry or again.after is before
