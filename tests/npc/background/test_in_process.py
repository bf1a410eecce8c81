"""Jobs done in the game's own process: locks, queue limits, and how each job ends."""

from dataclasses import dataclass, field

import pytest
from twisted.internet.defer import Deferred

from evennia_ai.engine.errors import EvenniaAIError, StaleError
from evennia_ai.npc.background.applying import GameKind
from evennia_ai.npc.jobs.job import Job
from evennia_ai.services.llm.chat import ChatMessage
from evennia_ai.services.settings.workers import WorkerSettings


@dataclass
class Sums:
    """A test kind of job: it asks a model and lists its starts, results and endings."""

    name: str = "sums"
    fails_with: Exception | None = None
    is_stale: bool = False
    gates: list = field(default_factory=list)
    began: list = field(default_factory=list)
    applied: list = field(default_factory=list)
    ends: list = field(default_factory=list)

    async def run(self, job, tools):
        self.began.append(job.idempotency)
        if self.gates:
            await self.gates.pop(0)
        if self.fails_with is not None:
            raise self.fails_with
        total = await tools.off(sum, job.given["numbers"])
        (access, *_) = tools.models("summariser")
        request = access.request([ChatMessage(role="user", content="How much?")], max_tokens=9)
        reply = await tools.ask(access, request, role="summariser", npc_ref="12", name="sums")
        return {"total": total, "said": reply.text}

    def apply(self, job, body):
        if self.is_stale:
            raise StaleError("the numbers were changed")
        self.applied.append((job.idempotency, dict(body)))

    def ended(self, job, ending, reason):
        self.ends.append((job.idempotency, ending, reason))


def a_job(name="sums:1", **fields):
    return Job(kind="sums", idempotency=name, given={"numbers": [1, 2]}, **fields)


@pytest.fixture
def sums(stage):
    stage.talks_with("Three.", "Three.", "Three.")
    kind = Sums()
    stage.running.runtime().work.add(GameKind(does=kind, applies=kind))
    return kind


def submitted(stage, *jobs):
    ends = []
    for job in jobs:
        stage.running.runtime().work.submit(job).addCallback(ends.append)
    return ends


def test_job_asks_the_models_of_the_game_and_is_applied(stage, sums):
    ends = submitted(stage, a_job())
    assert ends == [("applied", "")]
    assert sums.applied == [("sums:1", {"total": 3, "said": "Three."})]
    assert sums.ends == [("sums:1", "applied", "")]


def test_jobs_with_the_same_lock_run_one_at_a_time(stage, sums):
    gate = Deferred()
    sums.gates.append(gate)
    ends = submitted(stage, a_job("a", lock="npc:1"), a_job("b", lock="npc:1"), a_job("c"))
    assert sums.began == ["a", "c"]
    gate.callback(None)
    assert sums.began == ["a", "c", "b"]
    assert ends == [("applied", "")] * 3


def test_job_is_refused_when_another_with_its_queueing_lock_waits(stage, sums):
    sums.gates.append(Deferred())
    locks = {"lock": "npc:1", "queueing_lock": "sums"}
    ends = submitted(stage, a_job("a", **locks), a_job("b", **locks), a_job("c", **locks))
    assert ends == [("waiting", "another job with the lock sums is waiting")]
    assert submitted(stage, a_job("a")) == [("waiting", "a is running")]


def test_job_is_refused_when_too_many_of_its_kind_wait(stage):
    stage.talks_with("Three.", workers=WorkerSettings(caps={"sums": 1}))
    kind = Sums(gates=[Deferred()])
    stage.running.runtime().work.add(GameKind(does=kind, applies=kind))
    jobs = [a_job(name, lock="npc:1") for name in "abc"]
    assert submitted(stage, *jobs) == [("over", "1 of sums wait")]


def test_stale_job_is_not_applied(stage, sums):
    sums.is_stale = True
    assert submitted(stage, a_job()) == [("stale", "the numbers were changed")]
    assert sums.ends == [("sums:1", "stale", "the numbers were changed")]


def test_job_fails_with_the_reason_that_its_function_raises(stage, sums):
    sums.fails_with = EvenniaAIError("no model can be asked")
    assert submitted(stage, a_job()) == [("failed", "no model can be asked")]


def test_job_is_poisoned_after_three_unexpected_errors(stage, sums, logged):
    sums.fails_with = ZeroDivisionError("by zero")
    ends = submitted(stage, *[a_job()] * 4)
    assert ends[:3] == [("failed", "ZeroDivisionError: by zero")] * 3
    assert ends[3] == ("poisoned", "sums:1 failed 3 times")
    assert len(sums.began) == 3
    assert "job sums:1 failed unexpectedly" in logged[0]


def test_job_lapses_after_its_deadline(stage, sums):
    now = stage.clock.seconds()
    assert submitted(stage, a_job(deadline=now - 1)) == [("lapsed", "nobody started it in time")]
    assert sums.began == []


def test_submit_refuses_an_unknown_kind_and_names_it(stage, sums):
    with pytest.raises(KeyError, match="no kind of work 'dance' was added"):
        stage.running.runtime().work.submit(Job(kind="dance", idempotency="dance:1"))
