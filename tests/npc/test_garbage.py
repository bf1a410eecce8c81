"""The garbage collector of a running server: frequent small collections and rare full ones."""

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
    """Return what a process with a collector of its own printed."""
    command = [sys.executable, "-m", "tests.npc.garbage_apart"]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_objects_that_exist_at_the_start_are_frozen(found: Any) -> None:
    assert found["frozen at the beginning"] > 1000
    assert found["third threshold"] > 1000


def test_new_garbage_is_collected(found: Any) -> None:
    assert found["new is gone"]


def test_many_new_objects_are_collected_once_and_then_frozen(found: Any) -> None:
    assert found["a few new ones are let be"]
    assert found["what is new is frozen"] >= NEW_OBJECTS


def test_objects_of_a_large_parsed_book_are_frozen_without_a_search(found: Any) -> None:
    assert found["too many new ones are frozen without a search"]


def test_frozen_garbage_is_found_by_a_full_collection(found: Any) -> None:
    assert not found["frozen is gone after a search of the new"]
    assert found["frozen is gone after a search of everything"]
    assert "a full garbage collection took" in found["logged"]


def test_full_collection_runs_in_a_quiet_moment_when_memory_has_grown(
    found: Any,
) -> None:
    assert found["much more while somebody answers is let be"]
    assert found["much more is searched in a quiet moment"]
    assert found["and is the measure from then on"]


def test_cached_messages_do_not_cause_a_full_collection(found: Any) -> None:
    assert found["messages that are held do not count"]


def test_full_collection_runs_at_once_when_memory_has_grown_too_much(found: Any) -> None:
    assert found["too much is searched at any moment"]


def test_collector_has_its_earlier_settings_after_the_end(found: Any) -> None:
    assert found["thresholds are as before"]
    assert found["frozen in the end"] == 0
