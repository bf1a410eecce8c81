"""Test that the reference pages have every setting, command, component and scenario key."""

import ast
import re
from collections.abc import Mapping

import pytest

from docs.generated import FIRST_SETTINGS, PARTS, with_generated
from evennia_ai.commands.cmdset import AICmdSet
from evennia_ai.engine.prompt.components import ALLOWS, PLUGGABLE_IDS, STATIC_COMPONENTS
from evennia_ai.formats.scenario.parts import FIELDS
from evennia_ai.services.settings.game import SETTINGS
from tests.docs.fences import PAGES

MARKS: Mapping[str, str] = {
    "first_settings": "settings.md",
    "advanced_settings": "settings.md",
    "commands": "commands.md",
    "components": "components.md",
    "scenario_keys": "scenario-keys.md",
}
CELL = re.compile(r"^\| `(\w+)` \|", re.MULTILINE)


@pytest.mark.parametrize("part", PARTS)
def test_reference_page_has_its_generated_part_in_place_of_the_mark(part: str) -> None:
    page = (PAGES / "reference" / MARKS[part]).read_text(encoding="utf-8")
    built = with_generated(page)
    assert PARTS[part]() in built
    assert "<!-- generated" not in built


def test_settings_table_has_each_setting_with_default_text_and_check() -> None:
    tables = PARTS["first_settings"]() + "\n" + PARTS["advanced_settings"]()
    rows = re.findall(r"^\| `(\w+)` \| `(.*?)` \| (.+) \| (E\d+) \|$", tables, re.M)
    found = {name: (ast.literal_eval(default), check) for name, default, _, check in rows}
    assert found == {one.full_name: (one.default, one.id) for one in SETTINGS.values()}
    assert all(text.strip() for _, _, text, _ in rows)


def test_settings_page_has_ten_first_settings() -> None:
    assert len(set(FIRST_SETTINGS)) == 10
    assert set(FIRST_SETTINGS) <= set(SETTINGS)


def test_commands_page_has_each_command_with_its_switches_and_its_lock() -> None:
    section = re.compile(r"^## ([a-z ]+)\n(.*?)(?=^## |\Z)", re.M | re.S)
    sections = dict(section.findall(PARTS["commands"]()))
    commands = {str(one.key).strip(): one for one in AICmdSet().commands}
    assert set(sections) == set(commands)
    for key, command in commands.items():
        line = re.search(r"^Switches: (.*)\.$", sections[key], re.M)
        assert line
        assert re.findall(r"`([^`]+)`", line[1]) == [verb for verb in command.verbs if verb]
        assert f"Lock: `{command.locks}`." in sections[key]
        assert "Usage:" in sections[key]


def test_components_page_has_each_component_and_grant() -> None:
    page = PARTS["components"]()
    for one in STATIC_COMPONENTS:
        assert f"| {one.id} | `{one.key}` | {one.role} | {one.description} |" in page
    for key, number in PLUGGABLE_IDS.items():
        assert f"| {number} | `{key}` |" in page
    assert set(FIELDS) - {"scope"} <= set(CELL.findall(page))
    assert set(ALLOWS) <= set(CELL.findall(page))


def test_scenario_page_says_of_each_key_what_its_value_must_be() -> None:
    page = PARTS["scenario_keys"]()
    known = {
        "card",
        "turns",
        "seed",
        "attach",
        "depth",
        "every",
        "role",
        "content",
        "dynamic_context",
    }
    assert known <= set(CELL.findall(page))
    assert "| `layout` | one of cache, classic | `cache` |" in page
    assert "| `lore` | a mapping | empty |" in page
