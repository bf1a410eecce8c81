"""Prose is a text without its code, every line where it was."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.knowledge.pages.markup import without_code


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
def test_code_is_blank(text, shown):
    assert without_code(text) == shown


@given(st.text(alphabet="ab`~<!->/codepr \n", max_size=100))
def test_every_line_stays_where_it_is(text):
    shown = without_code(text)

    assert len(shown) == len(text)
    assert all(a == b or a == " " for a, b in zip(shown, text, strict=True))
