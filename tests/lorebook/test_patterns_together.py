"""What the patterns of one book may take together, and what is said of those left out."""

import time

from evennia_ai.lorebook.patterns import Patience, Pattern, SearchedText
from evennia_ai.lorebook.patterns.together import LIMIT_SECONDS, MOST_CUT
from tests.lorebook.builders import a_book, a_scan, an_entry, awake, reasons


def a_slow_pattern(number: int, *, seconds: float = LIMIT_SECONDS) -> Pattern:
    """One that matches at its number, after it kept the processor busy."""

    def search(_: str) -> tuple[int, int]:
        until = time.thread_time() + seconds
        while time.thread_time() < until:
            pass
        return number, number + 1

    return Pattern(f"/slow{number}/", literal="", search=search, sees_halves=False)


def test_patterns_are_searched_until_their_time_is_up():
    patterns = [a_slow_pattern(number) for number in range(3)]
    text = SearchedText("anything", Patience(patterns))
    assert [text.place(pattern) for pattern in patterns] == [(0, 1), None, None]
    assert not text.is_whole
    assert [bool(pattern.trouble) for pattern in patterns] == [False, True, True]
    assert "took too long together" in patterns[1].trouble


def test_a_pattern_is_searched_once_in_a_text():
    slow = a_slow_pattern(5)
    text = SearchedText("anything", Patience([slow]))
    assert [text.place(slow), text.place(slow)] == [(5, 6), (5, 6)]
    assert text.is_whole


def test_patterns_that_take_too_long_again_and_again_are_switched_off():
    patterns = [a_slow_pattern(0, seconds=2 * LIMIT_SECONDS), a_slow_pattern(1, seconds=0)]
    patience = Patience(patterns)
    for number in range(MOST_CUT):
        text = SearchedText(f"text {number}", patience)
        assert text.place(patterns[0]) == (0, 1)
        text.place(patterns[1])
    assert SearchedText("one more", patience).place(patterns[0]) is None
    assert patience.troubles == 2
    assert "take longer than 50 ms together" in patterns[0].problem


def test_a_verdict_says_which_pattern_was_switched_off():
    book = a_book(an_entry(keys=["/(?:x+x+)+[yz]/"], use_regex=True))
    for number in range(3):
        result = awake(book, scan=a_scan(f"user: {'x' * 5000}{number}"))
    assert "pattern '/(?:x+x+)+[yz]/' took longer than 5 ms twice" in reasons(result)["book#0"]
