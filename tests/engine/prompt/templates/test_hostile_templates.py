"""Any template takes little time and memory, and fails only with an error for its author."""

import json
import subprocess
import sys
from typing import Any

import pytest

from evennia_ai.engine.prompt.templates.macros import MAX_MACROS
from tests.engine.prompt.templates.hostile_templates import MIB

pytestmark = pytest.mark.long

MOST_CALLS = 25 * MAX_MACROS
"""The most Python and C functions that one rendering may call. It is exceeded if a template does
its work twice.
"""
SEED = "14"
COUNT = 1_000


@pytest.fixture(scope="module")
def told() -> Any:
    """Return the report of a process with little memory that tried templates of one seed."""
    command = [
        sys.executable,
        "-m",
        "tests.engine.prompt.templates.hostile_templates",
        SEED,
        str(COUNT),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-2_000:]
    return json.loads(done.stdout)


def test_hostile_template_fails_with_a_template_error_and_shows_no_object(told: Any) -> None:
    assert told["wrong"] == []


def test_rendering_any_template_calls_few_functions(told: Any) -> None:
    assert 0 < told["worst"]["render_calls"][0] <= MOST_CALLS, told["worst"]


def test_rendering_any_template_takes_at_most_three_megabytes(told: Any) -> None:
    assert told["worst"]["render_bytes"][0] < 3 * MIB, told["worst"]


def test_random_hostile_templates_are_refused_stopped_or_rendered(told: Any) -> None:
    assert set(told["outcomes"]) == {"refused", "stopped", "rendered"}
    assert min(told["outcomes"].values()) > COUNT / 20
