"""Test that docs/reference/card-standard.md has every row, and names only what exists."""

import ast
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from tests.conformance.card_cases import CASES

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "card-standard.md"
LEDGER = PAGE.read_text(encoding="utf-8")
# The rows of each group of the standard, in the order of the page.
GROUPS = {
    "SEED": range(1, 8),
    "GEN": range(1, 6),
    "PNG": range(1, 16),
    "JSON": range(1, 4),
    "CHX": range(1, 14),
    "SPEC": range(1, 6),
    "CARD": range(1, 23),
    "AST": range(1, 13),
    "BOOK": range(1, 8),
    "ENT": range(1, 20),
    "DECO": (*range(1, 12), *range(21, 39), *range(40, 50)),
    "CBS": range(1, 14),
    "V2": range(1, 10),
    "V1": range(1, 4),
    "EXP": range(1, 7),
    "LB3": range(1, 2),
    "SEC": range(1, 12),
    "IMP": range(1, 8),
    "AMB": range(1, 23),
}
IDS = [f"CC3-{group}-{number:02}" for group, numbers in GROUPS.items() for number in numbers]
LEVEL = re.compile(r"(?:MUST|SHOULD|MUST NOT|SHOULD NOT|MAY|DEF|SEED|OWN|-)")
STATES = ("done", "partly", "refused", "not applicable")
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)(?:\[([^`]+)\])?`")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    id: str
    requirement: str
    level: str
    state: str
    where: str
    shown: str

    @property
    def modules(self) -> list[str]:
        return re.findall(r"`([^`]+)`", self.where)

    @property
    def reason(self) -> str:
        """Return the text of a cell that is not a name of a test."""
        return TEST.sub("", self.shown).strip(" ,;:")


def rows() -> list[Row]:
    found = []
    for line in LEDGER.splitlines():
        if line.startswith("| CC3-"):
            names = ("id", "requirement", "level", "state", "where", "shown")
            cells = line.removeprefix("| ").removesuffix(" |").split(" | ")
            found.append(Row(**dict(zip(names, cells, strict=True))))
    return found


ROWS = rows()


@cache
def functions_of(path: str) -> frozenset[str]:
    """Return the names of the test functions in a file."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


@cache
def cases_of(path: str) -> frozenset[str]:
    """Return the names of the golden cases that a test file runs."""
    folder = (ROOT / path).parent
    if folder.name == "conformance":
        return frozenset(CASES)
    return frozenset(
        case.get("name") or f"{each.stem}: {case['title']}"
        for each in (folder / "cases").glob("*.yaml")
        for case in yaml.safe_load(each.read_text(encoding="utf-8"))
    )


def test_card_ledger_has_each_row_of_the_standard_exactly_once() -> None:
    assert len(IDS) == 219
    assert Counter(row.id for row in ROWS) == Counter(IDS)


def test_card_ledger_row_has_demand_strength_and_status() -> None:
    assert [row.id for row in ROWS if not row.requirement] == []
    assert [row.id for row in ROWS if row.state not in STATES] == []
    levels = [(row.id, level) for row in ROWS for level in row.level.split(", ")]
    assert [(id_, level) for id_, level in levels if not LEVEL.fullmatch(level)] == []


def test_card_ledger_names_existing_files() -> None:
    named = [(row.id, name) for row in ROWS for name in row.modules]
    assert [pair for pair in named if not (ROOT / "evennia_ai" / pair[1]).exists()] == []
    without = [row for row in ROWS if not row.modules]
    assert [row.id for row in without if (row.where, row.state) != ("-", "not applicable")] == []


def test_card_ledger_names_existing_tests() -> None:
    named = [(row.id, *test) for row in ROWS for test in TEST.findall(row.shown)]
    assert [
        row.id for row in ROWS if row.shown.count("tests/") != len(TEST.findall(row.shown))
    ] == []
    assert [test for test in named if test[2] not in functions_of(test[1])] == []
    assert [test for test in named if test[3] and test[3] not in cases_of(test[1])] == []


def test_card_ledger_row_names_a_test_if_done_and_a_reason_if_not() -> None:
    built = [row for row in ROWS if row.state in ("done", "partly")]
    assert [row.id for row in built if not TEST.search(row.shown)] == []
    lacking = [row for row in ROWS if row.state != "done"]
    assert [row.id for row in lacking if len(row.reason) <= 20] == []
