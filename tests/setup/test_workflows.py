"""Test that continuous integration runs the commands of developers on all versions."""

from pathlib import Path
from typing import Any

import yaml

from server.installation import SUPPORTED
from tests.setup.test_installation import locked

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = {
    path.stem: yaml.safe_load(path.read_text(encoding="utf-8"))
    for path in sorted((ROOT / ".github" / "workflows").glob("*.yml"))
}


def _commands(job: dict[str, Any]) -> list[str]:
    return [step["run"] for step in job["steps"] if "run" in step]


def test_workflows_call_make_test_and_make_check_on_each_supported_python() -> None:
    jobs = WORKFLOWS["test"]["jobs"]
    assert _commands(jobs["test"]) == ["make test"]
    assert _commands(jobs["check"])[-1] == "make check"
    rows = jobs["test"]["strategy"]["matrix"]["include"]
    assert tuple(row["python"] for row in rows if "may_fail" not in row) == SUPPORTED
    assert [row["python"] for row in rows if row.get("may_fail")] == ["3.14"]


def test_ci_matrix_names_the_locked_evennia_version_of_each_python() -> None:
    for job in WORKFLOWS["test"]["jobs"].values():
        for row in job["strategy"]["matrix"]["include"]:
            if row["python"] in SUPPORTED:
                assert f"{locked(row['python'])['evennia']}.".startswith(f"{row['evennia']}.")


def test_nothing_is_published_before_it_is_enabled() -> None:
    publish = WORKFLOWS["release"]["jobs"]["publish"]
    assert "vars.PUBLISH_TO_PYPI == 'true'" in publish["if"]
    assert publish["permissions"] == {"id-token": "write"}
    assert "with" not in publish["steps"][-1]  # Trusted publishing needs no password.


def test_workflows_fetch_the_tags_for_the_version() -> None:
    for workflow in WORKFLOWS.values():
        for job in workflow["jobs"].values():
            for step in job["steps"]:
                if step.get("uses", "").startswith("actions/checkout"):
                    assert step["with"]["fetch-depth"] == 0
