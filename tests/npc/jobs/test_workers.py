"""Workers and games as processes that die: each job is still applied exactly once.

There are few tests with many jobs each, because starting processes is slow.
"""

import os
import signal
import time
from itertools import count

import pytest

from tests.npc.jobs.processes import MANY, a_job, told

pytestmark = [pytest.mark.service, pytest.mark.long, pytest.mark.minutes(4)]

SECONDS = 150
JOBS = 60
"""How many jobs the game and the workers do in the longest test."""
POINTS = 25
"""The least number of points in the work for one job, two per SQL statement."""
CUTS = 12
"""The least number of statements before which the connection is cut."""


def until(is_so, *, seconds=SECONDS):
    """Wait until `is_so` returns true, and fail after this time."""
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, "the condition did not become true"
        time.sleep(0.2)


def test_workers_compute_the_same_as_the_game_without_importing_evennia(place):
    jobs = [a_job(number, lock=f"npc:{number % 5}") for number in range(JOBS)]
    here = place.game(jobs=jobs, workers={"queue": "inprocess"}, seconds=SECONDS)
    assert set(place.ends(here, seconds=SECONDS).values()) == {"applied"}
    by_game = place.ledger()
    assert len(by_game) == JOBS

    place.sql("DELETE FROM evennia_ai_memory")
    first, second = place.worker("w1"), place.worker("w2")
    look = a_job(900, look=True)
    game = place.game(jobs=[*jobs, look], seconds=SECONDS)
    assert set(place.ends(game, seconds=SECONDS).values()) == {"applied"}
    assert place.ledger() == [*by_game, "loaded []"]
    assert place.queued() == 0
    assert set(told(game)[-1]["workers"]) <= {"w1", "w2"}
    calls = place.sql("SELECT count(*) FROM evennia_ai_modelcall WHERE outcome = 'answered'")
    assert calls == [(2 * JOBS + 1,)]
    for worker in (first, second):
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(SECONDS) == 0
    assert place.sql("SELECT count(*) FROM evennia_ai_worker") == [(0,)]


def test_every_job_ends_once_when_workers_die_at_each_step(place, tmp_path):
    steps = ("claimed", "asked", "offered")
    jobs = [a_job(number, lock=f"npc:{number % 3}") for number in range(9)]
    jobs += [
        a_job(100 + number, die_at=step, mark=str(tmp_path / step))
        for number, step in enumerate(steps[:2])
    ]
    jobs += [
        a_job(200, fails="foreseen"),
        a_job(201, fails="unforeseen"),
        a_job(202, fails="in apply"),
        a_job(203, stale=True),
        a_job(204, deadline=1.0),
    ]
    doomed = {"die_at": "offered", "mark": str(tmp_path / "offered")}
    workers = [place.worker(f"w{number}", **doomed) for number in range(2)]
    game = place.game(jobs=jobs, seconds=SECONDS)
    deaths = 0

    def is_over():
        nonlocal deaths
        for number, worker in enumerate(workers):
            if worker.poll() is not None:
                assert worker.returncode == -signal.SIGKILL, worker.err.read_text()
                deaths += 1
                workers[number] = place.worker(f"again{deaths}", **doomed)
        return game.poll() is not None

    until(is_over)
    ends = place.ends(game)
    assert deaths == len(steps)
    others = {"ledger:200": "failed", "ledger:201": "poisoned", "ledger:202": "poisoned"}
    others |= {"ledger:203": "stale", "ledger:204": "lapsed"}
    expected = {job["idempotency"]: "applied" for job in jobs} | others
    assert ends == expected
    assert place.proposals() == expected
    applied = sorted(name for name, ending in ends.items() if ending == "applied")
    assert sorted(line.partition(": ")[0] for line in place.ledger()) == applied
    assert place.sql("SELECT count(*) FROM evennia_ai_memory WHERE npc_ref = 'half'") == [(0,)]
    reasons = dict(place.sql("SELECT idempotency, reason FROM evennia_ai_proposal"))
    assert reasons["ledger:201"] == "ZeroDivisionError: by zero"
    assert reasons["ledger:202"] == "KeyError: 'what nobody foresaw'"
    assert place.queued() == 0


