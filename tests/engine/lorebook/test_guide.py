"""Tests of docs/build/lorebook.md: its example runs, and its tables are complete."""

import ast
import re
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest

from evennia_ai.engine.lorebook import decorators
from evennia_ai.engine.lorebook.entry import Position
from evennia_ai.engine.lorebook.rules import PresetFlags
from evennia_ai.formats.lorebooks.editing import lints

ROOT = Path(__file__).resolve().parents[3]
GUIDE = (ROOT / "docs" / "build" / "lorebook.md").read_text(encoding="utf-8")
LEDGER = GUIDE.split("\n## Ledger\n")[1]


def section(title):
    """Return the text below a heading of the guide."""
    return GUIDE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def first_cells(text):
    """Return the first cell of each table row in a text."""
    rows = re.findall(r"^\|(.+)\|$", text, re.MULTILINE)
    return [row.split(" | ")[0].strip() for row in rows if not set(row) <= set("|- ")]


def functions_of(path):
    """Return the names of all functions in a file."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_lorebook_guide_example_runs():
    [code] = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    exec(compile(code, "docs/build/lorebook.md", "exec"), {})


@pytest.mark.parametrize("named", sorted(set(re.findall(r"`(tests/[^`]+)`", GUIDE))))
def test_every_test_named_in_the_lorebook_feature_table_exists(named):
    path, _, name = named.partition("::")
    assert name in functions_of(path)


def test_every_row_of_the_lorebook_feature_table_has_a_test_or_a_reason():
    rows = re.findall(r"^\| (.+?) \| (done|refused) \| (.+) \|$", LEDGER, re.MULTILINE)
    assert len(rows) == len(first_cells(LEDGER)) - 2
    for feature, state, why in rows:
        assert len(why) > 20, feature
        if state == "done" and "statement" not in feature:
            assert "`tests/" in why, feature


def test_lorebook_guide_lists_every_preset_flag():
    told = [cell.strip("`") for cell in first_cells(section("Two presets"))[1:]]
    assert sorted(told) == sorted(field.name for field in fields(PresetFlags))


def test_lorebook_guide_lists_every_decorator():
    told = set(re.findall(r"@@(\w+)", section("Decorators")))
    assert told == decorators._WANTED.keys() | decorators._UNSUPPORTED.keys()


def test_lorebook_guide_lists_every_entry_position():
    told = section("Where an entry is placed")
    assert len(get_args(Position)) == 10
    assert [cell for cell in first_cells(told)[1:] if cell] == ["0", "1", "2, 3", "4", "5, 6", "7"]
    assert "anchor" in told
    assert "at_mention" in told


def test_lorebook_guide_lists_every_kind_of_lint_finding():
    source = Path(lints.__file__).read_text(encoding="utf-8")
    kinds = set(re.findall(r'(?:yield |kind=)"(\w+)"', source)) | {"double"}
    told = {kind for cell in first_cells(section("Lints"))[1:] for kind in re.findall(r"\w+", cell)}
    assert told == kinds
