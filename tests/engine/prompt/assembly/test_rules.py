"""Assembly rules read from settings: a preset, then overrides of single rules."""

from typing import Any

import pytest

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.prompt.assembly.rules import PLAIN, PRESETS, assembly_rules, read_assembly


def test_assembly_rules_are_the_engines_own_without_settings() -> None:
    assert read_assembly({}) is PLAIN
    assert PLAIN.changed == {}


def test_assembly_settings_override_their_preset() -> None:
    read = read_assembly({"rules": "sillytavern", "quote_user": True, "example_heading": ""})
    assert (read.ties, read.examples, read.quote_user) == ("role", "messages", True)
    assert (read.example_heading, read.scenario_format) == ("", "")


def test_lore_preset_decides_the_rule_ties_without_an_assembly_preset() -> None:
    read = read_assembly({"squash": True}, lore_rules="sillytavern")
    assert read.changed == {"ties": "role", "squash": True}
    own = read_assembly({"rules": "evennia_ai"}, lore_rules="sillytavern")
    assert own is PLAIN


def test_assembly_rules_are_restored_from_their_changes() -> None:
    rules = PRESETS["sillytavern"]
    assert assembly_rules(rules.changed) == rules
    assert assembly_rules({}) is PLAIN


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ([], "settings.assembly: must be an object"),
        ({"tie": "role"}, "settings.assembly: unknown setting tie; known are ties, examples,"),
        ({"ties": "order"}, "settings.assembly.ties: must be one of id, role, not 'order'"),
        ({"squash": 1}, "settings.assembly.squash: must be true or false, not 1"),
        ({"lore_format": "lore"}, "settings.assembly.lore_format: must be text of at most 20000"),
        ({"scenario_format": 3}, "must be text of at most 20000 characters, not 3"),
        ({"rules": "agnai"}, "settings.assembly.rules: must be one of evennia_ai, sillytavern"),
    ],
)
def test_invalid_assembly_rule_is_refused_with_a_reason(written: Any, told: str) -> None:
    with pytest.raises(FormatError) as wrong:
        read_assembly(written)
    assert told in str(wrong.value)
