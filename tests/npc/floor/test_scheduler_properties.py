"""Random sequences of offers, ends and withdrawals: order, fairness and bounds always hold."""

from collections import Counter, defaultdict

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from evennia_ai.npc.floor.scheduler import CHATTER_SHARE, Place, Scheduler
from tests.properties import up_to

KEYS = ("oren", "brida", "ismay", "tomas")
SLOW, QUICK = Place(1, "slow", 1), Place(2, "quick", 2)
PLACES = {"oren": SLOW, "brida": SLOW, "ismay": QUICK, "tomas": QUICK}
LIMIT = 6
BACK_SECONDS = 5.0


class Schedulings(RuleBasedStateMachine):
    """Random steps on a scheduler, compared with a simple model of what it should do."""

    @initialize(max_running=st.integers(1, 3), cooldown_seconds=st.sampled_from([0.0, 2.0]))
    def begins(self, max_running, cooldown_seconds):
        self.clock = Clock()
        self.max_running = max_running
        self.cooldown_seconds = cooldown_seconds
        self.scheduler = Scheduler(
            self.clock,
            max_running=max_running,
            queue_limit=LIMIT,
            cooldown_seconds=cooldown_seconds,
            on_error=lambda key, failure: self.errors.append(failure.getErrorMessage()),
        )
        self.errors = []
        self.number = 0
        self.works = {}
        self.waits = {(key, chatter): [] for key in KEYS for chatter in (False, True)}
        self.running = {}
        self.rests_until = dict.fromkeys(KEYS, 0.0)
        # For each waiting key: how often each other key started an answer while this one waited.
        self.passed = {key: defaultdict(int) for key in KEYS}

    def work(self, key, chatter):
        self.number += 1
        number = self.number

        def run():
            self.has_started(key, chatter, number)
            self.running[key] = (Deferred(), chatter, number)
            return self.running[key][0]

        self.works[number] = run
        return number

    def has_started(self, key, chatter, number):
        assert key not in self.running, "two in flight"
        assert len(self.running) < self.max_running, "too many in flight"
        assert self.has_place(key), "too many in flight for one model"
        assert self.clock.seconds() >= self.rests_until[key], "it has not rested"
        waits = self.waits[key, chatter]
        assert waits[0] == number, "not in the order of the key"
        assert not (chatter and self.waits[key, False]), "chatter before a person"
        waits.pop(0)
        self.rests_until[key] = self.clock.seconds() + self.cooldown_seconds
        for other in KEYS:
            if PLACES[other] != PLACES[key] or other == key or chatter:
                continue
            if self.may_start(other) and self.waits[other, False]:
                self.passed[other][key] += 1
                assert self.passed[other][key] <= 1, "one key goes before another twice"
        self.passed[key].clear()

    def may_start(self, key):
        waits = self.waits[key, False] or self.waits[key, True]
        rested = self.rests_until[key] <= self.clock.seconds()
        return bool(waits) and rested and key not in self.running and self.has_place(key)

    def has_place(self, key):
        place = PLACES[key]
        return sum(PLACES[other] == place for other in self.running) < place.most

    @rule(offers=st.lists(st.tuples(st.sampled_from(KEYS), st.booleans()), min_size=1, max_size=6))
    def offer_some_work(self, offers):
        for key, chatter in offers:
            self.offer(key, chatter)

    def offer(self, key, chatter):
        number = self.work(key, chatter)
        waiting = self.scheduler.waiting(key)
        taken = self.scheduler.offer(key, self.works[number], place=PLACES[key], chatter=chatter)
        if taken:
            self.waits[key, chatter].append(number)
        else:
            assert waiting >= LIMIT or (chatter and len(self.waits[key, True]) >= LIMIT // 2)

    @precondition(lambda self: self.running)
    @rule(data=st.data(), again=st.booleans())
    def end_one_work(self, data, again):
        key = data.draw(st.sampled_from(sorted(self.running)))
        done, chatter, number = self.running[key]
        if again:
            self.waits[key, chatter].insert(0, number)
            self.rests_until[key] = self.clock.seconds() + BACK_SECONDS
            work = self.works[number]
            self.scheduler.put_back(key, work, delay_seconds=BACK_SECONDS, chatter=chatter)
        del self.running[key]
        done.callback(None)

    @rule(seconds=st.sampled_from([0.0, 0.5, 2.0, 10.0]))
    def pass_time(self, seconds):
        self.clock.advance(seconds)

    @rule(key=st.sampled_from(KEYS), data=st.data())
    def withdraw_some_work(self, key, data):
        waits = [*self.waits[key, False], *self.waits[key, True]]
        gone = data.draw(st.lists(st.sampled_from(waits), unique=True)) if waits else []
        works = [self.works[number] for number in gone]
        assert self.scheduler.withdraw(key, works) == len(gone)
        for chatter in (False, True):
            kept = [number for number in self.waits[key, chatter] if number not in gone]
            self.waits[key, chatter] = kept
        self.passed[key].clear()

    @rule(key=st.sampled_from(KEYS))
    def withdraw_all_work_of_one_key(self, key):
        waits = [*self.waits[key, False], *self.waits[key, True]]
        works = [self.works[number] for number in waits]
        assert self.scheduler.withdraw(key, works) == len(waits)
        self.waits[key, False], self.waits[key, True] = [], []
        self.passed[key].clear()

    @invariant()
    def counts_match_the_model(self):
        if not hasattr(self, "scheduler"):
            return
        for key in KEYS:
            waits = len(self.waits[key, False]) + len(self.waits[key, True])
            assert self.scheduler.waiting(key) == waits
            assert self.scheduler.in_flight(key) == (key in self.running)
        assert self.scheduler.waiting_in_all == sum(map(len, self.waits.values()))
        assert self.scheduler.running == len(self.running)

    @invariant()
    def no_start_broke_a_rule(self):
        assert not getattr(self, "errors", [])

    @invariant()
    def next_start_is_scheduled(self):
        """If work may start now or later, the scheduler has planned a call for that."""
        if not hasattr(self, "scheduler"):
            return
        waits = any(self.waits[key, False] or self.waits[key, True] for key in KEYS)
        free = len(self.running) < self.max_running
        idle = any(
            (self.waits[key, False] or self.waits[key, True])
            and key not in self.running
            and self.has_place(key)
            for key in KEYS
        )
        if waits and free and idle:
            assert self.clock.getDelayedCalls()

    def teardown(self):
        """End all running work until the queues are empty: accepted work must have started."""
        if not hasattr(self, "scheduler"):
            return
        for _ in range(500):
            for key in sorted(self.running):
                self.running.pop(key)[0].callback(None)
            self.clock.advance(BACK_SECONDS)
        assert not self.errors
        assert not any(self.waits.values())


TestSchedulings = Schedulings.TestCase
TestSchedulings.settings = settings(max_examples=up_to(60), stateful_step_count=40, deadline=None)


@given(
    st.lists(st.sampled_from(KEYS), max_size=40),
    st.lists(st.sampled_from(KEYS), max_size=20),
)
def test_one_of_five_starts_is_chatter_when_chatter_waits(people, chatter):
    clock, started = Clock(), []
    scheduler = Scheduler(
        clock,
        max_running=1,
        queue_limit=100,
        cooldown_seconds=0.0,
        on_error=lambda key, failure: failure.raiseException(),
    )
    for key in people:
        scheduler.offer(f"p {key}", lambda: started.append("person"))
    for key in chatter:
        scheduler.offer(f"c {key}", lambda: started.append("chatter"), chatter=True)
    clock.advance(0)
    assert Counter(started) == Counter(person=len(people), chatter=len(chatter))
    while "chatter" in started and "person" in started:
        assert "chatter" in started[:CHATTER_SHARE]
        if started.count("person") >= CHATTER_SHARE:
            assert started[: CHATTER_SHARE - 1] == ["person"] * (CHATTER_SHARE - 1)
        del started[: started.index("chatter") + 1]
