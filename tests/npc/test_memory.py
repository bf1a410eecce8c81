"""The memory of a busy server does not grow any more once every window is full."""

import gc
import json
import subprocess
import sys
import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from twisted.internet.defer import Deferred

from evennia_ai.engine.errors import StoreError
from evennia_ai.npc.recording.writer import _Job
from evennia_ai.npc.runtime import outcome_of

ROOT = Path(__file__).parents[2]
MOST_BLOCKS = 4_000
"""The most blocks that 80 turns may add. Their messages alone, heard by two NPCs, would be 8,000.
"""


@pytest.fixture(scope="module")
def found() -> Any:
    """Return what a process with a collector of its own printed."""
    command = [sys.executable, "-m", "tests.npc.memory_apart"]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.long
def test_histories_are_summarised_during_the_measurement(found: Any) -> None:
    assert found["summarised"] >= 3


@pytest.mark.long
@pytest.mark.parametrize(
    "what", ["turns", "a segment is read", "a turn is read back", "windows are forgotten"]
)
def test_no_object_of_this_package_waits_for_the_garbage_collector_after(
    what: str, found: Any
) -> None:
    assert found[what] == {}


@pytest.mark.long
def test_memory_does_not_grow_once_every_window_is_full(found: Any) -> None:
    first, _, last = found["blocks"]
    assert last - first < MOST_BLOCKS


class Thing:
    """An object that work holds. `known` has weak references to all objects of this class."""

    known: list["weakref.ref[Thing]"] = []

    def __init__(self) -> None:
        self.known.append(weakref.ref(self))


def in_a_thread_of_twisted(work: Callable[[], None]) -> Any:
    """Run work as `twisted.python.threadpool` does: the frame that caught an error holds the
    result.
    """
    result = outcome_of(work)
    del work
    return result


@pytest.mark.parametrize(("error", "left"), [(ValueError, 1), (StoreError, 0)])
def test_failed_work_keeps_no_values_in_memory_except_the_waiter_of_a_bug(
    error: type[Exception], left: int
) -> None:
    def fails(given: Thing) -> None:
        made = Thing()
        assert given is not made
        try:
            raise OSError("no room")
        except OSError as problem:
            raise error("not done") from problem

    async def waits(waiting: "Deferred[None]") -> None:
        in_hand = Thing()
        with suppress(Exception):
            await waiting
        assert in_hand

    Thing.known.clear()
    waiting: Deferred[None] = Deferred()
    gc.disable()
    try:
        Deferred.fromCoroutine(waits(waiting))
        waiting.callback(in_a_thread_of_twisted(partial(fails, Thing())))
        assert sum(one() is not None for one in Thing.known) == left
        assert len(Thing.known) == 3
    finally:
        gc.enable()


def test_refused_write_keeps_none_of_its_values_in_memory(db: None) -> None:
    """Frames of Django refer to the error of a refused statement, and the error refers to them."""

    def writes(_: Thing) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT * FROM no_such_table")

    Thing.known.clear()
    gc.disable()
    try:
        job = _Job(partial(writes, Thing()))
        assert not job.do()
        job.waiting.addErrback(lambda _: None)
        job.tell()
        del job
        assert [one() for one in Thing.known] == [None]
    finally:
        gc.enable()
