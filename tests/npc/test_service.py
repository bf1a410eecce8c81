"""What happens when a server starts and stops."""

import sys
import threading
from time import time

import pytest
from django.conf import settings
from django.test import override_settings

from evennia_ai.engine.errors import StoreError
from evennia_ai.engine.history.records import NewRecord, RecordKind
from evennia_ai.models.work import POISONED, Proposal
from evennia_ai.npc import service
from evennia_ai.npc.background.queued import Queued
from evennia_ai.npc.service import Garbage
from evennia_ai.services.settings.named_modules import SERVICE
from evennia_ai.services.settings.workers import WorkerSettings
from evennia_ai.store.erasing import Erased
from evennia_ai.store.history import turns
from evennia_ai.store.work import proposals, workers
from evennia_ai.store.work.proposals import Offer
from evennia_ai.store.work.workers import SeenWorker
from tests.npc.turn.test_turn import Pending


@pytest.fixture(autouse=True)
def _unsearched(monkeypatch):
    """Turn off garbage collections, which would take seconds here and which no test examines."""
    for name in ("begin", "search_new", "search_if_grown", "search_everything", "end"):
        monkeypatch.setattr(Garbage, name, lambda self, **_: None)


@pytest.fixture
def started(stage):
    service.at_server_start()
    yield stage
    service.at_server_stop()


def test_evennia_calls_our_start_and_stop_hooks_and_the_games_own():
    modules = settings.AT_SERVER_STARTSTOP_MODULE
    assert modules.count(SERVICE) == 1
    assert "server.conf.at_server_startstop" in modules


def test_threads_switch_more_often_while_a_server_runs(stage):
    before = sys.getswitchinterval()
    service.at_server_start()
    assert sys.getswitchinterval() == pytest.approx(service.SWITCH_SECONDS)
    service.at_server_stop()
    assert sys.getswitchinterval() == before


def test_start_closes_turns_that_a_dead_process_left_open(stage):
    model = Pending()
    stage.install(model)
    stage.says(stage.anna, "Oren?")
    assert turns.last_turn(stage.npc.ai.ref).state == "open"
    stage.running.install(None)
    service.at_server_start()
    assert turns.last_turn(stage.npc.ai.ref).state == "interrupted"
    service.at_server_stop()


def test_start_closes_open_turns_later_when_the_database_is_away(stage, logged, monkeypatch):
    def refuse(**_):
        raise StoreError("the database is locked")

    stage.install(Pending())
    stage.says(stage.anna, "Oren?")
    stage.talks_with("Aye.")
    with monkeypatch.context() as patch:
        patch.setattr(turns, "close_interrupted", refuse)
        service.at_server_start()
    stage.install(Pending())
    stage.says(stage.anna, "Oren, again?")
    stage.passes(5)
    ref = stage.npc.ai.ref
    assert [turns.get_turn(ref, number).state for number in (1, 2)] == ["interrupted", "open"]
    service.at_server_stop()


def test_timer_notices_what_another_process_wrote(started):
    from evennia_ai import models

    stage = started
    assert "goals" not in str(stage.npc.ai.preview().messages)
    models.Component.objects.filter(key="goals").update(content="My goals are new.")
    models.StateRevision.objects.update_or_create(name="components", defaults={"number": 999})
    assert "My goals are new." not in str(stage.npc.ai.preview().messages)
    stage.passes(stage.running.runtime().conf.refresh_seconds + 1)
    assert "My goals are new." in str(stage.npc.ai.preview().messages)


def test_stop_gives_up_running_turns_and_says_nothing(stage, logged):
    model = Pending()
    stage.install(model)
    service.at_server_start()
    stage.says(stage.anna, "Oren?")
    logged.clear()
    model.close = model.asked[0][1].cancel
    service.at_server_stop()
    assert stage.screen_of(stage.ben) == ['Anna says, "Oren?"']
    assert turns.last_turn(stage.npc.ai.ref).state == "interrupted"
    assert stage.clock.getDelayedCalls() == []


def test_record_can_be_written_after_the_stop(started):
    from evennia_ai.store.history.conversations import append_records, get_or_open_conversation

    service.at_server_stop()
    kept = get_or_open_conversation("1", kind="room", place_ref="2")
    assert append_records(kept, [NewRecord(kind=RecordKind.USER, role="user", body="hello")])


def test_start_logs_an_invalid_setting_and_goes_on(stage, logged):
    from django.test import override_settings

    stage.running.install(None)
    with override_settings(EVENNIA_AI_QUEUE_LIMIT="many"):
        service.at_server_start()
    assert "EVENNIA_AI_QUEUE_LIMIT" in logged[-1]
    service.at_server_stop()


