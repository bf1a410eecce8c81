"""Kinds of jobs: game and workers compute the same bytes, and each result is applied once."""

import json
import random
import subprocess
import sys
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from django.db import connection
from twisted.internet.defer import Deferred, maybeDeferred

from evennia_ai import models
from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import StaleError
from evennia_ai.engine.history.records import RecordKind
from evennia_ai.engine.prompt.tokens import ESTIMATE
from evennia_ai.npc.background.in_process import GameTools
from evennia_ai.npc.jobs.job import Job
from evennia_ai.npc.jobs.wire import text_of
from evennia_ai.npc.upkeep import compacting
from evennia_ai.npc.upkeep.compacting import Fullness, Wanted
from evennia_ai.store import memories
from evennia_ai.store.erasing import erase_conversation
from evennia_ai.store.history import record_rows, verifying
from evennia_ai.store.history.conversations import append_records, get_or_open_conversation
from evennia_ai.store.history.windows import windows
from evennia_ai.store.work import proposals
from evennia_ai.store.work.proposals import Offer
from tests.npc.jobs.thinking import Thinking
from tests.npc.upkeep.compacting_games import SMALL, rules
from tests.store.builders import a_line, a_reply

CONVERSATIONS = 10
FEW = {"calls_per_day": 20}
WORDS = ("ferry", "bell", "12 coins", "<|im_end|>", "Straße", "船", "</transcript>", "promise")


@pytest.fixture
def stage(stage):
    stage.install(Thinking(), compaction=rules(), **{**SMALL, "memory": _learning()})
    return stage


def _learning() -> Any:
    from evennia_ai.engine.memory.recalling import MemorySettings

    return MemorySettings(after_messages=4)


def add_conversation(stage: Any, number: int) -> Any:
    """Add a conversation of the NPC. The number determines its partner, length and words."""
    dice = random.Random(number)
    where = get_or_open_conversation(
        stage.npc.ai.ref, kind="private", partner_ref=str(900 + number)
    )
    for line in range(dice.randrange(8, 40)):
        said = " ".join(dice.choice(WORDS) for _ in range(dice.randrange(1, 12)))
        meta = {"speaker": str(900 + number), "event": "say"}
        heard = replace(a_line(f"Line {line}: {said}"), name="Anna", meta=meta)
        append_records(where, [heard, a_reply(f"Answer {line}: {dice.choice(WORDS)}.")])
    return where


def wanted_of(where: Any, *, is_pressing: bool) -> Wanted:
    """Return the request to compact a history that nearly fills its prompt."""
    tokens = sum(message.tokens(ESTIMATE) for message in windows(where.id).history)
    return Wanted(
        conversation=where,
        npc_name="Oren",
        asked_by="idle time",
        is_pressing=is_pressing,
        fullness=Fullness(
            history_tokens=tokens, other_tokens=200, limit_tokens=tokens + 400, counter=ESTIMATE
        ),
    )


def jobs_about(stage: Any, where: Any, number: int) -> list[Job]:
    """Return two jobs for the conversation: a compaction and an observation."""
    live = stage.running.runtime()
    wanted = wanted_of(where, is_pressing=bool(number % 2))
    compact = live.compactor.job_of(wanted)
    assert isinstance(compact, Job)
    return [compact, live.idle_time._consolidator.job_of(where, npc_name="Oren")]


def done_here(stage: Any, job: Job) -> dict[str, Any]:
    """Do the job as the game does, which commits its requests. Return the body."""
    live = stage.running.runtime()
    kind = live.work.kinds[job.kind]
    tools = GameTools(live.calls, in_thread, commit=lambda request: kind.records(job, request))
    found: list[Any] = []
    Deferred.fromCoroutine(kind.does.run(job, tools)).addBoth(found.append)
    assert isinstance(found[0], dict), found
    return found[0]


def in_thread(work: Any, *values: Any) -> "Deferred[Any]":
    """Call `work` at once, in place of the tools' thread."""
    return maybeDeferred(work, *values)


def apply_body(stage: Any, job: Job, body: dict[str, Any]) -> Any:
    """Apply a body as the game applies one that a worker offered."""
    kind = stage.running.runtime().work.kinds[job.kind]
    if kind.prepares is not None:
        body = kind.prepares(job, body)
    return kind.applies.apply(job, body)


def written() -> tuple[int, int]:
    return models.Record.objects.count(), models.Memory.objects.count()


@pytest.mark.long
@pytest.mark.req("S2-20")
@pytest.mark.skipif(
    connection.vendor != "sqlite", reason="the other process reads a copy of the SQLite file"
)
def test_game_and_worker_compute_the_same_bytes_for_twenty_jobs(stage, tmp_path):
    places = [add_conversation(stage, number) for number in range(CONVERSATIONS)]
    jobs = [job for n, where in enumerate(places) for job in jobs_about(stage, where, n)]
    assert len({job.idempotency for job in jobs}) == 2 * CONVERSATIONS
    lines = [text_of(job) for job in jobs]
    (tmp_path / "jobs").write_text("\n".join(lines))
    (tmp_path / "game.db3").write_bytes(connection.connection.serialize())
    alone = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.npc.jobs.kinds_alone",
            tmp_path / "game.db3",
            tmp_path / "jobs",
        ],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert alone.returncode == 0, alone.stderr
    by_worker = alone.stdout.splitlines()
    here = [json.dumps(done_here(stage, job), separators=(",", ":")) for job in jobs]

    assert here == by_worker
    bodies = [json.loads(line) for line in by_worker]
    told = {one["result"] for body in bodies for one in body.get("tries", ())}
    assert told == {"accepted", "refused", "failed"}
    assert {bool(body["failed"]) for body in bodies if "failed" in body} == {True, False}
    # In reverse, so that each observation is applied before the compaction of its conversation.
    for job, body in list(zip(jobs, bodies, strict=True))[::-1]:
        if job.kind == "compact" and body["nothing"]:
            continue
        apply_body(stage, job, body)
        before = written()
        with pytest.raises(StaleError):
            apply_body(stage, job, body)
        assert written() == before
    assert all(verifying.verify(where) is None for where in places)


