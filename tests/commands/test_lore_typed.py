"""Parsing of what builders type in `lore`."""

import pytest

from tests.effort import little_work

KEYS = {
    "a, b": ["a", "b"],
    ",, a ,": ["a"],
    "/c,d/i, e f": ["/c,d/i", "e f"],
    "a : b, c": ["a : b", "c"],
    "/x": ["/x"],
    "/a/b/c, d": ["/a/b/c", "d"],
    "/a\\/b,c/ , d": ["/a\\/b,c/", "d"],
    "off": [],
    "": [],
}
CONTENTS = {
    "ferry, boat: It sails: now.": (["ferry", "boat"], "It sails: now."),
    "/a:b,c/i : text": (["/a:b,c/i"], "text"),
    ": text": ([], "text"),
    "ferry": (["ferry"], ""),
    "": ([], ""),
}
SECONDARY = {
    "not any a, b": {"logic": "not_any", "secondary_keys": ["a", "b"]},
    "NOT  ALL: a": {"logic": "not_all", "secondary_keys": ["a"]},
    "any": {"logic": "any"},
    "anyone, b": {"secondary_keys": ["anyone", "b"]},
    "off": {"secondary_keys": []},
}


@pytest.fixture
def typed(stage):
    from evennia_ai.formats.lorebooks.editing import typed

    return typed


def test_commas_separate_keys_except_inside_a_pattern(typed):
    assert {text: typed.parse_keys(text) for text in KEYS} == KEYS


def test_the_first_colon_outside_a_pattern_begins_the_content(typed):
    assert {text: typed.parse_keys_and_content(text) for text in CONTENTS} == CONTENTS


def test_logic_is_read_before_secondary_keys(typed):
    assert {text: typed.parse_secondary_keys(text) for text in SECONDARY} == SECONDARY


@pytest.mark.parametrize(
    "text", ["/" * 100_000, "/" + "a" * 100_000, " " * 100_000, "/\\" * 50_000]
)
def test_long_hostile_text_is_parsed_quickly(typed, text):
    with little_work():
        typed.parse_keys(text)
        typed.parse_keys_and_content(text)
        typed.parse_secondary_keys(text)


def test_conditions_are_read_with_their_numbers_and_flags(typed):
    told = typed.parse_questions(
        "time.hour at_least 18; room.lit is_any true, no; npc.key is_none Oren"
    )
    assert [(one["fact"], one["values"]) for one in told] == [
        ("time.hour", [18]),
        ("room.lit", [True, "no"]),
        ("npc.key", ["Oren"]),
    ]


def test_keys_between_slashes_make_the_entry_use_patterns(typed):
    given = {"keys": ["skate", "/sk(ates|iing)/i"]}
    assert typed.with_patterns(given) == {**given, "patterns": "by_form"}
    assert typed.with_patterns({"keys": ["skate"]}) == {"keys": ["skate"]}
    assert typed.with_patterns({"secondary_keys": ["/a/"]})["patterns"] == "by_form"
