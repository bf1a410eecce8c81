"""Untrusted text on a screen: escapes, widths in columns, wrapping."""

import pytest

from evennia_ai.engine.text.columns import (
    clip_text,
    count_columns,
    escape_controls,
    first_line,
    pad_text,
    wrap_hanging,
    wrap_text,
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
def test_control_and_invisible_characters_are_escaped(text, shown):
    assert escape_controls(text) == shown


def test_too_many_accents_on_one_letter_are_cut():
    assert escape_controls("q" + "\u0301" * 9_000) == "q" + "\u0301" * 6 + "(8994 marks more)"
    assert escape_controls("o\u0302\u0301 q\u0323\u0307") == "o\u0302\u0301 q\u0323\u0307"


def test_screen_columns_count_wide_letters_twice_and_accents_not():
    assert (count_columns("ab"), count_columns("水"), count_columns("e\u0301")) == (2, 2, 1)


def test_text_is_clipped_by_columns():
    assert clip_text("水水水水", 7) == "水水..."
    assert pad_text("水", 4) == "水  "


def test_long_text_is_wrapped_at_words():
    assert wrap_text("one two three", 7) == ["one two", "three"]
    assert wrap_text("", 7) == [""]


def test_hanging_lines_are_indented_and_lose_no_word() -> None:
    assert wrap_hanging("  one two three four", 14) == ["  one two", "      three", "      four"]
    assert wrap_hanging("  one", 14) == ["  one"]
    assert wrap_hanging("", 14) == [""]


def test_first_line_skips_blank_lines():
    assert first_line("\n  \n said \nmore") == "said"
