"""The scheduler: the order of starts, fairness among NPCs and models, and bounds."""

import sys

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from evennia_ai.npc.floor.scheduler import Place, Scheduler


class Works:
    """Makes functions of work, lists them as they start, and ends them on demand."""

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


def test_offer_starts_no_work_itself(scheduler, works, clock):
    assert scheduler.offer("oren", works.of("a"))
    assert works.started == []
    clock.advance(0)
    assert works.started == ["a"]


def test_npc_has_one_turn_in_flight_and_the_others_follow_in_order(scheduler, works, clock):
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


def test_running_turns_of_all_npcs_are_bounded_by_max_running(scheduler, works, clock):
    for key in ("oren", "brida", "ismay"):
        scheduler.offer(key, works.of(key))
    clock.advance(0)
    assert works.started == ["oren", "brida"]
    works.end("brida")
    clock.advance(0)
    assert works.started == ["oren", "brida", "ismay"]


def test_npcs_start_in_rotation_when_one_has_much_work(clock, works, errors):
    scheduler = made(clock, errors, max_running=1)
    for name in ("oren 1", "oren 2", "oren 3"):
        scheduler.offer("oren", works.of(name))
    scheduler.offer("brida", works.of("brida 1"))
    clock.advance(0)
    for name in ("oren 1", "brida 1", "oren 2"):
        works.end(name)
        clock.advance(0)
    assert works.started == ["oren 1", "brida 1", "oren 2", "oren 3"]


def test_offer_returns_false_when_the_queue_of_the_npc_is_full(scheduler, works):
    assert [scheduler.offer("oren", works.of("x")) for _ in range(4)] == [True] * 3 + [False]
    assert scheduler.offer("brida", works.of("y"))


def test_npc_rests_for_the_cooldown_between_two_starts(clock, works, errors):
    scheduler = made(clock, errors, cooldown_seconds=2.0)
    scheduler.offer("oren", works.of("a"))
    scheduler.offer("oren", works.of("b"))
    clock.advance(0)
    works.end("a")
    clock.advance(1.9)
    assert works.started == ["a"]
    clock.advance(0.2)
    assert works.started == ["a", "b"]


def test_work_that_is_put_back_starts_first_after_its_delay(scheduler, works, clock):
    scheduler.offer("oren", works.of("b"))
    scheduler.put_back("oren", works.of("a"), delay_seconds=5)
    clock.advance(4.9)
    assert works.started == []
    clock.advance(0.2)
    assert works.started == ["a"]


def test_error_in_work_is_reported_and_the_next_work_starts(scheduler, works, clock, errors):
    def broken():
        raise ZeroDivisionError

    scheduler.offer("oren", broken)
    scheduler.offer("oren", works.of("a"))
    clock.advance(0)
    clock.advance(0)
    assert works.started == ["a"]
    assert [(key, failure.type) for key, failure in errors] == [("oren", ZeroDivisionError)]


def test_no_work_starts_after_stop(scheduler, works, clock):
    scheduler.offer("oren", works.of("a"))
    scheduler.stop()
    clock.advance(10)
    assert works.started == []
    assert clock.getDelayedCalls() == []


def test_answer_to_person_starts_before_older_chatter_of_another_npc(clock, works, errors):
    scheduler = made(clock, errors, max_running=1)
    scheduler.offer("oren", works.of("chat"), chatter=True)
    scheduler.offer("brida", works.of("answer"))
    clock.advance(0)
    assert works.started == ["answer"]


def test_answer_to_person_starts_before_older_chatter_of_the_same_npc(clock, works, errors):
    scheduler = made(clock, errors, max_running=1)
    scheduler.offer("oren", works.of("chat"), chatter=True)
    scheduler.offer("oren", works.of("answer"))
    clock.advance(0)
    works.end("answer")
    clock.advance(0)
    assert works.started == ["answer", "chat"]


def test_chatter_starts_within_five_starts_when_persons_keep_asking(clock, works, errors):
    scheduler = made(clock, errors, max_running=1, queue_limit=100)
    scheduler.offer("oren", works.of("chat"), chatter=True)
    for number in range(20):
        scheduler.offer(f"npc {number}", works.of(f"answer {number}"))
    for _ in range(5):
        clock.advance(0)
        works.end(works.started[-1])
    assert "chat" in works.started


def test_chatter_fills_at_most_half_of_the_queue(scheduler, works):
    offers = [scheduler.offer("oren", works.of("chat"), chatter=True) for _ in range(3)]
    assert offers == [True, False, False]
    assert [scheduler.offer("oren", works.of("answer")) for _ in range(3)] == [True, True, False]


def test_cooldown_of_an_offer_replaces_the_cooldown_of_the_game(clock, works, errors):
    scheduler = made(clock, errors, cooldown_seconds=1.0)
    scheduler.offer("oren", works.of("a"), cooldown_seconds=9.0)
    scheduler.offer("oren", works.of("b"))
    clock.advance(0)
    works.end("a")
    clock.advance(8.9)
    assert works.started == ["a"]
    clock.advance(0.2)
    assert works.started == ["a", "b"]


def test_withdraw_removes_only_waiting_work(scheduler, works, clock):
    first, second = works.of("a"), works.of("b")
    scheduler.offer("oren", first)
    scheduler.offer("oren", second)
    assert scheduler.withdraw("oren", [first]) == 1
    clock.advance(0)
    assert works.started == ["b"]
    assert scheduler.withdraw("oren", [second]) == 0


def test_scheduler_counts_running_and_waiting_work_of_all_npcs(scheduler, works, clock):
    for key in ("oren", "brida", "ismay"):
        scheduler.offer(key, works.of(key))
    clock.advance(0)
    assert (scheduler.running, scheduler.waiting_in_all) == (2, 1)


