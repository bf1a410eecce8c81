"""Replacing what a regular expression matches: groups, limits, and letters of two units."""

import pytest

from evennia_ai.engine.lorebook.scan.regex.pattern import Refused
from evennia_ai.engine.lorebook.scan.regex.replacing import (
    MOST_RESULT,
    NotReplaced,
    Replaced,
    ReplacePattern,
    read_replace_pattern,
)


def a_pattern(body: str, flags: str = "g", groups: tuple[int | str, ...] = ()) -> ReplacePattern:
    found = read_replace_pattern(body, flags, frozenset(groups))
    assert isinstance(found, ReplacePattern)
    return found


@pytest.mark.parametrize(
    ("body", "groups", "text", "made"),
    [
        ("(?<a>\\w)(\\d)", ("a", 2), "x1 y2", "[x1][y2]"),
        ("(?<=x)(a)", (1,), "xaa", "[a]"),
        ("(x)|(y)", (1, 2), "xyz", "[x][y]"),
        ("b*", (), "abc", "[][][][]"),
        ("😀", (), "a😀b", "[]"),
        ("(.)\\1", (1,), "aabcc", "[a][c]"),
        ("(?!(a))b", (1,), "b", "[]"),
        ("(\\d)$", (1, 7), "12", "[2]"),
    ],
)
def test_groups_of_each_match_are_given_to_the_replacement(
    body: str, groups: tuple[int | str, ...], text: str, made: str
) -> None:
    told: list[str] = []
    a_pattern(body, groups=groups).replace(
        text, lambda group: told.append("".join(map(group, groups))) or ""
    )
    assert "".join(f"[{one}]" for one in told) == made


@pytest.mark.parametrize(
    ("body", "group", "reason"),
    [
        ("(?:(a)|(b))+", 1, "a replacement with group 1, which a repetition may clear"),
        ("(?<=(a))b", 1, "a replacement with group 1 of a lookbehind"),
        ("(", 0, "a ( that is never closed"),
        ("(?<a>x)(?<a>y)", 0, "two groups with the name"),
    ],
)
def test_pattern_is_refused_when_javascript_would_give_another_group(
    body: str, group: int, reason: str
) -> None:
    found = read_replace_pattern(body, "g", frozenset({group}))
    assert isinstance(found, Refused)
    assert reason in found.reason
    if group:
        assert isinstance(read_replace_pattern(body, "g", frozenset()), ReplacePattern)


def test_text_stays_when_the_search_is_slow_or_the_text_is_long() -> None:
    slow = a_pattern("(x+x+)+y").replace(f"{'x' * 40}z y", lambda _: "")
    assert isinstance(slow, NotReplaced)
    assert slow.steps == sum((1 << 9, 1 << 11, 1 << 13, 1 << 15, 1 << 17))
    long = a_pattern("a").replace("a" * 20_001, lambda _: "")
    assert isinstance(long, NotReplaced)
    grown = a_pattern("a").replace("a" * 100, lambda _: "y" * 1000)
    assert isinstance(grown, NotReplaced)
    assert f"{MOST_RESULT:,}" in grown.reason
    many = a_pattern("a").replace("a" * 100, lambda _: "", steps=5_000)
    assert isinstance(many, NotReplaced)
    assert many.steps <= 5_000


def test_text_without_the_required_literal_is_not_searched() -> None:
    assert a_pattern("<think>.*").replace("a thought", lambda _: "") == Replaced("a thought", 0, 0)


def test_half_of_a_letter_becomes_a_replacement_character() -> None:
    made = a_pattern(".", "").replace("😀b", lambda _: "x")
    assert isinstance(made, Replaced)
    assert made.text == "x\ufffdb"


def test_search_ends_after_the_last_place_of_the_required_literal() -> None:
    text = f"thoughts</think>{'word ' * 2_000}"
    made = a_pattern("[^]*</think>").replace(text, lambda _: "")
    assert isinstance(made, Replaced)
    assert made.text == "word " * 2_000
    behind = a_pattern("(?<=x)y*").replace("xyx", lambda _: "-")
    assert isinstance(behind, Replaced)
    assert behind.text == "x-x-"
