"""The memory of a server in which much is said: it grows no further once every window is full."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from evennia_ai.game.runtime import outcome_of

ROOT = Path(__file__).parents[2]
MOST_BLOCKS = 6_000
"""So many blocks may 120 turns add. The messages of 120 turns that two NPCs hear are 12,000."""


@pytest.fixture(scope="module")
def found() -> Any:
    """What a process found out that has a collector of its own."""
    command = [sys.executable, "-m", "tests.game.memory_apart"]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_histories_are_summarised_while_memory_is_measured(found: Any) -> None:
    assert found["summarised"] >= 3


@pytest.mark.parametrize(
    "what", ["turns", "a segment is read", "a turn is read back", "windows are forgotten"]
)
def test_no_object_of_ours_is_left_to_the_collector_when(what: str, found: Any) -> None:
    assert found[what] == {}


def test_memory_is_level_once_every_window_is_full(found: Any) -> None:
    first, _, last = found["blocks"]
    assert last - first < MOST_BLOCKS


def test_error_in_a_thread_keeps_nothing_that_the_work_had_in_hand() -> None:
    import gc
    import weakref

    class Thing:
        """What the work has in hand."""

    known: list[Any] = []

    def fails(given: Thing) -> None:
        made = Thing()
        known.extend(map(weakref.ref, (given, made)))
        raise ValueError("no use")

    def in_a_thread_of_twisted() -> None:
        """As `twisted.python.threadpool` has it: the outcome stands in the frame that caught it."""
        result = outcome_of(fails, Thing())
        Deferred().addErrback(lambda _: None).callback(result)

    gc.disable()
    try:
        in_a_thread_of_twisted()
        assert [one() for one in known] == [None, None]
    finally:
        gc.enable()