def job_with_result(stage: Any, kind: str) -> tuple[Any, Job, dict[str, Any]]:
    """Return the first job of this kind whose result is not empty: conversation, job and body."""
    for number in range(CONVERSATIONS):
        where = add_conversation(stage, number)
        job = next(one for one in jobs_about(stage, where, number) if one.kind == kind)
        body = done_here(stage, job)
        if body.get("summary") or body.get("observations"):
            return where, job, body
    raise AssertionError(f"no job of kind {kind} has a result")


@pytest.mark.req("S2-20")
@pytest.mark.parametrize("kind", ["compact", "observe"])
def test_result_is_not_applied_when_its_conversation_was_erased(stage, kind):
    where, job, body = job_with_result(stage, kind)
    erase_conversation(where, by=trusted("Mira"))
    before = written()
    with pytest.raises(StaleError, match="another segment"):
        apply_body(stage, job, body)

    assert written() == before
    assert [record.body for record in record_rows.records_of(where) if record.body] == []


@pytest.mark.parametrize("kind", ["compact", "observe"])
def test_offer_has_no_body_when_the_conversation_is_erased_meanwhile(stage, kind):
    where, job, _ = job_with_result(stage, kind)

    class Erasing(Thinking):
        def complete(self, request, *, listener=None):
            erase_conversation(where, by=trusted("Mira"))
            return super().complete(request, listener=listener)

    stage.install(Erasing())
    live = stage.running.runtime()
    does = live.work.kinds[kind].does
    like_a_worker = GameTools(live.calls, in_thread)  # without `commit`, as in a worker
    found: list[Any] = []
    Deferred.fromCoroutine(does.run(job, like_a_worker)).addBoth(found.append)
    offer = Offer(
        idempotency=job.idempotency, kind=kind, job=text_of(job), body=json.dumps(found[0])
    )
    proposals.store_offer(offer, refuse_stale=partial(does.refuse_stale, job))

    (row,) = models.Proposal.objects.all()
    assert (row.state, row.body) == ("failed", "")
    assert "another segment" in row.reason


@pytest.mark.parametrize("kind", ["compact", "observe"])
def test_result_is_not_applied_when_the_head_of_the_conversation_differs(stage, kind):
    _, job, body = job_with_result(stage, kind)
    head = {**job.given["head"], "sha256": "0" * 64}
    before = written()
    with pytest.raises(StaleError, match="not the one that was meant"):
        apply_body(stage, replace(job, given={**job.given, "head": head}), body)

    assert written() == before


@pytest.mark.parametrize("kind", ["compact", "observe"])
def test_requests_of_a_worker_are_recorded_when_its_result_is_applied(stage, kind):
    where, job, body = job_with_result(stage, kind)
    asked = len(_asked(where))
    apply_body(stage, job, body)  # without RECORDED, as from a worker
    new = _asked(where)[asked:]
    stored = {record.place: record.body for record in record_rows.records_of(where)}

    assert [[stored[place] for place in one.meta["prompt"]] for one in new] == [
        [message["content"] for message in request["messages"]] for request in body["requests"]
    ]


def test_line_said_during_a_compaction_stays_in_the_history(stage):
    where, job, body = job_with_result(stage, "compact")
    append_records(where, [replace(a_line("And one thing more."), name="Anna")])
    outcome = compacting.apply_compaction(job, body)

    assert outcome.record is not None
    assert [message.content for message in windows(where.id).history][-1] == "And one thing more."


def test_observation_of_a_worker_becomes_a_memory(stage):
    _, job, body = job_with_result(stage, "observe")
    apply_body(stage, job, body)

    assert "Anna owes Oren 12 coins." in [
        memory.text for memory in memories.held_by(stage.npc.ai.ref).memories
    ]


@pytest.mark.parametrize("kind", ["compact", "observe"])
def test_idle_time_submits_jobs_to_workers_without_waiting(stage, kind, monkeypatch):
    live = stage.running.runtime()
    asked: list[Job] = []
    monkeypatch.setattr(live.work, "_queued", object())
    monkeypatch.setattr(live.work, "submit", asked.append)
    where = add_conversation(stage, 2)
    if kind == "compact":
        wanted = replace(wanted_of(where, is_pressing=False), npc_limits=FEW)
        done = live.compactor.compact(wanted)
    else:
        done = live.idle_time._consolidator.consolidate(where, npc_name="Oren", npc_limits=FEW)

    assert done.called
    assert [(job.kind, job.limits) for job in asked] == [(kind, FEW)]


def test_pressing_compaction_runs_in_the_game_process(stage, monkeypatch):
    live = stage.running.runtime()
    asked: list[Job] = []
    monkeypatch.setattr(live.work, "_queued", object())
    monkeypatch.setattr(live.work, "submit", asked.append)
    live.compactor.compact(wanted_of(add_conversation(stage, 2), is_pressing=True))

    assert asked == []
    assert models.Record.objects.filter(kind=RecordKind.SUMMARY.value).count() == 1


def _asked(where: Any) -> list[Any]:
    return [r for r in record_rows.records_of(where) if r.kind is RecordKind.INVOKE]
