"""Entries of SillyTavern's world files."""

from typing import Any

import pytest

from evennia_ai.engine.lorebook.book import Lorebook
from evennia_ai.engine.lorebook.entry import Grouping, LoreEntry, Recursion, Timing
from evennia_ai.engine.prompt.conditions import (
    CHARACTER_NAME,
    CHARACTER_TAGS,
    GENERATION_KIND,
    Condition,
)
from evennia_ai.formats.lorebooks.books import read_book
from tests.engine.lorebook.builders import a_world_entry


def a_world(**fields: Any) -> Lorebook:
    return read_book({"entries": {"0": a_world_entry("Lore.", **fields)}})


def read(**fields: Any) -> LoreEntry:
    [entry] = a_world(**fields).entries
    return entry


def test_world_file_is_read():
    book = read_book(
        {
            "entries": {
                "3": a_world_entry("A.", uid=3, comment="a", order=20, position=1),
                "4": a_world_entry("B.", uid=4, position=4, depth=2, role=1),
                "5": a_world_entry("C.", position=4, role=None, depth=None),
                "6": a_world_entry("D.", disable=True, constant=True),
                "7": a_world_entry("E.", caseSensitive=True),
                "8": a_world_entry("F.", matchWholeWords=False, scanDepth=1),
            }
        },
        label="world",
    )
    by_uid = {entry.uid: entry for entry in book.entries}
    assert list(by_uid) == ["3", "4", "5", "6", "7", "8"]
    assert (by_uid["3"].position, by_uid["3"].order, by_uid["3"].name) == ("after", 20, "a")
    assert (by_uid["4"].depth, by_uid["4"].role) == (2, "user")
    assert (by_uid["5"].depth, by_uid["5"].role) == (4, "system")
    assert (by_uid["6"].enabled, by_uid["6"].constant) == (False, True)
    assert by_uid["7"].case_sensitive
    assert (by_uid["8"].scan_depth, by_uid["8"].match_whole_words) == (1, False)
    assert {entry.patterns for entry in book.entries} == {"by_form"}
    assert book.notices == ()


def test_almost_empty_entry_gets_the_defaults_of_sillytavern():
    [entry] = read_book({"entries": {"0": {"key": []}}}).entries
    assert (entry.position, entry.order, entry.chance, entry.logic) == ("before", 100, 100, "any")
    assert (entry.keys, entry.selective, entry.template.source) == ((), False, "")


@pytest.mark.parametrize(
    ("fields", "counts"), [({}, False), ({"selective": True}, True), ({"selective": False}, False)]
)
def test_secondary_keys_of_a_world_entry_are_used_only_when_selective(fields, counts):
    entry = read(keysecondary=["sea"], **fields)
    assert (entry.selective, entry.secondary_keys) == (counts, ("sea",))


@pytest.mark.parametrize(
    ("fields", "chance"),
    [
        ({"probability": 40, "useProbability": True}, 40),
        ({"probability": 40, "useProbability": False}, 100),
        ({"probability": 40, "useProbability": None}, 100),
        ({"probability": 40}, 100),
        ({"useProbability": True}, 100),
        ({"probability": 0, "useProbability": True}, 0),
    ],
)
def test_chance_of_a_world_entry_is_used_only_with_use_probability(fields, chance):
    assert read(**fields).chance == chance


