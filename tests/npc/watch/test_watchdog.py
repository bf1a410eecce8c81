"""The watchdog logs the stack of code that blocks the reactor."""

import queue
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from evennia_ai.npc.watch import watchdog
from evennia_ai.npc.watch.watchdog import Watchdog

ENOUGH_SECONDS = 30.0


class Loop:
    """A thread that calls functions one after the other, like a reactor."""

    def __init__(self) -> None:
        self._waiting: queue.Queue[Callable[[], object] | None] = queue.Queue()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def callFromThread(self, do: Callable[..., object], *given: object) -> None:
        self._waiting.put(lambda: do(*given))

    def done(self, do: Callable[[], object]) -> None:
        """Call a function in the loop's thread, and wait until it has returned."""
        through = threading.Event()
        self.callFromThread(do)
        self.callFromThread(through.set)
        assert through.wait(ENOUGH_SECONDS)

    def stop(self) -> None:
        self._waiting.put(None)
        self._thread.join(ENOUGH_SECONDS)

    def _run(self) -> None:
        while do := self._waiting.get():
            do()


class Watched:
    """A loop with a watchdog, and the lines that the watchdog logged."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.told: queue.Queue[str] = queue.Queue()
        loop.done(self._begin)

    def _begin(self) -> None:
        self.dog = Watchdog(self.loop, slow_ms=20, log=self.told.put)
        self.dog.begin()

    def waits_until_told(self) -> str:
        return self.told.get(timeout=ENOUGH_SECONDS)


@pytest.fixture
def watched() -> Iterator[Watched]:
    loop = Loop()
    watched = Watched(loop)
    yield watched
    watched.dog.end()
    loop.stop()


def ringing_a_bell() -> None:
    time.sleep(0.2)


def painting_a_boat() -> None:
    time.sleep(0.2)


def test_blocking_code_is_logged_with_its_stack(watched: Watched) -> None:
    watched.loop.done(ringing_a_bell)
    told = watched.waits_until_told()
    assert "the game was blocked for" in told
    assert "ringing_a_bell" in told


def test_same_place_is_logged_once_within_the_repeat_time(watched: Watched) -> None:
    for holding_up in (ringing_a_bell, ringing_a_bell, painting_a_boat):
        watched.loop.done(holding_up)
    assert "ringing_a_bell" in watched.waits_until_told()
    assert "painting_a_boat" in watched.waits_until_told()


def test_same_place_is_logged_again_after_the_repeat_time(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchdog, "REPEAT_SECONDS", 0.0)
    for _ in range(2):
        watched.loop.done(ringing_a_bell)
        assert "ringing_a_bell" in watched.waits_until_told()


def test_watchdog_ends_when_the_reactor_has_stopped(watched: Watched) -> None:
    watched.loop.stop()
    watched.dog.end()
    dogs = [one for one in threading.enumerate() if one.name == "evennia_ai: what is slow"]
    for dog in dogs:
        dog.join(ENOUGH_SECONDS)
    assert not any(dog.is_alive() for dog in dogs)
