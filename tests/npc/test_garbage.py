"""The collector of a running server: what is new is searched often, everything seldom."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from evennia_ai.npc.service import NEW_OBJECTS

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def found() -> Any:
    """What a process found out that has a collector of its own."""
    command = [sys.executable, "-m", "tests.npc.garbage_apart"]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_what_was_there_at_the_beginning_is_frozen(found: Any) -> None:
    assert found["frozen at the beginning"] > 1000
    assert found["third threshold"] > 1000


def test_what_became_garbage_since_is_found(found: Any) -> None:
    assert found["new is gone"]


def test_what_is_new_is_searched_when_it_is_much_and_never_again(found: Any) -> None:
    assert found["a few new ones are let be"]
    assert found["what is new is frozen"] >= NEW_OBJECTS


def test_what_became_garbage_while_it_was_frozen_is_found_when_all_is_searched(found: Any) -> None:
    assert not found["frozen is gone after a search of the new"]
    assert found["frozen is gone after a search of everything"]
    assert "a full garbage collection took" in found["logged"]


def test_when_much_more_memory_is_in_use_everything_is_searched_in_a_quiet_moment(
    found: Any,
) -> None:
    assert found["much more while somebody answers is let be"]
    assert found["much more is searched in a quiet moment"]
    assert found["and is the measure from then on"]


def test_messages_that_are_meant_to_be_in_memory_are_no_reason_to_search(found: Any) -> None:
    assert found["messages that are held do not count"]


def test_with_far_more_in_use_nobody_is_waited_for(found: Any) -> None:
    assert found["too much is searched at any moment"]


def test_in_the_end_the_collector_is_as_it_was(found: Any) -> None:
    assert found["thresholds are as before"]
    assert found["frozen in the end"] == 0
