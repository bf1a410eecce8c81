"""Test that docs/extend/requirements.md agrees with the tests."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
LEDGER = ROOT / "docs" / "extend" / "requirements.md"
ROW = re.compile(r"\| (?P<id>S\d-\d\d) \| .+ \| (?P<module>.+) \| (?P<state>.+) \|")


def _states() -> dict[str, str]:
    rows = [m for line in LEDGER.read_text(encoding="utf-8").splitlines() if (m := ROW.match(line))]
    return {row["id"]: row["state"] for row in rows}


def _cited(source: str) -> Iterator[str]:
    """Return every id given to `pytest.mark.req(...)` in `source`."""
    if "mark.req" not in source:
        return
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Attribute(attr="req", value=ast.Attribute(attr="mark"))):
                words = [word for word in node.args if not isinstance(word, ast.Starred)]
                yield from (str(ast.literal_eval(word)) for word in words)


def _cited_by_cases(source: str) -> Iterator[str]:
    """Return every id that golden cases cite."""
    for case in yaml.safe_load(source):
        yield from case.get("req", ())


@cache
def _cited_in_tests() -> dict[str, list[str]]:
    """Return the ids cited in the tests, and in which files."""
    found: dict[str, list[str]] = {}
    for pattern, cited in (("test_*.py", _cited), ("cases/*.yaml", _cited_by_cases)):
        for path in sorted((ROOT / "tests").rglob(pattern)):
            for requirement in cited(path.read_text(encoding="utf-8")):
                found.setdefault(requirement, []).append(path.name)
    return found


def test_every_met_requirement_is_cited_by_a_test():
    met = {requirement for requirement, state in _states().items() if state == "met"}

    assert sorted(met - set(_cited_in_tests())) == []


def test_every_cited_requirement_is_in_the_ledger():
    known = _states()

    assert {i: files for i, files in _cited_in_tests().items() if i not in known} == {}


def test_every_open_requirement_has_a_reason():
    assert [i for i, state in _states().items() if not re.match(r"met$|open: \w", state)] == []


def test_ledger_has_every_requirement_of_the_five_documents():
    counts = {"S0": 58, "S1": 12, "S2": 32, "S3": 35, "S4": 55}

    assert list(_states()) == [
        f"{s}-{n:02}" for s, last in counts.items() for n in range(1, last + 1)
    ]


@pytest.mark.parametrize(
    ("source", "ids"),
    [
        ('@pytest.mark.req("S3-05", "S3-06")\ndef test_x(): ...', ["S3-05", "S3-06"]),
        ('pytestmark = [pytest.mark.req("S0-01")]', ["S0-01"]),
        ('pytest.param(1, marks=pytest.mark.req("S2-01"))', ["S2-01"]),
        ("# pytest.mark.req('S3-05')\n@pytest.mark.server\ndef test_x(): ...", []),
    ],
)
def test_citations_are_read_from_marks_anywhere(source, ids):
    assert list(_cited(source)) == ids