def test_each_reactor_iteration_starts_at_most_one_work(works, errors):
    reactor = OneCallAtATime()
    scheduler = made(reactor, errors)
    for key in ("oren", "brida"):
        scheduler.offer(key, works.of(key))
    reactor.iterate()
    assert works.started == ["oren"]
    reactor.iterate()
    assert works.started == ["oren", "brida"]


def test_cost_of_a_start_does_not_grow_with_the_number_of_npcs(errors):
    """The cost is the number of Python calls, which does not depend on the machine's load."""

    def steps(npcs, each):
        clock = Clock()
        scheduler = made(clock, errors, max_running=1, queue_limit=1000, cooldown_seconds=1.0)
        for number in range(npcs * each):
            scheduler.offer(str(number % npcs), lambda: None)
        return calls_of(lambda: clock.advance(0.5))

    assert steps(300, 34) < 2 * 300 * (steps(1, 1) + 20)


def test_busy_keys_lists_npcs_with_waiting_or_running_work(scheduler, works, clock):
    for name in ("a", "b"):
        scheduler.offer("oren", works.of(name))
    scheduler.offer("karl", works.of("c"))
    assert scheduler.busy_keys == ("oren", "karl")
    clock.pump([0, 0])
    works.end("c")
    assert scheduler.busy_keys == ("oren",)


def test_rest_seconds_returns_the_rest_of_the_cooldown(clock, errors, works):
    scheduler = made(clock, errors, cooldown_seconds=5.0)
    assert scheduler.rest_seconds("oren") == 0
    scheduler.offer("oren", works.of("a"))
    clock.advance(0)
    clock.advance(2)
    assert scheduler.rest_seconds("oren") == 3


def test_turns_of_a_full_model_do_not_delay_turns_of_another_model(clock, errors, works):
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


def test_npc_waits_for_its_new_model_when_its_model_changes(clock, errors, works):
    scheduler = made(clock, errors, max_running=4)
    dead, good = Place("a", "dead", 1), Place("b", "good", 1)
    scheduler.offer("karl", works.of("k"), place=dead)
    clock.advance(0)
    scheduler.offer("oren", works.of("a"), place=dead)
    scheduler.offer("oren", works.of("b"), place=good)
    clock.pump([0, 0])
    assert works.started == ["k", "a"]
    assert scheduler.crowds() == ()


def test_why_waits_names_the_reason(clock, errors, works):
    scheduler = made(clock, errors, max_running=1, cooldown_seconds=5.0)
    assert scheduler.why_waits("oren") == ""
    for key in ("oren", "oren", "brida"):
        scheduler.offer(key, works.of(key))
    clock.advance(0)
    assert scheduler.why_waits("oren") == "its previous turn is still running"
    game_is_full = "1 turn is running in the whole game, which is the limit"
    assert scheduler.why_waits("brida") == game_is_full
    works.end("oren")
    assert scheduler.why_waits("oren") == "it rests for another 5.0 s"


class OneCallAtATime(Clock):
    """A clock like the reactor: one iteration calls only what was scheduled before it."""

    def iterate(self):
        due = [call for call in self.getDelayedCalls() if call.getTime() <= self.seconds()]
        for call in due:
            if call.active():
                self.calls.remove(call)
                call.called = 1
                call.func(*call.args, **call.kw)


def calls_of(do):
    """Return how many Python functions were called while `do` ran."""
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


@pytest.mark.parametrize(
    ("joins_at", "starts_at"),
    [((), 1.0), ((0.5,), 1.5), ((0.9, 1.8, 2.7), 3.0), ((1.2,), 1.0)],
)
def test_idle_npc_waits_for_joining_work_but_not_without_end(
    clock, errors, works, joins_at, starts_at
):
    scheduler = made(clock, errors)
    newest, begun = works.of("0"), []
    scheduler.offer("oren", newest, owner="anna", gather_seconds=1.0)
    for tenth in range(1, 50):
        clock.advance(0.1)
        begun += [clock.seconds()] if works.started and not begun else []
        if any(abs(at - tenth / 10) < 0.01 for at in joins_at):
            earlier, newest = newest, works.of(str(tenth))
            is_waiting = not works.started
            assert is_waiting == scheduler.join(
                "oren", earlier, newest, owner="anna", gather_seconds=1.0
            )
    assert begun == [pytest.approx(starts_at, abs=0.11)]
    assert len(works.started) == 1


def test_joined_work_starts_in_the_place_of_the_earlier_work(clock, errors, works):
    scheduler = made(clock, errors)
    first, second = works.of("anna 1"), works.of("anna 2")
    scheduler.offer("oren", works.of("running"), owner="cato")
    clock.advance(0)
    scheduler.offer("oren", first, owner="anna")
    scheduler.offer("oren", works.of("ben"), owner="ben")
    assert not scheduler.join("oren", first, second, owner="ben")
    assert scheduler.join("oren", first, second, owner="anna")
    assert (scheduler.waiting("oren"), scheduler.waiting_in_all) == (2, 2)
    works.end("running")
    clock.advance(0)
    works.end("ben")
    clock.advance(0)
    assert works.started == ["running", "ben", "anna 2"]


def test_gathering_npc_does_not_start_before_the_end_of_its_rest(clock, errors, works):
    scheduler = made(clock, errors, cooldown_seconds=5.0)
    scheduler.offer("oren", works.of("a"), owner="anna")
    clock.advance(0)
    works.end("a")
    scheduler.offer("oren", works.of("b"), owner="anna", gather_seconds=1.0)
    clock.advance(4.9)
    assert works.started == ["a"]
    clock.advance(0.1)
    assert works.started == ["a", "b"]
