"""Tests of edits of one decorator line: all other lines stay as written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.lorebook.decorators import (
    parse_decorators,
    with_decorator_value,
    without_decorators,
)
from tests.effort import little_work


@pytest.mark.parametrize(
    ("content", "after"),
    [
        ("Lore.", "Lore."),
        ("@@depth 4\nLore.", "@@depth 9\nLore."),
        ("\n  @@depth   4  \r\n\r\nLore.", "\n@@depth 9\r\n\r\nLore."),
        ("@@app_only 1\n@@@depth 4\nLore.", "@@app_only 1\n@@@depth 9\nLore."),
        ("@@depth x\n@@depth 4\nLore.", "@@depth x\n@@depth 9\nLore."),
        ("@@role user\n@@@depth 4\n@@depth 4\nL", "@@role user\n@@@depth 4\n@@depth 9\nL"),
        ("@@depth 4", "@@depth 9"),
    ],
)
def test_changing_a_decorator_value_changes_the_line_that_applies(content, after):
    assert with_decorator_value(content, "depth", "9") == after


@pytest.mark.parametrize(
    ("content", "after"),
    [
        ("@@depth 4\nLore.", "Lore."),
        ("@@depth 4\n@@depth 5\nLore.", "Lore."),
        ("@@depth 4\n\n@@@app_only 1\n@@activate\nLore.", "@@activate\nLore."),
        ("@@app_only 1\n@@@depth 4\n@@@role user\nL", "@@app_only 1\n@@@role user\nL"),
        ("@@depth x\nLore.", "@@depth x\nLore."),
    ],
)
def test_removing_a_decorator_leaves_no_line_of_its_name_that_applies(content, after):
    assert without_decorators(content, ("depth",)) == after


@pytest.mark.long
def test_editing_thousands_of_decorator_lines_takes_bounded_time():
    content = "@@role user\n" * 5 + "@@@depth 4\n" * 9_000 + "@@depth 4\n" * 9_000 + "L"
    with little_work(30):
        with_decorator_value(content, "depth", "9")
        without_decorators("@@depth 4\n" * 9_000 + "L", ("depth", "role"))


LINES = st.lists(
    st.sampled_from(
        ["@@depth 3", "@@@depth 4", "@@role user", "@@nope", "@@@nope", "", "@@position after_desc"]
    ),
    max_size=8,
)


@given(LINES)
def test_editing_a_decorator_keeps_the_text_and_other_decorators(lines):
    content = "\n".join([*lines, "Lore."])
    changed = with_decorator_value(content, "depth", "9")
    others = [each for each in parse_decorators(content).decorators if each[0] != "depth"]
    assert [each for each in parse_decorators(changed).decorators if each[0] != "depth"] == others
    assert parse_decorators(changed).text == parse_decorators(content).text
    assert (
        parse_decorators(without_decorators(content, ("position", "depth"))).value("depth") is None
    )
