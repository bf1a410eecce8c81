"""Turns that wait for an unresponsive model do not delay NPCs that use another model."""

from dataclasses import replace

import pytest
from django.test import override_settings
from twisted.internet.defer import Deferred

from evennia_ai.commands.ai.status import overview_lines, status_lines
from evennia_ai.engine.actors import THE_GAME
from evennia_ai.npc.npc_settings import change_settings
from evennia_ai.services.endpoints import Models
from evennia_ai.services.llm.clients.scripted import ScriptedModel
from evennia_ai.services.settings.conf import conf

PROFILES = {
    "good": {"base_url": "http://127.0.0.1:9/v1", "model": "good"},
    "dead": {"base_url": "http://127.0.0.1:8/v1", "model": "dead", "timeout_seconds": 50.0},
}
NPCS = "evennia_ai.typeclasses.AINPC"


class Dead:
    """A model that never replies."""

    name, offline = "dead", False

    def complete(self, request, *, listener=None):
        return Deferred()

    def close(self):
        """Do nothing, because no connection is open."""


@pytest.fixture
def crowd(stage, monkeypatch):
    """Six NPCs with a model that never replies, each already asked. Oren's model replies."""
    monkeypatch.setattr(
        "evennia_ai.services.endpoints.client_of",
        lambda profile, _: Dead() if profile.name == "dead" else ScriptedModel(["Aye."] * 9),
    )
    named = {"EVENNIA_AI_PROFILES": PROFILES, "EVENNIA_AI_MODEL_ROLES": {"speaker": ["good"]}}
    with override_settings(**named):
        conf.cache_clear()
        values = replace(conf(), cooldown_seconds=0.0, thinking_seconds=0.0)
        models = Models(values, clock=stage.clock)
        live = stage.running.runtime_of(values, clock=stage.clock, models=models)
        stage.running.install(live)
        mute = [stage.make(f"Mute{number}", NPCS) for number in range(6)]
        for npc in mute:
            change_settings(npc, profile="dead", by=THE_GAME)
        for npc in mute:
            stage.whispers(stage.anna, "Are you there?", to=npc)
        yield mute
    conf.cache_clear()


def test_npc_with_a_working_model_answers_at_once(stage, crowd):
    assert stage.running.runtime().scheduler.running == 4
    stage.says(stage.ben, "Oren?")
    assert 'Oren says, "Aye."' in stage.screen_of(stage.ben)


def test_overview_and_status_name_the_npcs_that_wait_for_a_model(stage, crowd):
    told = " ".join(" ".join(overview_lines("", 1)).split())
    full = "! dead has 4 turns under way, its limit (max_concurrent)"
    assert f"{full}. Waiting for it: Mute4, Mute5." in told
    why = "4 turns are running for dead, which is the limit"
    assert f"  waits because  {why}" in status_lines(crowd[5])
    assert not any("waits because" in line for line in status_lines(stage.npc))


def test_waiting_npcs_start_when_places_are_free(stage, crowd):
    stage.passes(51.0)
    scheduler = stage.running.runtime().scheduler
    assert scheduler.crowds() == ()
    assert scheduler.running == scheduler.waiting_in_all == 0
    assert all(npc.ai.status().last_turn is not None for npc in crowd)
