"""An NPC with a real HTTP server on loopback: replies, errors, and several profiles."""

import re
import threading
import time
from contextlib import contextmanager
from dataclasses import replace

import pytest
from django.test import override_settings
from evennia.server.models import ServerConfig
from evennia.utils import logger
from twisted.internet.defer import Deferred

from evennia_ai.engine.actors import THE_GAME
from evennia_ai.engine.errors import ModelUnavailable
from evennia_ai.npc.npc_settings import change_settings
from evennia_ai.npc.runtime import GAME_ID, game_id
from evennia_ai.services import endpoints
from evennia_ai.services.endpoints import (
    OFFLINE,
    Access,
    Models,
    Surroundings,
    client_of,
)
from evennia_ai.services.llm.chat import ChatRequest
from evennia_ai.services.llm.clients.scripted import ScriptedModel
from evennia_ai.services.net.bridge import AsyncBridge
from evennia_ai.services.settings.conf import conf
from evennia_ai.services.settings.npc import NPCSettings
from tests.services.llm.clients.stub_server import (
    StubServer,
    answers,
    closes_early,
    fails,
    hangs_up,
    sends,
    stalls,
)
from tests.services.net.handover import Handover

KEY = "sk-very-secret-4711"
pytestmark = pytest.mark.service


@pytest.fixture
def server():
    server = StubServer()
    yield server
    server.close()


