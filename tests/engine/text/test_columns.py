"""What of a stranger's text reaches a screen, and how many columns it takes there."""

import pytest

from evennia_ai.engine.text.columns import (
    clipped,
    columns,
    first_line,
    hanging,
    padded,
    visible,
    wrapped,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31mb", r"a\x1b[31mb"),
        ("a\nb", r"a\x0ab"),
        ("a\u202eb", r"a\u202eb"),
        ("a\u200bb", r"a\u200bb"),
        ("Or\u00aden", r"Or\xaden"),
        ("Or\u3164en", r"Or\u3164en"),
        ("a\U000e0041", r"a\U000e0041"),
        ("\ud800", r"\ud800"),
        ("émile ñ", "émile ñ"),
        ("\u2764\ufe0f", "\u2764\ufe0f"),
    ],
)
def test_what_acts_or_is_not_seen_is_an_escape(text, shown):
    assert visible(text) == shown


def test_no_letter_has_more_accents_than_writing_has():
    assert visible("q" + "\u0301" * 9_000) == "q" + "\u0301" * 6 + "(8994 marks more)"
    assert visible("o\u0302\u0301 q\u0323\u0307") == "o\u0302\u0301 q\u0323\u0307"


def test_a_wide_letter_takes_two_columns_and_an_accent_none():
    assert (columns("ab"), columns("水"), columns("e\u0301")) == (2, 2, 1)


def test_a_text_is_cut_to_columns_not_to_letters():
    assert clipped("水水水水", 7) == "水水..."
    assert padded("水", 4) == "水  "


def test_a_long_text_is_broken_at_words():
    assert wrapped("one two three", 7) == ["one two", "three"]
    assert wrapped("", 7) == [""]


def test_what_hangs_stands_further_in_and_loses_no_word() -> None:
    assert hanging("  one two three four", 14) == ["  one two", "      three", "      four"]
    assert hanging("  one", 14) == ["  one"]
    assert hanging("", 14) == [""]


def test_the_first_line_is_the_first_that_says_something():
    assert first_line("\n  \n said \nmore") == "said"
