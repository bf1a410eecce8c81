"""docs/character-cards.md: every row of the card standard is there, and what it names is there."""

import ast
import json
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "character-cards.md"
LEDGER = PAGE.read_text(encoding="utf-8").split("\n## The standard, row by row\n")[1]
# The numbers of each group of the standard, in the order of the page.
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
        """What is said beside the names of tests."""
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
EACH = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)


@cache
def functions_of(path: str) -> frozenset[str]:
    """The names of the test functions in a file."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


@cache
def cases_of(path: str) -> frozenset[str]:
    """The names of the golden cases that a file of tests runs."""
    folder = (ROOT / path).parent
    if folder.name == "conformance":
        found = (folder / "ccv3").glob("*.json")
        return frozenset(json.loads(each.read_bytes())["id"] for each in found)
    return frozenset(
        case.get("name") or f"{each.stem}: {case['title']}"
        for each in (folder / "cases").glob("*.yaml")
        for case in yaml.safe_load(each.read_text(encoding="utf-8"))
    )


def test_every_row_of_the_standard_is_there_once_and_no_other() -> None:
    assert len(IDS) == 219
    assert Counter(row.id for row in ROWS) == Counter(IDS)


@EACH
def test_a_row_says_what_is_asked_how_strongly_and_how_it_stands(row: Row) -> None:
    assert row.requirement
    assert all(LEVEL.fullmatch(level) for level in row.level.split(", "))
    assert row.state in STATES


@EACH
def test_the_files_that_a_row_names_are_there(row: Row) -> None:
    assert [name for name in row.modules if not (ROOT / "evennia_ai" / name).exists()] == []
    assert row.modules or (row.where == "-" and row.state == "not applicable")


@EACH
def test_the_tests_that_a_row_names_are_there(row: Row) -> None:
    named = TEST.findall(row.shown)
    assert row.shown.count("tests/") == len(named)
    for path, name, case in named:
        assert name in functions_of(path)
        assert not case or case in cases_of(path)


@EACH
def test_what_is_done_is_shown_by_a_test_and_what_is_not_has_a_reason(row: Row) -> None:
    if row.state in ("done", "partly"):
        assert TEST.search(row.shown)
    if row.state != "done":
        assert len(row.reason) > 20
