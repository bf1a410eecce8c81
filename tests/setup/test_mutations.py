"""Test that the table of mutations can be applied, and that its runner judges rows correctly."""

import ast
import os
import re
import sys
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from tests.mutations import __main__ as runner
from tests.mutations import judging
from tests.mutations.breaking import break_by, break_living
from tests.mutations.children import ChildError, each
from tests.mutations.table import ROOT, Mutation, TableError, mutations

ROWS = mutations()
LEDGER = (ROOT / "docs" / "extend" / "requirements.md").read_text(encoding="utf-8")
MET = frozenset(re.findall(r"^\| (S\d-\d\d) \|.*\| met \|$", LEDGER, flags=re.MULTILINE))


def a_mutation(**fields) -> Mutation:
    usual = {"req": "S0-01", "title": "a test", "file": "x.py", "text": "2", "becomes": "3"}
    return Mutation(**{**usual, **fields})


@cache
def as_it_is(path: Path) -> str:
    """Return the content of a file without comments and blank lines."""
    return ast.dump(ast.parse(path.read_text("utf-8")))


@pytest.mark.long
def test_mutated_text_is_unique_in_its_file_and_leaves_valid_code():
    problems = {}
    for row in ROWS:
        try:
            if ast.dump(ast.parse(row.source())) == as_it_is(row.path):
                problems[str(row)] = "changes nothing"
        except (TableError, SyntaxError) as error:
            problems[str(row)] = str(error)

    assert problems == {}


def test_first_test_file_of_a_row_exists():
    named = {row.first.partition("::")[0] for row in ROWS if row.first}

    assert named
    assert [name for name in sorted(named) if not (ROOT / name).is_file()] == []


def test_mirrored_test_file_is_tried_first_among_equally_long_ones():
    row = a_mutation(file="store/history/turns.py")
    tests = [
        *((2, "tests/npc/test_a.py::x"), (2, "tests/store/history/test_a.py::x")),
        *((2, "tests/store/history/test_turns.py::x"), (0, "tests/engine/prompt/test_a.py::x")),
    ]

    asked = [node.partition("::")[0] for _, node in judging.in_order(tests, row)]
    assert asked == [
        *("tests/engine/prompt/test_a.py", "tests/store/history/test_turns.py"),
        *("tests/store/history/test_a.py", "tests/npc/test_a.py"),
    ]
    first = replace(row, first="tests/npc/test_a.py")
    assert judging.in_order(tests, first)[0] == tests[0]


def test_every_row_breaks_a_met_requirement():
    assert [str(row) for row in ROWS if row.req not in MET] == []


def never_broken(rows: list[Mutation]) -> list[str]:
    """Return the requirements that are met and that none of these rows breaks."""
    return sorted(MET - {row.req for row in rows})


def test_every_met_requirement_is_broken_by_a_row():
    assert never_broken(ROWS) == []


@pytest.mark.parametrize("requirement", ["S0-01", "S4-41"])
def test_requirement_that_loses_its_last_row_is_named(requirement):
    assert never_broken([row for row in ROWS if row.req != requirement]) == [requirement]


def test_no_mutation_is_listed_twice():
    counts = Counter((row.req, row.file, row.text, row.becomes) for row in ROWS)

    assert [row for row, count in counts.items() if count > 1] == []


@pytest.fixture
def in_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that replaces the package."""
    monkeypatch.setattr("tests.mutations.table.PACKAGE", tmp_path)
    return tmp_path


@pytest.mark.parametrize(("source", "times"), [("x = 1\n", 0), ("x = 2 + 2\n", 2)])
def test_text_that_is_missing_or_not_unique_is_an_error_with_its_name(in_package, source, times):
    (in_package / "x.py").write_text(source)

    with pytest.raises(TableError, match=rf"S0-01 a test: '2' .* evennia_ai/x.py {times} times"):
        a_mutation().source()


def test_missing_file_of_a_row_is_an_error_with_its_name(in_package):
    with pytest.raises(TableError, match=r"S0-01 a test: there is no file evennia_ai/x\.py"):
        a_mutation().source()


def test_mutated_module_is_imported_and_its_file_unchanged(in_package, monkeypatch):
    (in_package / "x.py").write_text("value = 2\n")
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.delitem(sys.modules, "evennia_ai.x", raising=False)
    break_by(a_mutation())
    import evennia_ai.x as changed

    monkeypatch.delitem(sys.modules, "evennia_ai.x")
    assert changed.value == 3
    assert (in_package / "x.py").read_text() == "value = 2\n"
    assert [one.name for one in in_package.iterdir()] == ["x.py"]


def test_imported_module_is_not_mutated(monkeypatch):
    monkeypatch.setitem(sys.modules, "evennia_ai.x", sys)

    with pytest.raises(RuntimeError, match="before it can be changed"):
        break_by(a_mutation())


LIVING = """
def outer():
    def inner():
        return 2
    return inner