def test_every_job_ends_once_when_its_worker_dies_at_any_statement(place):
    named = (
        'job: behind UPDATE "evennia_ai_tokenlease"',
        'job: behind INSERT INTO "evennia_ai_proposal"',
        "job: behind COMMIT",
        "job: behind SELECT procrastinate_finish_job",
    )
    points = *range(POINTS), *named
    jobs = [a_job(number, lock=f"npc:{number % 7}", npc=7) for number in range(2 * len(points))]
    game = place.game(jobs=jobs, seconds=SECONDS)
    until(lambda: place.queued() == len(jobs))
    for point in points:
        worker = place.worker(f"dies at {point}", at_once=1, dies_at=point)
        assert worker.wait(SECONDS) == -signal.SIGKILL, worker.err.read_text()

    place.worker("lives")
    ends = place.ends(game)
    reasons = dict(place.sql("SELECT idempotency, reason FROM evennia_ai_proposal"))
    others = {reasons[name] for name, ending in ends.items() if ending != "applied"}
    assert others <= {"3 workers died while doing it"}
    assert set(ends) == {job["idempotency"] for job in jobs}
    applied = sorted(name for name, ending in ends.items() if ending == "applied")
    assert len(applied) >= len(jobs) - len(points) // 3
    assert sorted(line.partition(": ")[0] for line in place.ledger()) == applied
    assert place.queued() == 0


@pytest.fixture
def dies_at(place):
    """A function that runs a game with one job until it dies at a point, and returns the point."""

    def died(job, point):
        game = place.game(jobs=[job], seconds=SECONDS, dies_at=point)
        assert game.wait(SECONDS) == -signal.SIGKILL, game.err.read_text()
        (last,) = (one["point"] for one in told(game) if "point" in one)
        return last

    return died


def test_every_job_ends_once_when_its_game_dies_at_any_statement(place, places, dies_at):
    """Each game submits its job and then applies the oldest offer, perhaps of an earlier job."""
    place.worker("lives")
    points, jobs, others = [], [], []
    while not points or points[-1] != "applying: behind COMMIT":
        jobs.append(a_job(len(jobs)))
        points.append(dies_at(jobs[-1], len(points)))
    place.ends(place.game(jobs=jobs, seconds=SECONDS))
    assert len(points) > POINTS, points
    for part in ("submitting: behind SELECT unnest( procrastinate_", "taking up: before SELECT"):
        assert any(point.startswith(part) for point in points), points

    is_of_applying = [point.startswith("applying") for point in points]
    for number in range(is_of_applying.index(True), len(points)):
        others.append(a_job(100 + number, stale=True))
        points.append(dies_at(others[-1], number))
    assert any("ROLLBACK TO SAVEPOINT" in point for point in points), points

    jobs += [*others, a_job(200, fails="foreseen"), a_job(201, fails="unforeseen")]
    ends = place.ends(place.game(jobs=jobs, seconds=SECONDS))
    unharmed = places()
    unharmed.worker("lives")
    expected = unharmed.ends(unharmed.game(jobs=jobs, seconds=SECONDS))
    assert ends == expected
    assert set(expected.values()) == {"applied", "stale", "failed", "poisoned"}
    assert place.proposals() == unharmed.proposals() == expected
    assert place.ledger() == unharmed.ledger()
    calls = "SELECT npc_ref, outcome FROM evennia_ai_modelcall ORDER BY npc_ref"
    assert place.sql(calls) == unharmed.sql(calls)
    assert place.queued() == 0


def test_jobs_are_applied_once_when_the_game_dies_while_applying_several(place):
    jobs = [a_job(number) for number in range(12)]
    place.worker("w1")
    for point in ("before commit", "after commit"):
        game = place.game(jobs=jobs, seconds=SECONDS, die_at=point, after=3)
        assert game.wait(SECONDS) == -signal.SIGKILL, game.err.read_text()
    assert set(place.ends(place.game(jobs=jobs, seconds=SECONDS)).values()) == {"applied"}
    entered = sorted(line.partition(": ")[0] for line in place.ledger())
    assert entered == sorted(job["idempotency"] for job in jobs)


