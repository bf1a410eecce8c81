"""The scheduler: order, fairness, bounds."""

import sys

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from evennia_ai.npc.floor.scheduler import Place, Scheduler


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


def test_after_the_stop_nothing_starts(scheduler, works, clock):
    scheduler.offer("oren", works.of("a"))
    scheduler.stop()
    clock.advance(10)
    assert works.started == []
    assert clock.getDelayedCalls() == []


def test_who_answers_a_person_starts_before_chatter_that_waited_longer(clock, works, errors):
    scheduler = made(clock, errors, max_running=1)
    scheduler.offer("oren", works.of("chat"), chatter=True)
    scheduler.offer("brida", works.of("answer"))
    clock.advance(0)
    assert works.started == ["answer"]


def test_an_npc_answers_a_person_before_it_goes_on_chatting(clock, works, errors):
    scheduler = made(clock, errors, max_running=1)
    scheduler.offer("oren", works.of("chat"), chatter=True)
    scheduler.offer("oren", works.of("answer"))
    clock.advance(0)
    works.end("answer")
    clock.advance(0)
    assert works.started == ["answer", "chat"]


def test_chatter_comes_to_its_turn_however_much_people_say(clock, works, errors):
    scheduler = made(clock, errors, max_running=1, queue_limit=100)
    scheduler.offer("oren", works.of("chat"), chatter=True)
    for number in range(20):
        scheduler.offer(f"npc {number}", works.of(f"answer {number}"))
    for _ in range(5):
        clock.advance(0)
        works.end(works.started[-1])
    assert "chat" in works.started


def test_chatter_leaves_room_for_people(scheduler, works):
    offers = [scheduler.offer("oren", works.of("chat"), chatter=True) for _ in range(3)]
    assert offers == [True, False, False]
    assert [scheduler.offer("oren", works.of("answer")) for _ in range(3)] == [True, True, False]


def test_work_may_have_a_rest_of_its_own(clock, works, errors):
    scheduler = made(clock, errors, cooldown_seconds=1.0)
    scheduler.offer("oren", works.of("a"), cooldown_seconds=9.0)
    scheduler.offer("oren", works.of("b"))
    clock.advance(0)
    works.end("a")
    clock.advance(8.9)
    assert works.started == ["a"]
    clock.advance(0.2)
    assert works.started == ["a", "b"]


def test_what_one_speaker_waits_for_can_be_withdrawn(scheduler, works, clock):
    first, second = works.of("a"), works.of("b")
    scheduler.offer("oren", first)
    scheduler.offer("oren", second)
    assert scheduler.withdraw("oren", [first]) == 1
    clock.advance(0)
    assert works.started == ["b"]
    assert scheduler.withdraw("oren", [second]) == 0


def test_it_is_known_how_much_goes_on_in_the_whole_game(scheduler, works, clock):
    for key in ("oren", "brida", "ismay"):
        scheduler.offer(key, works.of(key))
    clock.advance(0)
    assert (scheduler.running, scheduler.waiting_in_all) == (2, 1)


def test_starts_are_apart_so_that_the_server_does_other_things_between(works, errors):
    reactor = OneCallAtATime()
    scheduler = made(reactor, errors)
    for key in ("oren", "brida"):
        scheduler.offer(key, works.of(key))
    reactor.iterate()
    assert works.started == ["oren"]
    reactor.iterate()
    assert works.started == ["oren", "brida"]


def test_a_step_takes_no_longer_where_many_wait(errors):
    """Counted in calls of Python functions, which no busy machine changes."""

    def steps(npcs, each):
        clock = Clock()
        scheduler = made(clock, errors, max_running=1, queue_limit=1000, cooldown_seconds=1.0)
        for number in range(npcs * each):
            scheduler.offer(str(number % npcs), lambda: None)
        return calls_of(lambda: clock.advance(0.5))

    assert steps(300, 34) < 2 * 300 * (steps(1, 1) + 20)


def test_it_is_known_who_is_busy(scheduler, works, clock):
    for name in ("a", "b"):
        scheduler.offer("oren", works.of(name))
    scheduler.offer("karl", works.of("c"))
    assert scheduler.busy_keys == ("oren", "karl")
    clock.pump([0, 0])
    works.end("c")
    assert scheduler.busy_keys == ("oren",)


def test_it_is_known_how_long_somebody_rests(clock, errors, works):
    scheduler = made(clock, errors, cooldown_seconds=5.0)
    assert scheduler.rest_seconds("oren") == 0
    scheduler.offer("oren", works.of("a"))
    clock.advance(0)
    clock.advance(2)
    assert scheduler.rest_seconds("oren") == 3


def test_turns_that_wait_for_one_model_hold_up_no_turn_of_another(clock, errors, works):
    scheduler = made(clock, errors, max_running=4)
    dead, good = Place("a", "dead", 2), Place("b", "good", 2)
    for number in range(5):
        scheduler.offer(f"d{number}", works.of(f"d{number}"), place=dead)
    for number in range(3):
        scheduler.offer(f"g{number}", works.of(f"g{number}"), place=good)
    clock.advance(0)
    clock.pump([0] * 8)
    assert sorted(works.started) == ["d0", "d1", "g0", "g1"]
    works.end("g0")
    clock.pump([0, 0])
    assert works.started[-1] == "g2"
    assert scheduler.crowds() == (("dead", 2, ("d2", "d3", "d4")),)
    assert scheduler.why_waits("d2") == "2 turns are running for dead, which is the limit"


def test_whose_model_changes_waits_for_the_new_one(clock, errors, works):
    scheduler = made(clock, errors, max_running=4)
    dead, good = Place("a", "dead", 1), Place("b", "good", 1)
    scheduler.offer("karl", works.of("k"), place=dead)
    clock.advance(0)
    scheduler.offer("oren", works.of("a"), place=dead)
    scheduler.offer("oren", works.of("b"), place=good)
    clock.pump([0, 0])
    assert works.started == ["k", "a"]
    assert scheduler.crowds() == ()


def test_why_somebody_waits(clock, errors, works):
    scheduler = made(clock, errors, max_running=1, cooldown_seconds=5.0)
    assert scheduler.why_waits("oren") == ""
    for key in ("oren", "oren", "brida"):
        scheduler.offer(key, works.of(key))
    clock.advance(0)
    assert scheduler.why_waits("oren") == "its previous turn is still running"
    game_is_full = "1 turn is running in the whole game, which is the limit"
    assert scheduler.why_waits("brida") == game_is_full
    works.end("oren")
    assert scheduler.why_waits("oren") == "it rests for 5.0 s"


class OneCallAtATime(Clock):
    """A clock that, as the reactor, calls in one iteration what was planned before it."""

    def iterate(self):
        due = [call for call in self.getDelayedCalls() if call.getTime() <= self.seconds()]
        for call in due:
            if call.active():
                self.calls.remove(call)
                call.called = 1
                call.func(*call.args, **call.kw)


def calls_of(do):
    """How many Python functions were called while `do` ran."""
    count = 0

    def profile(_frame, event, _argument):
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        do()
    finally:
        sys.setprofile(before)
    return count
