"""What patterns may take in one text and in one turn, and what is said of those given up.

Issue 14, Low: a pattern that goes beyond its limit in one message is on again for the next.
"""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evennia_ai.lorebook.formats.books import read_book
from evennia_ai.lorebook.rules import read_rules
from evennia_ai.lorebook.scan.regex.pattern import (
    LIMIT_SECONDS,
    NO_TIME,
    TEXT_SECONDS,
    TURN_SECONDS,
    Patience,
    Pattern,
    SearchedText,
    read_pattern,
)
from evennia_ai.prompt.components import ALL_GRANTS
from tests.lorebook.builders import a_book, a_scan, a_world_entry, an_entry, awake, reasons, texts
from tests.properties import up_to

SLOW = "/(?:x+x+)+[yz]/"
LONG = "x" * 5000
PRESETS = pytest.mark.parametrize("preset", ["evennia_ai", "sillytavern"])


class Busy:
    """A search that matches at its number, after it kept the processor busy."""

    def __init__(self, number: int, seconds: float) -> None:
        self.number = number
        self.seconds = seconds
        self.asked = 0

    def prepare(self) -> None:
        """Nothing is to be made ready."""

    def __call__(self, text: str, seconds: float, /) -> tuple[int, int]:
        self.asked += 1
        until = time.thread_time() + self.seconds
        while time.thread_time() < until:
            pass
        return self.number, self.number + 1


def a_slow_pattern(number: int, *, seconds: float = TEXT_SECONDS) -> Pattern:
    return Pattern(f"/slow{number}/", literal="", search=Busy(number, seconds), sees_halves=False)


def a_pattern_book(preset: str, *, pattern: str = SLOW):
    if preset == "sillytavern":
        entry = a_world_entry("Smoke.", key=[pattern])
        return read_book({"entries": {"0": entry}}, label="book", grants=ALL_GRANTS)
    return a_book(an_entry("Smoke.", keys=[pattern], use_regex=True), grants=ALL_GRANTS)


def rules_of(preset: str):
    return read_rules({"rules": preset, "scan_depth": 4})


def test_patterns_are_searched_until_their_time_is_up():
    patterns = [a_slow_pattern(number) for number in range(3)]
    text = SearchedText("anything")
    assert [text.place(pattern) for pattern in patterns] == [(0, 1), None, None]
    assert text.given_up == dict.fromkeys(patterns[1:], NO_TIME)
    assert not text.is_whole


def test_a_search_that_goes_on_looks_for_what_had_no_time_and_nothing_else():
    patterns = [a_slow_pattern(number) for number in range(2)]
    text = SearchedText("anything")
    for pattern in patterns:
        text.place(pattern)
    text.go_on(seconds=TEXT_SECONDS)
    assert [text.place(pattern) for pattern in patterns] == [(0, 1), (1, 2)]
    assert text.is_whole
    assert [pattern._search.asked for pattern in patterns] == [1, 1]


def test_a_pattern_is_searched_once_in_a_text():
    slow = a_slow_pattern(5)
    text = SearchedText("anything")
    assert [text.place(slow), text.place(slow)] == [(5, 6), (5, 6)]
    assert text.is_whole


def test_a_pattern_beyond_its_limit_is_given_up_for_that_text_alone():
    pattern = read_pattern(SLOW)
    assert isinstance(pattern, Pattern)
    for _ in range(5):
        hostile = SearchedText(LONG)
        assert hostile.place(pattern) is None
        assert hostile.given_up == {pattern: f"took longer than {LIMIT_SECONDS * 1000:g} ms"}
        assert SearchedText("xxy").place(pattern) == (0, 3)


def test_all_messages_of_a_turn_have_less_than_a_second_together_however_many():
    patience = Patience()
    shares = [patience.with_message(age) for age in range(1000)]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) + TURN_SECONDS < 1
    assert patience.with_message(3) == TEXT_SECONDS


def test_books_share_the_time_of_a_turn():
    assert Patience(books=4).with_message(0) == TEXT_SECONDS / 4


def test_texts_that_are_no_messages_use_up_what_they_have_together():
    patience = Patience()
    for _ in range(10):
        with patience.with_text() as seconds:
            SearchedText("anything", seconds=seconds).place(a_slow_pattern(1))
    with patience.with_text() as seconds:
        assert seconds == 0


@pytest.mark.req("S3-11")
@PRESETS
def test_no_number_of_long_messages_switches_off_an_author_s_pattern(preset):
    book, rules = a_pattern_book(preset), rules_of(preset)
    for number in range(6):
        awake(book, scan=a_scan(f"user: {LONG}{number}"), rules=rules)
    assert texts(awake(book, scan=a_scan("user: xxy"), rules=rules)) == ["Smoke."]


@PRESETS
def test_a_pattern_is_found_beside_a_message_in_which_it_was_given_up(preset):
    book, rules = a_pattern_book(preset), rules_of(preset)
    scan = a_scan("user: xxy", f"user: {LONG}", event=f"Eve: {LONG}!")
    assert texts(awake(book, scan=scan, rules=rules)) == ["Smoke."]


@PRESETS
def test_a_very_long_message_does_not_push_others_out_of_sight(preset):
    book, rules = a_pattern_book(preset, pattern="/drag[o0]n/"), rules_of(preset)
    scan = a_scan("user: a dragon", "user: " + "word " * 5000)
    assert texts(awake(book, scan=scan, rules=rules)) == ["Smoke."]


@PRESETS
def test_the_verdict_says_in_which_message_a_pattern_was_given_up_and_why(preset):
    book, rules = a_pattern_book(preset), rules_of(preset)
    result = awake(book, scan=a_scan("user: hello", f"user: {LONG}"), rules=rules)
    assert reasons(result)["book#0"].endswith(
        f"; pattern '{SLOW}' was given up in message 2: took longer than 5 ms"
    )
    later = awake(book, scan=a_scan("user: hello"), rules=rules)
    assert "given up" not in reasons(later)["book#0"]


def test_an_entry_that_wakes_by_another_key_says_it_too():
    book = a_book(an_entry(keys=[SLOW, "/coin/"], use_regex=True), grants=ALL_GRANTS)
    said = reasons(awake(book, scan=a_scan(f"user: {LONG}", "user: a coin")))["book#0"]
    assert said.startswith("+ key '/coin/' in message 2")
    assert "was given up in message 1: took longer than 5 ms" in said


WORDS = ("xxy", "a coin", "nothing", LONG, "x" * 3000 + "!")


@settings(deadline=None, max_examples=up_to(25))
@given(
    lines=st.lists(st.sampled_from(WORDS), min_size=1, max_size=3),
    others=st.lists(st.sampled_from(WORDS), min_size=3, max_size=3),
    preset=st.sampled_from(["evennia_ai", "sillytavern"]),
)
def test_what_one_message_does_never_hides_what_another_has(lines, others, preset):
    """Whatever stands beside them, messages that wake an entry wake it."""
    book, rules = a_pattern_book(preset), rules_of(preset)
    scan = a_scan(*(f"user: {line}" for line in [*lines, *others[len(lines) :]]))
    result = awake(book, scan=scan, rules=rules)
    assert bool(texts(result)) == ("xxy" in [*lines, *others[len(lines) :]])
