"""Tests of the steps that regular expressions may take in one text and in one turn.

Issue 14, Low: a regular expression that exceeds its limit in one message is still searched in the
next. Issue 35, 1: the result depends only on the pattern and the text, never on the machine.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evennia_ai.engine.lorebook.rules import read_rules
from evennia_ai.engine.lorebook.scan.regex.pattern import (
    NO_STEPS,
    STEP_LIMITS,
    TEXT_STEPS,
    Pattern,
    StepsExceededError,
    read_pattern,
    search_patterns,
)
from evennia_ai.engine.lorebook.scan.regex.tree import EMPTY
from evennia_ai.engine.prompt.components import ALL_GRANTS
from evennia_ai.formats.lorebooks.books import read_book
from tests.engine.lorebook.builders import (
    a_book,
    a_scan,
    a_world_entry,
    an_entry,
    awake,
    reasons,
    texts,
)
from tests.properties import up_to

SLOW = "/(?:x+x+)+[yz]/"
LONG = "x" * 5000
TOO_MANY = "took more than 131,072 steps"
PRESETS = pytest.mark.parametrize("preset", ["evennia_ai", "sillytavern"])


class CostlyPattern(Pattern):
    """A pattern that needs a given number of steps, and records the limits it is searched with."""

    __slots__ = ("allowed", "needs", "number")

    def __init__(self, number: int, *, needs: int) -> None:
        super().__init__(f"/costly{number}/", EMPTY, unicode=False)
        self.number = number
        self.needs = needs
        self.allowed: list[int] = []

    def search(self, text: str, *, steps: int = STEP_LIMITS[-1]) -> tuple[int, int]:
        self.allowed.append(steps)
        if steps < self.needs:
            raise StepsExceededError
        return self.number, self.number + 1


def a_pattern_book(preset: str, *, pattern: str = SLOW):
    if preset == "sillytavern":
        entry = a_world_entry("Smoke.", key=[pattern])
        return read_book({"entries": {"0": entry}}, label="book", grants=ALL_GRANTS)
    return a_book(an_entry("Smoke.", keys=[pattern], use_regex=True), grants=ALL_GRANTS)


def rules_of(preset: str):
    return read_rules({"rules": preset, "scan_depth": 4})


def test_regex_is_searched_with_larger_step_limits_until_the_search_ends():
    pattern = CostlyPattern(3, needs=STEP_LIMITS[2])
    found = search_patterns("anything", [pattern])
    assert found.places == {pattern: (3, 4)}
    assert pattern.allowed == list(STEP_LIMITS[:3])
    assert found.steps == sum(STEP_LIMITS[:3])
    assert found.given_up == {}


def test_fast_regexes_are_searched_before_slow_ones_in_any_order():
    slow = [CostlyPattern(number, needs=STEP_LIMITS[-1] + 1) for number in range(20)]
    quick = CostlyPattern(20, needs=1)
    found = search_patterns("anything", [*slow, quick])
    assert found.places == {quick: (20, 21)}
    assert set(found.given_up) == set(slow)
    assert set(found.given_up.values()) == {NO_STEPS}
    assert found.steps == sum(sum(one.allowed) for one in [*slow, quick]) <= TEXT_STEPS


def test_regexes_are_not_searched_when_no_steps_are_left():
    patterns = [CostlyPattern(number, needs=1) for number in range(3)]
    found = search_patterns("anything", patterns, steps=0)
    assert (found.places, found.steps) == ({}, 0)
    assert found.given_up == dict.fromkeys(patterns, NO_STEPS)
    assert not any(pattern.allowed for pattern in patterns)


def test_regex_beyond_its_step_limit_is_given_up_only_for_that_text():
    pattern = read_pattern(SLOW)
    assert isinstance(pattern, Pattern)
    for _ in range(5):
        hostile = search_patterns(LONG, [pattern])
        assert hostile.places == {}
        assert hostile.given_up == {pattern: TOO_MANY}
        assert search_patterns("xxy", [pattern]).places == {pattern: (0, 3)}


@pytest.mark.req("S3-11")
@PRESETS
def test_many_long_messages_do_not_disable_a_regex_key(preset):
    book, rules = a_pattern_book(preset), rules_of(preset)
    for number in range(6):
        awake(book, scan=a_scan(f"user: {LONG}{number}"), rules=rules)
    assert texts(awake(book, scan=a_scan("user: xxy"), rules=rules)) == ["Smoke."]


@PRESETS
def test_regex_is_found_in_another_message_after_it_was_given_up(preset):
    book, rules = a_pattern_book(preset), rules_of(preset)
    scan = a_scan("user: xxy", f"user: {LONG}", event=f"Eve: {LONG}!")
    assert texts(awake(book, scan=scan, rules=rules)) == ["Smoke."]


@PRESETS
def test_very_long_message_does_not_hide_regex_matches_in_others(preset):
    book, rules = a_pattern_book(preset, pattern="/drag[o0]n/"), rules_of(preset)
    scan = a_scan("user: a dragon", "user: " + "word " * 5000)
    assert texts(awake(book, scan=scan, rules=rules)) == ["Smoke."]


@PRESETS
def test_verdict_names_the_message_in_which_a_regex_was_given_up(preset):
    book, rules = a_pattern_book(preset), rules_of(preset)
    result = awake(book, scan=a_scan("user: hello", f"user: {LONG}"), rules=rules)
    assert reasons(result)["book#0"].endswith(
        f"; pattern '{SLOW}' was given up in message 2: took more than 131,072 steps"
    )
    later = awake(book, scan=a_scan("user: hello"), rules=rules)
    assert "given up" not in reasons(later)["book#0"]


def test_verdict_on_an_active_entry_names_given_up_regexes_too():
    book = a_book(an_entry(keys=[SLOW, "/coin/"], use_regex=True), grants=ALL_GRANTS)
    said = reasons(awake(book, scan=a_scan(f"user: {LONG}", "user: a coin")))["book#0"]
    assert said.startswith("+ key '/coin/' in message 2")
    assert "was given up in message 1: took more than 131,072 steps" in said


WORDS = ("xxy", "a coin", "nothing", LONG, "x" * 3000 + "!")


@settings(deadline=None, max_examples=up_to(25))
@given(
    lines=st.lists(st.sampled_from(WORDS), min_size=1, max_size=3),
    others=st.lists(st.sampled_from(WORDS), min_size=3, max_size=3),
    preset=st.sampled_from(["evennia_ai", "sillytavern"]),
)
def test_no_message_hides_a_regex_match_in_another(lines, others, preset):
    """A message with a match activates the entry, whatever the other messages contain."""
    book, rules = a_pattern_book(preset), rules_of(preset)
    scan = a_scan(*(f"user: {line}" for line in [*lines, *others[len(lines) :]]))
    result = awake(book, scan=scan, rules=rules)
    assert bool(texts(result)) == ("xxy" in [*lines, *others[len(lines) :]])