def other():
    return "two"
limit = [1 + 1]
def closing():
    held = 1
    def adds(): return held + len("ab")
    return adds
"""


def a_living(in_package: Path) -> dict[str, Any]:
    """Return the names of a module that was imported before it is changed."""
    (in_package / "x.py").write_text(LIVING)
    names: dict[str, Any] = {}
    exec(compile(LIVING, str(in_package / "x.py"), "exec", dont_inherit=True), names)
    return names


def functions_of(*values: Any) -> list[FunctionType]:
    return [value for value in values if isinstance(value, FunctionType)]


def test_existing_function_and_its_closures_are_mutated(in_package):
    living = a_living(in_package)
    made = living["outer"]()

    broken = break_living(a_mutation(), functions_of(made, *living.values()))

    assert (broken, made(), living["outer"]()(), living["other"]()) == (2, 3, 3, "two")


def test_value_computed_on_import_is_not_mutated_in_living_functions(in_package):
    living = a_living(in_package)

    assert break_living(a_mutation(text="1 + 1"), functions_of(*living.values())) == 0
    assert living["limit"] == [2]


def test_mutation_that_changes_a_closure_is_an_error(in_package):
    living = a_living(in_package)
    made = living["closing"]()

    with pytest.raises(ValueError, match="free vars"):
        break_living(a_mutation(text="held + len", becomes="len"), functions_of(made))


def test_mutation_of_living_functions_must_also_fit_the_file(in_package):
    with pytest.raises(TableError, match=r"there is no file evennia_ai/x\.py"):
        break_living(a_mutation(), [])


def test_that_fails_without_the_mutation_is_unfair():
    def failing(tests: list[str]) -> list[str]:
        return [test for test in tests if test != "good"]

    assert judging._unfair(failing, ["bad", "good", "worse"]) == {"bad", "worse"}


def test_that_cannot_run_without_the_mutation_is_unfair():
    def failing(tests: list[str]) -> list[str]:
        raise RuntimeError(f"cannot try {tests}")

    assert judging._unfair(failing, ["a"]) == {"a"}


def test_tests_are_tried_without_the_mutation_within_their_time_limit(monkeypatch):
    limits = []

    def recorded(works, *, at_once, limit_seconds):
        limits.append(limit_seconds)
        return iter(())

    monkeypatch.setattr(judging, "each", recorded)
    judging._unfair(lambda tests: [], ["a", "b", "c"])

    assert limits == [3 * judging.LIMIT_SECONDS]


def test_package_is_imported_by_its_folder():
    assert a_mutation(file="store/__init__.py").module == "evennia_ai.store"
    assert a_mutation(file="store/history/turns.py").module == "evennia_ai.store.history.turns"


def test_failure_in_a_child_process_is_reported():
    works = [lambda: 6 * 7, lambda: 1 // 0, lambda: os.getpid()]
    answers = dict(each(works, at_once=2, limit_seconds=20))

    assert answers[0] == 42
    assert isinstance(answers[1], ChildError)
    assert "ZeroDivisionError" in str(answers[1])
    assert answers[2] != os.getpid()


def test_child_process_over_its_time_is_ended():
    def never() -> None:
        while True:
            pass

    ((_, answer),) = each([never], at_once=1, limit_seconds=1)
    assert str(answer) == "it took more than 1 seconds"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"failed": ["a.py::b"], "accidents": ["c"], "imported": True}, "killed by a.py::b"),
        ({"failed": [], "accidents": [], "imported": True}, "SURVIVED"),
        ({"failed": [], "accidents": [], "imported": False}, "SURVIVED: no test that cites it"),
        ({"failed": [], "accidents": ["no name x"], "imported": True}, "NOT JUDGED: it is no"),
        ({"problem": "no test cites it"}, "NOT JUDGED: no test cites it"),
        (ChildError("it took more than 9 seconds"), "NOT JUDGED: it took more"),
    ],
)
def test_only_a_failing_test_kills_a_mutation(answer, said):
    killer, line = runner._said(answer)

    assert line.startswith(said)
    assert (killer == "a.py::b") is said.startswith("killed")


def test_rows_can_be_listed_by_requirement(capsys):
    row = ROWS[0]
    assert runner.main(["--list", "--only", row.req]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert f"{row.req}  {row.file}  {row.title}" in lines
    assert {line.split()[0] for line in lines} == {row.req}


def test_requirement_without_a_row_is_an_error(capsys):
    assert runner.main(["--only", "S9-99"]) == 1
    assert capsys.readouterr().out == "no mutation breaks S9-99\n"


def test_requirement_that_no_test_cites_is_reported():
    row = replace(ROWS[0], req="S9-99")

    assert runner._verdict(row, {"tests": {}}) == {"problem": "no test cites it"}
