"""The page docs/build/history.md: its example of compaction runs, its tables match the code."""

import re
from dataclasses import fields
from pathlib import Path

from evennia_ai.engine.errors import RefusalReason
from evennia_ai.engine.history.compaction.planning import CompactionRules

ROOT = Path(__file__).resolve().parents[4]
GUIDE = (ROOT / "docs" / "build" / "history.md").read_text(encoding="utf-8")
SECTION = GUIDE.partition("## Pruning and compaction")[2].partition("\n## ")[0]


def rows() -> list[list[str]]:
    lines = [line for line in SECTION.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_compaction_guide_example_runs():
    (code,) = re.findall(r"^```python\n(.*?)^```$", SECTION, re.DOTALL | re.MULTILINE)
    exec(compile(code, "docs/build/history.md", "exec"), {})


def test_compaction_guide_lists_every_rule_with_its_default():
    told = {}
    for cells in rows():
        if len(cells) == 3:
            numbers = cells[1].replace(",000", "000").split(", ")
            told |= dict(zip(re.findall(r"`(\w+)`", cells[0]), map(int, numbers), strict=True))

    assert told == {field.name: field.default for field in fields(CompactionRules)}


def test_compaction_guide_lists_every_reason_to_refuse_a_summary():
    told = [cells[0].strip("`") for cells in rows() if len(cells) == 2]

    assert told == [reason.value for reason in RefusalReason]
