"""The scheduler: order, fairness, bounds."""

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from evennia_ai.game.scheduler import Scheduler


class Works:
    """Work that stays in flight until it is ended."""

    def __init__(self):
        self.started = []
        self._open = {}

    def of(self, name):
        def work():
            self.started.append(name)
            self._open[name] = Deferred()
            return self._open[name]

        return work

    def end(self, name):
        self._open.pop(name).callback(None)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def works():
    return Works()


@pytest.fixture
def errors():
    return []


@pytest.fixture
def scheduler(clock, errors):
    return made(clock, errors)


def made(clock, errors, **limits):
    limits = {"max_running": 2, "queue_limit": 3, "cooldown_seconds": 0.0, **limits}
    return Scheduler(clock, on_error=lambda key, failure: errors.append((key, failure)), **limits)


def test_nothing_starts_inside_the_offer(scheduler, works, clock):
    assert scheduler.offer("oren", works.of("a"))
    assert works.started == []
    clock.advance(0)
    assert works.started == ["a"]


def test_one_npc_has_one_turn_in_flight_and_the_next_in_order(scheduler, works, clock):
    for name in "abc":
        scheduler.offer("oren", works.of(name))
    clock.advance(0)
    assert works.started == ["a"]
    assert (scheduler.in_flight("oren"), scheduler.waiting("oren")) == (True, 2)
    works.end("a")
    clock.advance(0)
    works.end("b")
    clock.advance(0)
    assert works.started == ["a", "b", "c"]


def test_the_whole_game_has_no_more_turns_in_flight_than_allowed(scheduler, works, clock):
    for key in ("oren", "brida", "ismay"):
        scheduler.offer(key, works.of(key))
    clock.advance(0)
    assert works.started == ["oren", "brida"]
    works.end("brida")
    clock.advance(0)
    assert works.started == ["oren", "brida", "ismay"]


def test_a_busy_npc_does_not_keep_the_others_from_starting(clock, works, errors):
    scheduler = made(clock, errors, max_running=1)
    for name in ("oren 1", "oren 2", "oren 3"):
        scheduler.offer("oren", works.of(name))
    scheduler.offer("brida", works.of("brida 1"))
    clock.advance(0)
    for name in ("oren 1", "brida 1", "oren 2"):
        works.end(name)
        clock.advance(0)
    assert works.started == ["oren 1", "brida 1", "oren 2", "oren 3"]


def test_over_the_limit_an_offer_is_refused(scheduler, works):
    assert [scheduler.offer("oren", works.of("x")) for _ in range(4)] == [True] * 3 + [False]
    assert scheduler.offer("brida", works.of("y"))


def test_an_npc_rests_between_two_starts(clock, works, errors):
    scheduler = made(clock, errors, cooldown_seconds=2.0)
    scheduler.offer("oren", works.of("a"))
    scheduler.offer("oren", works.of("b"))
    clock.advance(0)
    works.end("a")
    clock.advance(1.9)
    assert works.started == ["a"]
    clock.advance(0.2)
    assert works.started == ["a", "b"]


def test_what_is_put_back_comes_first_and_later(scheduler, works, clock):
    scheduler.offer("oren", works.of("b"))
    scheduler.put_back("oren", works.of("a"), delay_seconds=5)
    clock.advance(4.9)
    assert works.started == []
    clock.advance(0.2)
    assert works.started == ["a"]


def test_an_error_ends_its_own_turn_and_no_other(scheduler, works, clock, errors):
    def broken():
        raise ZeroDivisionError

    scheduler.offer("oren", broken)
    scheduler.offer("oren", works.of("a"))
    clock.advance(0)
    clock.advance(0)
    assert works.started == ["a"]
    assert [(key, failure.type) for key, failure in errors] == [("oren", ZeroDivisionError)]


def test_what_waits_can_be_dropped(scheduler, works, clock):
    scheduler.offer("oren", works.of("a"))
    assert scheduler.drop("oren") == 1
    clock.advance(0)
    assert works.started == []


def test_after_the_stop_nothing_starts(scheduler, works, clock):
    scheduler.offer("oren", works.of("a"))
    scheduler.stop()
    clock.advance(10)
    assert works.started == []
    assert clock.getDelayedCalls() == []
