"""The tables of lore settings and assembly rules in the documentation match the presets."""

import re
from dataclasses import fields
from pathlib import Path

import yaml

from evennia_ai.engine.lorebook.rules import PRESETS, read_rules
from evennia_ai.engine.prompt.assembly import rules as assembly

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "scenarios.md"
KNOWN = (
    *("scan_depth", "recursive", "max_recursion_steps", "case_sensitive", "match_whole_words"),
    *("include_names", "budget_percent", "budget_tokens", "overflow", "min_activations"),
    *("min_activations_depth_max", "group_scoring", "strategy", "dice", "dry_run", "clock"),
    *("speaker_share_percent", "speaker_matches", "most_woken"),
)


def documented() -> dict[str, dict[str, object]]:
    """Return the settings in a documented table by preset, as the page writes them."""
    page = PAGE.read_text(encoding="utf-8")
    table = page.split("chooses a set of default values")[1].split("\n\n")[1]
    told: dict[str, dict[str, object]] = {preset: {} for preset in PRESETS}
    for row in table.splitlines()[2:]:
        names, ours, theirs, _ = (cell.strip() for cell in row.strip("|").split(" | ", 3))
        values = {"evennia_ai": ours, "sillytavern": ours if theirs == "the same" else theirs}
        for preset, cell in values.items():
            found = yaml.safe_load(f"[{cell.replace('`', '')}]")
            told[preset].update(zip(re.findall(r"`(\w+)`", names), found, strict=True))
    return told


def test_documented_lore_settings_equal_the_presets() -> None:
    told = documented()
    for preset in PRESETS:
        rules = read_rules({"rules": preset})
        assert told[preset] == {name: getattr(rules, name) for name in KNOWN}


def test_documented_assembly_rules_equal_the_presets() -> None:
    page = PAGE.read_text(encoding="utf-8").split("## Putting a prompt together")[1]
    rows = page.split("\n\n")[2].splitlines()[2:]
    told: dict[str, dict[str, object]] = {preset: {} for preset in assembly.PRESETS}
    for row in rows:
        name, ours, theirs, _ = (cell.strip() for cell in row.strip("|").split(" | ", 3))
        values = {"evennia_ai": ours, "sillytavern": ours if theirs == "the same" else theirs}
        for preset, cell in values.items():
            text = cell.strip("`") if cell.startswith("`") else yaml.safe_load(cell)
            told[preset][name.strip("`")] = "" if text == '""' else text
    for preset, rules in assembly.PRESETS.items():
        assert told[preset] == {one.name: getattr(rules, one.name) for one in fields(rules)}
