"""Kinds of work: the same bytes in the game and in a worker, and applied once or not at all."""

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
from evennia_ai.npc.upkeep.compacting import Wanted
from evennia_ai.npc.upkeep.fullness import Fullness
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

CONVERSATIONS = 40
FEW = {"calls_per_day": 20}
WORDS = ("ferry", "bell", "12 coins", "<|im_end|>", "Straße", "船", "</transcript>", "promise")


@pytest.fixture
def stage(stage):
    stage.install(Thinking(), compaction=rules(), **{**SMALL, "memory": _learning()})
    return stage


def _learning() -> Any:
    from evennia_ai.engine.memory.recalling import MemorySettings

    return MemorySettings(after_messages=4)


def talk(stage: Any, number: int) -> Any:
    """A conversation of the NPC of a length and in words that its number tells."""
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
    """A compaction of a history that is nearly full."""
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
    """A compaction and an observation of it."""
    live = stage.running.runtime()
    wanted = wanted_of(where, is_pressing=bool(number % 2))
    compact = live.compactor.job_of(wanted)
    assert isinstance(compact, Job)
    return [compact, live.idle_time._consolidator.job_of(where, npc_name="Oren")]


def done_here(stage: Any, job: Job) -> dict[str, Any]:
    """The body that the game's own calls give, its requests committed on the way."""
    live = stage.running.runtime()
    kind = live.work.kinds[job.kind]
    tools = GameTools(live.calls, in_thread, commit=lambda request: kind.records(job, request))
    found: list[Any] = []
    Deferred.fromCoroutine(kind.does.run(job, tools)).addBoth(found.append)
    assert isinstance(found[0], dict), found
    return found[0]


def in_thread(work: Any, *values: Any) -> "Deferred[Any]":
    """What `work` makes of values, at once."""
    return maybeDeferred(work, *values)


def applied(stage: Any, job: Job, body: dict[str, Any]) -> Any:
    """As the game applies what a worker offered."""
    kind = stage.running.runtime().work.kinds[job.kind]
    if kind.prepares is not None:
        body = kind.prepares(job, body)
    return kind.applies.apply(job, body)


def written() -> tuple[int, int]:
    return models.Record.objects.count(), models.Memory.objects.count()


@pytest.mark.long
@pytest.mark.req("S2-20")
@pytest.mark.skipif(connection.vendor != "sqlite", reason="the other process has a copy as a file")
def test_eighty_jobs_give_the_same_bytes_in_the_game_and_in_a_worker(stage, tmp_path):
    places = [talk(stage, number) for number in range(CONVERSATIONS)]
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
    for job, body in list(zip(jobs, bodies, strict=True))[::-1]:  # observed, then compacted
        if job.kind == "compact" and body["nothing"]:
            continue
        applied(stage, job, body)
        before = written()
        with pytest.raises(StaleError):
            applied(stage, job, body)
        assert written() == before
    assert all(verifying.verify(where) is None for where in places)


def offered(stage: Any, kind: str) -> tuple[Any, Job, dict[str, Any]]:
    """A job of this kind about which a model said something of use, and its body."""
    for number in range(CONVERSATIONS):
        where = talk(stage, number)
        job = next(one for one in jobs_about(stage, where, number) if one.kind == kind)
        body = done_here(stage, job)
        if body.get("summary") or body.get("observations"):
            return where, job, body
    raise AssertionError(f"no job of {kind} came to anything")


@pytest.mark.req("S2-20")
@pytest.mark.parametrize("kind", ["compact", "observe"])
def test_nothing_is_written_of_what_was_erased_meanwhile(stage, kind):
    where, job, body = offered(stage, kind)
    erase_conversation(where, by=trusted("Mira"))
    before = written()
    with pytest.raises(StaleError, match="another segment"):
        applied(stage, job, body)

    assert written() == before
    assert [record.body for record in record_rows.records_of(where) if record.body] == []


@pytest.mark.parametrize("kind", ["compact", "observe"])
def test_a_worker_offers_no_word_of_what_is_erased_while_it_asks(stage, kind):
    where, job, _ = offered(stage, kind)

    class Erasing(Thinking):
        def complete(self, request, *, listener=None):
            erase_conversation(where, by=trusted("Mira"))
            return super().complete(request, listener=listener)

    stage.install(Erasing())
    live = stage.running.runtime()
    does = live.work.kinds[kind].does
    like_a_worker = GameTools(live.calls, in_thread)  # it commits nothing before it asks
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
def test_nothing_is_written_where_the_head_is_another(stage, kind):
    _, job, body = offered(stage, kind)
    head = {**job.given["head"], "sha256": "0" * 64}
    before = written()
    with pytest.raises(StaleError, match="not the one that was meant"):
        applied(stage, replace(job, given={**job.given, "head": head}), body)

    assert written() == before


@pytest.mark.parametrize("kind", ["compact", "observe"])
def test_what_a_worker_asked_is_on_record_with_what_came_of_it(stage, kind):
    where, job, body = offered(stage, kind)
    asked = len(_asked(where))
    applied(stage, job, body)  # as of a worker: nothing of it is said to be recorded
    new = _asked(where)[asked:]
    stored = {record.place: record.body for record in record_rows.records_of(where)}

    assert [[stored[place] for place in one.meta["prompt"]] for one in new] == [
        [message["content"] for message in request["messages"]] for request in body["requests"]
    ]


def test_what_is_said_while_a_worker_summarises_is_kept(stage):
    where, job, body = offered(stage, "compact")
    append_records(where, [replace(a_line("And one thing more."), name="Anna")])
    outcome = compacting.apply_compaction(job, body)

    assert outcome.record is not None
    assert [message.content for message in windows(where.id).history][-1] == "And one thing more."


def test_a_memory_of_a_worker_is_the_one_that_the_game_would_have(stage):
    _, job, body = offered(stage, "observe")
    applied(stage, job, body)

    assert "Anna owes Oren 12 coins." in [
        memory.text for memory in memories.held_by(stage.npc.ai.ref).memories
    ]


@pytest.mark.parametrize("kind", ["compact", "observe"])
def test_idle_time_asks_workers_and_does_not_wait_for_them(stage, kind, monkeypatch):
    live = stage.running.runtime()
    asked: list[Job] = []
    monkeypatch.setattr(live.work, "_queued", object())
    monkeypatch.setattr(live.work, "submit", asked.append)
    where = talk(stage, 2)
    if kind == "compact":
        wanted = replace(wanted_of(where, is_pressing=False), npc_limits=FEW)
        done = live.compactor.compact(wanted)
    else:
        done = live.idle_time._consolidator.consolidate(where, npc_name="Oren", npc_limits=FEW)

    assert done.called
    assert [(job.kind, job.limits) for job in asked] == [(kind, FEW)]


def test_a_compaction_that_somebody_waits_for_is_done_here(stage, monkeypatch):
    live = stage.running.runtime()
    asked: list[Job] = []
    monkeypatch.setattr(live.work, "_queued", object())
    monkeypatch.setattr(live.work, "submit", asked.append)
    live.compactor.compact(wanted_of(talk(stage, 2), is_pressing=True))

    assert asked == []
    assert models.Record.objects.filter(kind=RecordKind.SUMMARY.value).count() == 1


def _asked(where: Any) -> list[Any]:
    return [r for r in record_rows.records_of(where) if r.kind is RecordKind.INVOKE]
