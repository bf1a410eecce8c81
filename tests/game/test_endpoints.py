"""An NPC on a real connection: a server on loopback that answers, stalls, errors, talks rubbish."""

import time
from dataclasses import replace

import pytest

from evennia_ai.conf import conf
from evennia_ai.game.clients import OFFLINE
from evennia_ai.game.endpoints import Models
from evennia_ai.llm.bridge import AsyncBridge
from tests.llm.handover import Handover
from tests.llm.stub_server import (
    StubServer,
    answers,
    closes_early,
    fails,
    hangs_up,
    sends,
    stalls,
)

KEY = "sk-very-secret-4711"
pytestmark = pytest.mark.service


@pytest.fixture
def server():
    server = StubServer()
    yield server
    server.close()


@pytest.fixture
def connected(stage, server, monkeypatch):
    """The stage with its NPC on the stub server; `waits` lets the reply come."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("EVENNIA_AI_API_KEY", KEY)
    conf.cache_clear()
    reactor = Handover()
    bridge = AsyncBridge(reactor)
    values = {"base_url": server.base_url, "model": "tiny", "model_timeout_seconds": 0.6}
    settings = replace(conf(), cooldown_seconds=0.0, **values)
    models = Models(settings, clock=stage.clock, bridge=bridge)
    reactor.outcome_of(models.prepare(), within_seconds=30)
    stage.running.install(stage.running.runtime_of(settings, clock=stage.clock, models=models))

    def waits():
        ends = time.monotonic() + 5
        while stage.npc.ai.status().in_flight and time.monotonic() < ends:
            reactor.make_waiting_calls()
            time.sleep(0.01)
        stage.passes()

    stage.waits = waits
    yield stage
    models.close()
    reactor.make_waiting_calls()
    conf.cache_clear()


def test_a_server_that_answers_is_heard_in_the_room(connected, server):
    server.behaves(answers("Aye, at dusk."))
    connected.says(connected.anna, "Oren?")
    assert connected.npc.ai.status().in_flight
    connected.waits()
    assert connected.screen_of(connected.anna)[-1] == 'Oren says, "Aye, at dusk."'
    (seen,) = server.requests
    assert seen.body["model"] == "tiny"
    assert seen.headers["authorization"] == f"Bearer {KEY}"
    assert "Anna: Oren?" in [message["content"] for message in seen.body["messages"]]


@pytest.mark.parametrize(
    "behaviour",
    [stalls, closes_early, hangs_up, fails(500), fails(401, f"bad key {KEY}"), sends(b"<html>")],
    ids=["stalls", "closes early", "hangs up", "status 500", "status 401", "rubbish"],
)
def test_whatever_goes_wrong_the_fallback_is_said_and_the_next_reply_comes(
    connected, server, logged, behaviour
):
    server.behaves(behaviour)
    connected.says(connected.anna, "Oren?")
    connected.waits()
    assert "lost in thought" in connected.screen_of(connected.anna)[-1]
    assert connected.npc.ai.status().last_turn.state == "failed"
    assert "tiny" in logged[-1]
    assert KEY not in "".join(logged) + connected.npc.ai.status().last_turn.outcome
    server.behaves(answers("Back again."))
    connected.says(connected.anna, "Oren?")
    connected.waits()
    assert connected.screen_of(connected.anna)[-1] == 'Oren says, "Back again."'


def test_a_dead_server_opens_the_breaker_and_the_status_says_so(connected, server):
    server.behaves(hangs_up)
    for _ in range(3):
        connected.says(connected.anna, "Oren?")
        connected.waits()
    asked = len(server.requests)
    assert connected.npc.ai.status().breaker == "open"
    connected.says(connected.anna, "Oren?")
    connected.waits()
    assert len(server.requests) == asked
    connected.passes(31)
    server.behaves(answers("Back again."))
    connected.says(connected.anna, "Oren?")
    connected.waits()
    assert connected.screen_of(connected.anna)[-1] == 'Oren says, "Back again."'
    assert connected.npc.ai.status().breaker == "closed"


def test_the_key_is_in_no_status_and_no_record(connected, server):
    server.behaves(answers("Aye."))
    connected.says(connected.anna, "Oren?")
    connected.waits()
    told = repr(connected.npc.ai.status()) + repr(connected.records())
    told += repr(connected.running.runtime()) + repr(connected.npc.ai.last_report())
    assert KEY not in told


def test_without_an_endpoint_the_offline_responder_speaks(stage):
    models = Models(conf(), clock=stage.clock)
    (access,) = models.of_role("speaker")
    assert (access.name, access.model.offline) == (OFFLINE, True)
    models.close()