@pytest.mark.parametrize(
    ("fields", "name", "value"),
    [
        ({"order": "20"}, "order", 20),
        ({"order": "20"}, "priority", 20),
        ({"order": None}, "order", 100),
        ({"selectiveLogic": 2}, "logic", "not_any"),
        ({"position": 5}, "position", "examples_before"),
        ({"position": 7, "outletName": "moods"}, "outlet", "moods"),
        ({"position": 0, "outletName": "moods"}, "outlet", ""),
        ({"position": 4, "depth": "6"}, "depth", 6),
        ({"scanDepth": None}, "scan_depth", None),
        ({"scanDepth": 0}, "scan_depth", 0),
        ({"ignoreBudget": True}, "ignore_budget", True),
        ({"constant": 1}, "constant", True),
        ({"excludeRecursion": True}, "recursion", Recursion(excluded=True)),
        ({"delayUntilRecursion": True}, "recursion", Recursion(delay_level=1)),
        ({"delayUntilRecursion": 3}, "recursion", Recursion(delay_level=3)),
        ({"sticky": "2", "delay": -1, "cooldown": 3.5}, "timing", Timing(sticky=2, cooldown=4)),
        (
            {"group": "a, b", "groupWeight": 20, "groupOverride": True, "useGroupScoring": True},
            "grouping",
            Grouping(names=("a", "b"), written="a, b", weight=20, preferred=True, scored=True),
        ),
        (
            {"matchPersonaDescription": True, "matchCharacterDepthPrompt": True},
            "sources",
            {"persona", "char_depth_prompt"},
        ),
        ({"vectorized": True}, "refused", None),
    ],
)
def test_sillytaverns_fields_of_a_world_entry_are_read(fields, name, value):
    assert getattr(read(**fields), name) == value


def test_character_filter_becomes_conditions_on_names_and_tags():
    entry = read(characterFilter={"isExclude": False, "names": ["Oren"], "tags": ["t1", "t2"]})
    assert entry.conditions == (
        Condition(fact=CHARACTER_NAME, test="is_any", values=("Oren",)),
        Condition(fact=CHARACTER_TAGS, test="has_any", values=("t1", "t2")),
    )


def test_excluding_character_filter_passes_when_the_character_is_unknown():
    entry = read(characterFilter={"isExclude": True, "names": ["Oren"], "tags": ["t1"]})
    assert entry.conditions == (
        Condition(fact=CHARACTER_NAME, test="is_none", values=("Oren",), kept_unknown=True),
        Condition(fact=CHARACTER_TAGS, test="has_none", values=("t1",), kept_unknown=True),
    )


@pytest.mark.parametrize("nothing", [None, {}, {"isExclude": True, "names": [], "tags": []}])
def test_empty_character_filter_gives_no_condition(nothing):
    assert read(characterFilter=nothing, triggers=[]).conditions == ()


def test_triggers_become_a_condition_on_the_kind_of_generation():
    [condition] = read(triggers=["normal", "swipe"]).conditions
    assert condition == Condition(
        fact=GENERATION_KIND, test="is_any", values=("normal", "swipe"), kept_unknown=True
    )


@pytest.mark.parametrize(
    ("fields", "notice"),
    [
        ({"selectiveLogic": 9}, "selectiveLogic 9 is unknown: 0 (any) is used"),
        ({"position": -1}, "position -1 is unknown: the usual place is used"),
        ({"role": 3}, "role 3 is unknown: 0 (system) is used"),
        ({"position": 7}, "position 7 (outlet) without an outletName: it is never placed"),
    ],
)
def test_unknown_number_of_sillytavern_gives_a_notice(fields, notice):
    book = a_world(**fields)
    assert book.notices == (f"entry 0: {notice}",)
    assert book.entries[0].refused is None


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"order": "first"}, "order must be a number: it is ignored"),
        ({"delayUntilRecursion": "x"}, "delayUntilRecursion must be a number: it is ignored"),
        ({"position": 1.5}, "position must be a whole number: it is ignored"),
        ({"position": "top"}, "position must be a number: it is ignored"),
        ({"role": "narrator"}, "role must be a number: it is ignored"),
        ({"disable": "no"}, "disable must be true or false: it is ignored"),
        ({"group": 7}, "group must be text: it is ignored"),
        ({"comment": []}, "comment must be text: it is ignored"),
        ({"triggers": {}}, "triggers must be a list of texts: it is ignored"),
        ({"characterFilter": {"names": 1}}, "characterFilter.names must be a list of texts"),
        ({"key": "coin"}, "key is one text: split at its commas"),
    ],
)
def test_notice_names_an_unreadable_field_as_in_the_file(fields, message):
    book = a_world(**fields)
    assert [told.removeprefix("entry 0: ")[: len(message)] for told in book.notices] == [message]
    assert book.entries[0].is_usable