class TestRetention:
    def test_start_erases_old_conversations(self, stage, logged, monkeypatch):
        stage.talks_with("Aye.", keep_days=30)
        stage.says(stage.anna, "Oren?")
        monkeypatch.setattr(service.time, "time", lambda: time() + 31 * 86400)
        service.at_server_start()
        assert {body for _, _, body in stage.records()} == {""}
        assert any("1 conversations were erased" in line for line in logged)
        service.at_server_stop()

    def test_old_conversations_are_erased_every_day(self, stage, monkeypatch):
        stage.talks_with("Aye.", keep_days=30)
        service.at_server_start()
        stage.says(stage.anna, "Oren?")
        monkeypatch.setattr(service.time, "time", lambda: time() + 31 * 86400)
        stage.passes(86400)
        assert {body for _, _, body in stage.records()} == {""}
        service.at_server_stop()

    def test_old_conversations_are_erased_in_slices_while_no_npc_answers(self, stage, monkeypatch):
        busy, slices = {"12"}, iter([20, 20, 3])
        stage.talks_with("Aye.", keep_days=30)
        live, erased = service.running.runtime(), []
        monkeypatch.setattr(type(live.scheduler), "busy_keys", property(lambda _: busy))

        def forget(now, *, keep_days):
            erased.append(next(slices))
            return Erased(conversations=erased[-1])

        monkeypatch.setattr(service.erasing, "forget_old", forget)
        service.at_server_start()
        for _ in range(11):
            stage.passes(5)
        assert erased == []
        stage.passes(5)
        assert erased == [20]  # some NPC answers all the time
        busy.clear()
        for _ in range(10):
            stage.passes(5)
        assert erased == [20, 20, 3]
        service.at_server_stop()

    def test_no_conversation_is_erased_without_the_setting(self, stage, monkeypatch):
        stage.talks_with("Aye.")
        stage.says(stage.anna, "Oren?")
        monkeypatch.setattr(service.time, "time", lambda: time() + 10_000 * 86400)
        service.at_server_start()
        assert stage.records()[0] == ("user", "Anna", "Oren?")
        service.at_server_stop()

    def test_start_logs_a_database_that_is_away_and_goes_on(self, stage, logged, monkeypatch):
        def refuse(*_, **__):
            raise StoreError("the database is locked")

        stage.talks_with("Aye.", keep_days=30)
        monkeypatch.setattr(service.erasing, "forget_old", refuse)
        service.at_server_start()
        assert any("old conversations were not erased" in line for line in logged)
        service.at_server_stop()


def test_start_deletes_old_jobs_of_workers(stage, monkeypatch):
    now, day = time(), 86400.0
    for name, days in (("old", 31), ("new", 29)):
        proposals.store_offer(Offer(idempotency=name, kind="observe", job="{}", state=POISONED))
        (number,) = proposals.unhandled_proposals()
        with monkeypatch.context() as patch:
            patch.setattr(proposals.time, "time", lambda at=now - days * day: at)
            proposals.mark_handled(number, POISONED, reason="by zero")
        seen = {"begun_at": 0.0, "seen_at": now - days * day}
        workers.store_worker(SeenWorker(name=name, version=1, kinds="observe", **seen))
    proposals.store_offer(Offer(idempotency="unhandled", kind="observe", job="{}", offered_at=1.0))
    monkeypatch.setattr(Queued, "begin", lambda self: None)
    stage.talks_with("Aye.", workers=WorkerSettings(queue="procrastinate"), keep_call_days=30)
    service.at_server_start()
    assert set(Proposal.objects.values_list("idempotency", flat=True)) == {"new", "unhandled"}
    assert [worker.name for worker in workers.list_workers()] == ["new"]
    service.at_server_stop()


def test_watchdog_runs_when_the_setting_asks_for_it(stage):
    def watchers():
        return [one for one in threading.enumerate() if one.name == "evennia_ai: what is slow"]

    service.at_server_start()
    assert watchers() == []
    service.at_server_stop()
    stage.running.install(None)
    with override_settings(EVENNIA_AI_SLOW_MS=20):
        service.at_server_start()
    (watcher,) = watchers()
    service.at_server_stop()
    watcher.join(30)
    assert not watcher.is_alive()


@pytest.mark.parametrize(
    ("name", "value", "logs"),
    [
        (
            "EVENNIA_AI_KNOWLEDGE_BUDGET",
            {"calls": 1000, "free": 1000},
            "free (1000) must be less than calls (1000)",
        ),
        ("EVENNIA_AI_TIME_SUFIX", "real", "did you mean EVENNIA_AI_TIME_SUFFIX?"),
    ],
)
def test_start_logs_contradictory_settings(stage, logged, name, value, logs):
    with override_settings(**{name: value}):
        service.at_server_start()
        service.at_server_stop()
    assert [line for line in logged if logs in line]