def test_jobs_are_applied_once_when_a_worker_stops_and_connections_are_lost(place, tmp_path):
    jobs = [a_job(number, tokens=20) for number in range(12)]
    stopped = place.worker("stopped", at_once=1)
    until(lambda: place.sql("SELECT count(*) FROM evennia_ai_worker") == [(1,)])
    game = place.game(jobs=jobs, seconds=SECONDS)
    until(lambda: place.proposals())
    os.kill(stopped.pid, signal.SIGSTOP)
    place.worker("w2")
    until(lambda: place.sql("SELECT count(*) FROM evennia_ai_worker") == [(2,)])
    place.sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    assert set(place.ends(game, seconds=SECONDS).values()) == {"applied"}
    os.kill(stopped.pid, signal.SIGCONT)
    more = place.game(jobs=[a_job(number) for number in range(20, 26)], seconds=SECONDS)
    assert set(place.ends(more, seconds=SECONDS).values()) == {"applied"}
    assert len(place.ledger()) == len(set(place.ledger())) == 18
    assert stopped.poll() is None, stopped.err.read_text()


def test_jobs_are_applied_once_and_the_lock_is_logged_when_tables_are_locked(place):
    worker = place.worker("w1")
    game = place.game(jobs=[a_job(number, tokens=20) for number in range(12)], seconds=SECONDS)
    until(lambda: place.proposals())
    with place.locked("evennia_ai_proposal", "evennia_ai_tokenlease", "evennia_ai_worker"):
        until(lambda: "another process has locked the database" in worker.err.read_text())
    assert set(place.ends(game, seconds=SECONDS).values()) == {"applied"}
    assert len(place.ledger()) == len(set(place.ledger())) == 12
    until(lambda: "the database is not locked any more" in worker.err.read_text())


def test_job_is_applied_once_when_the_database_connection_breaks_before_any_statement(place):
    number = count()

    def cut(*, game_at, worker_at):
        """Do one job while both connections are cut. Return the points of game and worker."""
        job = a_job(next(number))
        worker = place.worker(f"cut with {job['idempotency']}", at_once=1, cut_at=worker_at)
        game = place.game(jobs=[job], seconds=SECONDS, cut_at=game_at)
        assert place.ends(game) == {job["idempotency"]: "applied"}
        until(lambda: place.queued() == 0)
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(SECONDS) == 0
        return [[one["point"] for one in told(each) if "point" in one] for each in (game, worker)]

    met = {"game": 0, "worker": 0}
    for point in count(step=2):
        of_game, of_worker = cut(game_at=point, worker_at=point)
        met["game"] += len(of_game)
        met["worker"] += len(of_worker)
        if not of_game and not of_worker:
            break
    assert min(met.values()) >= CUTS, met

    named = (
        ("submitting: before COMMIT", "job: before UPDATE"),
        ("taking up: before", "job: before INSERT"),
        ("applying: before COMMIT", "job: before SELECT procrastinate"),
    )
    for game_at, worker_at in named:
        (of_game,), (of_worker,) = cut(game_at=game_at, worker_at=worker_at)
        assert of_game.startswith(game_at)
        assert of_worker.startswith(worker_at)
    assert len(place.ledger()) == len(set(place.ledger())) == next(number)


def test_worker_ends_when_the_connection_pool_loses_a_cancellation(place):
    """Python 3.11's `asyncio.wait_for` loses a cancellation that arrives as its wait ends."""
    worker = place.worker("w1", loses_cancellation=True)
    until(lambda: place.sql("SELECT count(*) FROM evennia_ai_worker") == [(1,)])
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(SECONDS) == 0


