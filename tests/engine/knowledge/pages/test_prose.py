"""Tests that code in a text becomes blanks, and that all lines keep their places."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.knowledge.pages.markup import blank_code


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a `b` c", "a     c"),
        ("a <!-- b\nc --> d", "a       \n      d"),
        ("<NoWiki>a</NOWIKI>b", " " * 18 + "b"),
        ("```\na\n```\nb", "   \n \n   \nb"),
        ("a `b", "a `b"),
        ("`a\nb`", "`a\nb`"),
        ("İ <code>x</code> y", "İ" + " " * 16 + "y"),
        ("", ""),
    ],
)
def test_code_in_a_page_text_is_replaced_by_blanks(text, shown):
    assert blank_code(text) == shown


@given(st.text(alphabet="ab`~<!->/codepr \n", max_size=100))
def test_code_replaced_by_blanks_keeps_its_lines(text):
    shown = blank_code(text)

    assert len(shown) == len(text)
    assert all(a == b or a == " " for a, b in zip(shown, text, strict=True))