@pytest.fixture
def connected(stage, server, monkeypatch):
    """The stage whose NPC uses the stub server. `stage.waits()` waits for the end of the turn."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("EVENNIA_AI_API_KEY", KEY)
    conf.cache_clear()
    reactor = Handover()
    bridge = AsyncBridge(reactor)
    values = {"base_url": server.base_url, "model": "tiny", "model_timeout_seconds": 2.0}
    settings = replace(conf(), cooldown_seconds=0.0, **values)
    models = Models(settings, clock=stage.clock, bridge=bridge)
    reactor.outcome_of(models.prepare(), within_seconds=30)
    stage.running.install(stage.running.runtime_of(settings, clock=stage.clock, models=models))

    def waits():
        ends = time.monotonic() + 20
        while stage.npc.ai.status().now.in_flight and time.monotonic() < ends:
            reactor.make_waiting_calls()
            time.sleep(0.01)
        stage.passes()

    stage.waits = waits
    yield stage
    models.close()
    reactor.make_waiting_calls()
    conf.cache_clear()


def test_npc_says_the_reply_of_the_server(connected, server):
    server.behaves(answers("Aye, at dusk."))
    connected.says(connected.anna, "Oren?")
    assert connected.npc.ai.status().now.in_flight
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
def test_npc_says_its_fallback_line_after_any_error_and_then_recovers(
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


def test_failing_server_opens_the_breaker_until_it_answers_again(connected, server):
    server.behaves(hangs_up)
    for _ in range(3):
        connected.says(connected.anna, "Oren?")
        connected.waits()
    asked = len(server.requests)
    assert connected.npc.ai.status().now.breaker == "open"
    connected.says(connected.anna, "Oren?")
    connected.waits()
    assert len(server.requests) == asked
    connected.passes(31)
    server.behaves(answers("Back again."))
    connected.says(connected.anna, "Oren?")
    connected.waits()
    assert connected.screen_of(connected.anna)[-1] == 'Oren says, "Back again."'
    assert connected.npc.ai.status().now.breaker == "closed"


def test_api_key_appears_in_no_status_report_or_record(connected, server):
    server.behaves(answers("Aye."))
    connected.says(connected.anna, "Oren?")
    connected.waits()
    told = repr(connected.npc.ai.status()) + repr(connected.records())
    told += repr(connected.running.runtime()) + repr(connected.npc.ai.last_report())
    assert KEY not in told


def test_offline_responder_is_the_speaker_when_no_endpoint_is_set(stage):
    models = Models(conf(), clock=stage.clock)
    (access,) = models.of_role("speaker")
    assert (access.name, access.model.offline) == (OFFLINE, True)
    models.close()


# Several profiles

PROFILES = {
    "cheap": {"base_url": "http://127.0.0.1:9/v1", "model": "small", "context_tokens": 4096},
    "dear": {"base_url": "http://127.0.0.1:9/v1", "model": "large", "max_concurrent": 2},
    "dearer": {"base_url": "http://127.0.0.1:9/v1", "model": "large", "temperature": 1.5},
}


@contextmanager
def models_of(stage, *, profiles=PROFILES, roles=None, game=None):
    """Create the models of these settings, and close them at the end."""
    roles = {"speaker": "cheap"} if roles is None else roles
    named = {"EVENNIA_AI_PROFILES": profiles, "EVENNIA_AI_MODEL_ROLES": roles, **(game or {})}
    with override_settings(**named):
        models = Models(conf(), log_error=logger.log_err, clock=stage.clock)
        yield models
        models.close()


def names_of(accesses):
    return [access.name for access in accesses]


def test_role_has_its_profiles_in_the_order_of_the_setting(stage):
    roles = {"speaker": ["dear", "cheap"], "decider": "cheap"}
    with models_of(stage, roles=roles) as models:
        assert names_of(models.of_role("speaker")) == ["dear (large)", "cheap (small)"]
        assert names_of(models.of_role("decider")) == ["cheap (small)"]
        assert names_of(models.of_role("planner")) == ["dear (large)", "cheap (small)"]
        others = ("planner", "mediator", "summariser", "lorekeeper")
        assert models.roles_of("dear") == ("speaker", *others)


def test_client_of_a_profile_is_created_once_at_its_first_use(stage, monkeypatch):
    made = []

    def watched(profile, around):
        made.append(profile.name)
        return client_of(profile, around)

    monkeypatch.setattr("evennia_ai.services.endpoints.client_of", watched)
    with models_of(stage) as models:
        assert made == []
        assert models.of_role("speaker")[0] is models.of_role("speaker")[0]
        assert made == ["cheap"]


def test_profiles_with_the_same_model_share_a_breaker(stage):
    with models_of(stage) as models:
        breakers = {access.profile.name: access.breaker for access in models.accesses()}
    assert breakers["dear"] is breakers["dearer"] is not breakers["cheap"]


def test_profiles_with_the_same_model_share_the_lowest_max_concurrent(stage, monkeypatch):
    asked = []

    class Silent:
        name, offline = "silent", False

        def complete(self, request, *, listener=None):
            asked.append(request)
            return Deferred()

        def close(self):
            """Do nothing, because no connection is open."""

    monkeypatch.setattr("evennia_ai.services.endpoints.client_of", lambda *_: Silent())
    request = ChatRequest(messages=(), model="", max_tokens=1, timeout_seconds=9)
    with models_of(stage) as models:
        asked_for = [access for access in models.accesses() if access.model_id == "large"]
        given_up = [access.model.complete(request) for access in asked_for * 2]
        assert len(asked) == 2
        for deferred in given_up:
            deferred.addErrback(lambda failure: None)


def test_profile_of_an_npc_comes_before_the_profiles_of_the_role(stage):
    with models_of(stage) as models:
        settings = NPCSettings(profile="dear")
        assert names_of(models.of_role("speaker", settings=settings)) == [
            "dear (large)",
            "cheap (small)",
        ]
        assert names_of(models.of_role("planner", settings=settings)) == ["cheap (small)"]


def test_missing_profile_of_an_npc_is_skipped(stage):
    with models_of(stage) as models:
        settings = NPCSettings(profile="gone")
        assert names_of(models.of_role("speaker", settings=settings)) == ["cheap (small)"]


def test_model_and_sampling_settings_of_an_npc_replace_those_of_the_profile(stage):
    settings = NPCSettings(model="tiny", temperature=0.1, reply_tokens=50)
    with models_of(stage, roles={"speaker": ["cheap", "dear"]}) as models:
        first, second = models.of_role("speaker", settings=settings)
        assert (first.model_id, second.model_id) == ("tiny", "large")
        assert first.profile.sampling.temperature == second.profile.sampling.temperature == 0.1
        assert first.profile.reply_tokens == 50
        assert first.breaker is not models.of_role("speaker")[0].breaker
        assert models.of_role("speaker")[0].profile.sampling.temperature is None


def test_calls_of_an_unusable_profile_fail_with_the_reason(stage, logged, monkeypatch):
    monkeypatch.setenv("CHEAP_KEY", "two words")
    profiles = {"cheap": {**PROFILES["cheap"], "api_key_env": "CHEAP_KEY"}}
    request = ChatRequest(messages=(), model="", max_tokens=1, timeout_seconds=9)
    with models_of(stage, profiles=profiles) as models:
        (access,) = models.of_role("speaker")
        failures = []
        access.model.complete(request).addErrback(failures.append)
        models.prepare().addErrback(failures.append)
    assert [failure.type for failure in failures] == [ModelUnavailable, ModelUnavailable]
    assert "api_key has characters that an API key cannot have" in failures[0].getErrorMessage()
    assert "profile 'cheap' cannot be used" in logged[0]
    assert "two words" not in logged[0] + failures[0].getErrorMessage()


@pytest.mark.parametrize(
    ("base_url", "loads"),
    [("https://api.example/v1", 1), ("http://127.0.0.1:9/v1", 0)],
)
def test_prices_are_loaded_outside_of_the_reactor_if_a_profile_needs_them(
    stage, monkeypatch, base_url, loads
):
    threads, reactor = [], Handover()
    monkeypatch.setattr(endpoints, "load_prices", lambda: threads.append(threading.get_ident()))
    settings = replace(conf(), base_url=base_url, model="tiny")
    models = Models(settings, clock=stage.clock, bridge=AsyncBridge(reactor))
    reactor.outcome_of(models.prepare(), within_seconds=30)
    models.close()
    assert len(threads) == loads
    assert threading.get_ident() not in threads


def test_profile_with_a_script_returns_its_lines(stage, tmp_path):
    (tmp_path / "world").mkdir()
    (tmp_path / "world" / "demo.json").write_text('["Aye, at dusk."]')
    profiles = {"demo": {"script": "world/demo.json"}}
    request = ChatRequest(messages=(), model="", max_tokens=1, timeout_seconds=9)
    said = []
    roles = {"speaker": "demo"}
    with models_of(stage, profiles=profiles, roles=roles, game={"GAME_DIR": tmp_path}) as models:
        (access,) = models.of_role("speaker")
        access.model.complete(request).addCallback(said.append)
    assert [reply.text for reply in said] == ["Aye, at dusk."]


def test_missing_script_of_a_profile_is_logged(stage, logged):
    profiles = {"demo": {"script": "world/none.yaml"}}
    with models_of(stage, profiles=profiles, roles={"speaker": "demo"}) as models:
        models.of_role("speaker")
    assert "profile 'demo' cannot be used" in logged[0]
    assert "world/none.yaml" in logged[0]


def test_anthropic_profile_uses_the_anthropic_client(stage, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    profiles = {"claude": {"client": "anthropic", "model": "claude", "tools": "none"}}
    with models_of(stage, profiles=profiles, roles={"speaker": "claude"}) as models:
        (access,) = models.of_role("speaker")
    assert type(access.client).__name__ == "AnthropicChat"
    assert access.client.endpoint.api_key.reveal() == KEY
    assert access.roles.tools == "none"


def test_close_also_closes_a_model_that_was_passed_in(stage):
    model = ScriptedModel([])
    Models(conf(), clock=stage.clock, only=Access(model=model)).close()
    assert model.closed


def test_prompt_budget_depends_on_the_profile_of_the_npc(stage, no_queries):
    with override_settings(EVENNIA_AI_PROFILES=PROFILES):
        stage.talks_with("Aye.")
        assert stage.npc.ai.view().rules.budget.limit_tokens == 8192 - 400
        change_settings(stage.npc, profile="cheap", reply_tokens=96, by=THE_GAME)
        assert stage.npc.ai.view().rules.budget.limit_tokens == 4000
        with no_queries():
            assert stage.npc.ai.view() is stage.npc.ai.view()


def test_game_id_is_random_and_stored(stage):
    named = game_id()
    assert re.fullmatch("[0-9a-f]{32}", named)
    assert game_id() == named
    profile = replace(
        conf().profiles["default"], client="openai", base_url="http://127.0.0.1:1", model="tiny"
    )
    around = Surroundings(conf=conf(), clock=stage.clock, bridge=AsyncBridge(), game_id=game_id)
    assert client_of(profile, around).endpoint.game_id == named
    ServerConfig.objects.conf(GAME_ID, delete=True)
    assert game_id() != named


def test_unknown_line_differs_from_the_fallback_line(stage):
    offline = replace(conf().profiles["default"], client="offline")
    around = Surroundings(conf=conf(), clock=stage.clock, bridge=AsyncBridge())
    asked = ChatRequest(messages=(), model="", max_tokens=9, timeout_seconds=1.0, question="Wo?")
    said = client_of(offline, around).complete(asked).result.text
    assert said == conf().unknown_line
    assert said != conf().fallback_line == stage.npc.ai.fallback_line