def test_worker_of_another_version_leaves_jobs_in_the_queue_or_refuses_them(place):
    game = place.game(jobs=[a_job(1)], seconds=SECONDS)
    other = place.worker("old", version=0)
    until(lambda: "skips jobs of kind ledger and version 1" in other.err.read_text())
    assert place.queued() == 1
    assert place.proposals() == {}
    other.kill()

    # With `any_queue` the worker takes jobs of another version too.
    place.worker("older", version=0, any_queue=True)
    assert place.ends(game, seconds=SECONDS) == {"ledger:1": "failed"}
    ((reason,),) = place.sql("SELECT reason FROM evennia_ai_proposal")
    assert "'ledger:1' is of version 1 and this does version 0: update this worker" in reason


def test_game_continues_without_the_queue_and_submits_its_jobs_later(place):
    place.workers_set = {**place.workers_set, "caps": {"ledger": 5}}
    jobs = [a_job(number) for number in range(8)]
    place.sql("ALTER TABLE procrastinate_jobs RENAME TO away")
    game = place.game(jobs=jobs, seconds=SECONDS)
    until(
        lambda: "the queue of workers is unreachable" in game.err.read_text() + game.out.read_text()
    )
    assert game.poll() is None
    place.sql("ALTER TABLE away RENAME TO procrastinate_jobs")
    until(lambda: sum(one.get("ending") == "over" for one in told(game)) == 3)
    place.worker("w1")
    ends = place.ends(game, seconds=SECONDS)
    assert sorted(ends.values()) == ["applied"] * 5 + ["over"] * 3
    assert len(place.ledger()) == 5


def test_workers_together_keep_the_limits_of_each_npc(place):
    place.limits = {"npc": {"calls_per_minute": 3}, "game": MANY}
    jobs = [a_job(number, npc=7) for number in range(6)]
    jobs += [a_job(number, npc=8, limits={"calls_per_minute": 2}) for number in range(10, 14)]
    jobs += [a_job(20, npc=9, limits={"tokens_per_minute": 5})]
    for number in range(2):
        place.worker(f"w{number}", at_once=8)
    place.game(jobs=jobs, lives_seconds=SECONDS)

    def leases():
        rows = "SELECT npc_ref, max(calls) FROM evennia_ai_tokenlease GROUP BY npc_ref"
        return dict(place.sql(rows))

    until(lambda: leases().get("7") == 3 and leases().get("8") == 2)
    until(lambda: place.proposals().get("ledger:20") == "failed")
    ((reason,),) = place.sql("SELECT reason FROM evennia_ai_proposal WHERE state = 'failed'")
    assert "is more than NPC #9 may use in a minute" in reason
    assert {npc: most for npc, most in leases().items() if npc} == {"7": 3, "8": 2}


LOCKS = {"lock": "npc:7", "queueing_lock": "observe:7"}


def test_job_of_a_dead_worker_lapses_when_a_newer_job_waits_for_its_lock(place, tmp_path):
    mark = str(tmp_path / "mark")
    place.game(jobs=[a_job(1, die_at="asked", mark=mark, **LOCKS)], lives_seconds=SECONDS)
    assert place.worker("dies").wait(SECONDS) == -signal.SIGKILL
    place.game(jobs=[a_job(2, **LOCKS)], lives_seconds=SECONDS)
    until(lambda: place.queued() == 2)
    place.worker("lives")
    until(lambda: place.proposals() == {"ledger:1": "lapsed", "ledger:2": "applied"})


def test_job_with_unexpected_errors_ends_when_a_newer_job_waits_for_its_lock(place):
    place.game(jobs=[a_job(1, fails="unforeseen", **LOCKS)], lives_seconds=SECONDS)
    until(lambda: place.queued() == 1)
    worker = place.worker("w1")
    until(lambda: "is tried again: ZeroDivisionError" in worker.err.read_text())
    place.game(jobs=[a_job(2, **LOCKS)], lives_seconds=SECONDS)
    until(lambda: place.proposals() == {"ledger:1": "poisoned", "ledger:2": "applied"})
    assert place.queued() == 0
