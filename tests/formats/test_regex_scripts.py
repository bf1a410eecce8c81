"""Regex scripts in files: lenient reading, edits that keep the rest, and lints."""

import json
from typing import Any

import pytest

from evennia_ai.engine.errors import FormatError
from evennia_ai.formats.cards.card import read_card
from evennia_ai.formats.cards.exporting import dump_card
from evennia_ai.formats.presets.export import dump_preset
from evennia_ai.formats.presets.lints import lint_preset
from evennia_ai.formats.presets.reading import read_preset
from evennia_ai.formats.regex_scripts import (
    MOST_CHARACTERS,
    lint_script,
    new_script,
    preset_scripts,
    read_script_file,
    read_scripts,
    running_scripts,
    with_field,
    with_preset_scripts,
)

RAW: dict[str, Any] = {**new_script("cut"), "findRegex": "/x/g", "of_tomorrow": [1]}


def lints(**members: Any) -> list[str]:
    [read] = read_scripts([{**RAW, **members}])
    return [finding.kind for finding in lint_script(read)]


@pytest.mark.parametrize(
    ("member", "value", "field", "wanted", "has_notice"),
    [
        ("minDepth", "4", "min_depth", 4, False),
        ("minDepth", 4.0, "min_depth", 4, False),
        ("maxDepth", "deep", "max_depth", None, True),
        ("trimStrings", None, "trim", (), False),
        ("trimStrings", "x", "trim", (), True),
        ("placement", None, "placement", (), False),
        ("placement", [1, 99], "placement", (1, 99), False),
        ("substituteRegex", True, "fills_find", 1, False),
        ("substituteRegex", 7, "fills_find", 0, True),
        ("disabled", "yes", "disabled", True, False),
        ("replaceString", 5, "replacement", "", True),
        ("findRegex", None, "find", "", False),
    ],
)
def test_odd_value_gets_its_default_and_the_other_fields_stay(
    member: str, value: Any, field: str, wanted: Any, has_notice: bool
) -> None:
    [read] = read_scripts([{**RAW, member: value}])
    assert getattr(read.file, field) == wanted
    assert [member in notice for notice in read.notices] == [True] * has_notice
    assert read.name == "cut"


def test_scripts_of_a_list_get_different_names_and_other_items_are_left_out() -> None:
    named = read_scripts([RAW, 7, RAW, {"scriptName": "a=b\n c"}, {}])
    assert [one.name for one in named] == ["cut", "cut #2", "a-b c", "script"]
    assert running_scripts([{**RAW, "disabled": True}, {**RAW, "findRegex": ""}], "game") == ()


def test_old_placements_mean_what_sillytavern_makes_of_them() -> None:
    [old, send_as] = read_scripts([{**RAW, "placement": [0]}, {**RAW, "placement": [4]}])
    engine = old.for_engine("game")
    assert (engine.prompt_only, engine.display_only, len(engine.placements)) == (True, True, 5)
    assert send_as.placements == ("slash_command",)


@pytest.mark.parametrize(
    ("members", "kinds"),
    [
        ({}, []),
        ({"findRegex": "/(/"}, ["regex"]),
        ({"findRegex": "/[\\s\\S]*/"}, ["broad"]),
        ({"findRegex": "/x/gv"}, ["flags"]),
        ({"replaceString": "$1 $<n>"}, ["group"]),
        ({"placement": [2, 9]}, ["placement"]),
        ({"placement": [2, 6]}, ["placement"]),
        ({"placement": [3]}, ["never"]),
        ({"placement": []}, ["never"]),
        ({"placement": [5], "promptOnly": False}, ["never"]),
        ({"minDepth": 2}, ["cache"]),
        ({"minDepth": 2, "promptOnly": False}, ["depth"]),
        ({"minDepth": 5, "maxDepth": 2}, ["never", "cache"]),
        ({"minDepth": 1, "promptOnly": False, "markdownOnly": True}, ["never"]),
        ({"promptOnly": False, "replaceString": "<b>$0</b>"}, ["html"]),
        ({"minDepth": -1, "maxDepth": -1}, []),
    ],
)
def test_lint_finds_what_an_author_should_know(members: Any, kinds: list[str]) -> None:
    assert lints(**members) == kinds


def test_edit_changes_one_member_and_keeps_all_others() -> None:
    for word, typed, member, wanted in (
        ("find", "/y/i", "findRegex", "/y/i"),
        ("placement", "user-input world_info", "placement", [1, 5]),
        ("macros", "escaped", "substituteRegex", 2),
        ("Max Depth", "none", "maxDepth", None),
        ("trim", "a\nb", "trimStrings", ["a", "b"]),
        ("display-only", "on", "markdownOnly", True),
    ):
        assert with_field(RAW, word, typed) == {**RAW, member: wanted}
    for word, typed in (
        ("find", "/(/"),
        ("name", " "),
        ("x", "1"),
        ("replace", "y" * MOST_CHARACTERS),
    ):
        with pytest.raises(FormatError):
            with_field(RAW, word, typed)


def test_card_and_preset_keep_their_scripts_in_an_export() -> None:
    odd = [RAW, 7, {"findRegex": 5}, {**RAW, "minDepth": "x"}]
    source = {"prompts": [], "extensions": {"regex_scripts": odd, "x": 1}, "temperature": 1}
    preset = read_preset(source, name="p")
    assert json.loads(dump_preset(preset)) == source
    assert preset_scripts(preset.source) == odd
    assert with_preset_scripts(source, [RAW])["extensions"] == {"regex_scripts": [RAW], "x": 1}
    top = {"prompts": [], "regex_scripts": [RAW]}
    assert with_preset_scripts(top, []) == {"prompts": [], "regex_scripts": []}
    deep = {"prompts": [], "extensions": {"regex_scripts": [{**RAW, "minDepth": 2}]}}
    assert any("a provider" in str(one) for one in lint_preset(read_preset(deep, name="p")))
    data = {"name": "Mira", "extensions": {"regex_scripts": odd}}
    card = read_card({"spec": "chara_card_v2", "spec_version": "2.0", "data": data})
    assert (
        json.loads(dump_card(card, "v3", modified_at=1))["data"]["extensions"]["regex_scripts"]
        == odd
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "JSON"),
        ("[]", "has no regex script"),
        ('{"a": 1}', "has no regex script"),
        ('[{"findRegex": "x"}, 5]', "has no regex script"),
        (b"\xff\xfe", "UTF-8"),
        (json.dumps([{"findRegex": "x"}] * 501), "more than 500"),
        (json.dumps({"findRegex": "x" * MOST_CHARACTERS}), "characters"),
    ],
)
def test_file_without_scripts_is_refused_with_the_reason(text: Any, problem: str) -> None:
    with pytest.raises(FormatError, match=problem):
        read_script_file(text, where="a.json")


def test_file_of_one_script_or_of_several_is_read() -> None:
    assert read_script_file(json.dumps(RAW), where="a") == (RAW,)
    assert read_script_file(json.dumps([RAW, RAW]).encode(), where="a") == (RAW, RAW)
