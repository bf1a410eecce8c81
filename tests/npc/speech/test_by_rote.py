"""Words that an NPC says without a model do not make other NPCs speak."""

import json

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import ModelUnavailable
from evennia_ai.engine.prompt.components import GAME
from evennia_ai.services.endpoints import Access
from evennia_ai.services.llm.offline.responder import OfflineResponder
from evennia_ai.services.llm.quotas import Quota, Quotas
from evennia_ai.store.authored import lorebooks

BOTH = "Oren, Brida, what of the ferry?"
LORE = "Oren rows the ferry and Brida feeds those who wait for the ferry."


@pytest.fixture
def both(stage):
    """Return Oren and Brida, with lore that names both of them."""
    stage.make("Brida", "evennia_ai.typeclasses.AINPC")
    entry = {"keys": ["ferry"], "content": LORE, "enabled": True, "insertion_order": 1}
    book = {"name": "harbour", "extensions": {}, "entries": [entry]}
    lorebooks.save_book("harbour", json.dumps(book), by=trusted("tests"))
    lorebooks.LOREBOOKS.assign("harbour", GAME, by=trusted("tests"))
    return stage


def spoken(stage):
    """Return which of the two NPCs spoke, in order."""
    stage.passes(60)
    names = ("Oren", "Brida")
    return [line.split()[0] for line in stage.screen_of(stage.ben) if line.startswith(names)]


def test_npcs_without_a_model_answer_a_person_once_each(both):
    both.opens(Access(model=OfflineResponder("Hm.")))
    both.says(both.anna, BOTH)
    assert spoken(both) == ["Oren", "Brida"]


def test_npcs_without_a_model_answer_each_line_of_a_person(both):
    both.opens(Access(model=OfflineResponder("Hm.")))
    for _ in range(3):
        both.says(both.anna, BOTH)
        both.passes(60)
    assert sorted(spoken(both)) == ["Brida"] * 3 + ["Oren"] * 3


def test_fallback_line_that_names_another_npc_is_not_answered(both, logged):
    both.npc.fallback_line = "Ask Brida."
    away = ModelUnavailable("scripted", "no connection")
    model = both.talks_with(*[away] * 9)
    both.says(both.anna, "Oren, what of the ferry?")
    assert spoken(both) == ["Oren"]
    assert len(model.requests) == 1


def test_limit_line_that_names_another_npc_is_not_answered(both):
    limits = Quotas(player=Quota(calls_per_minute=1), npc=Quota(), game=Quota())
    both.talks_with("Aye.", "Never said.", limits=limits, limit_line="Ask Brida.")
    for _ in range(2):
        both.says(both.anna, "Oren?")
    assert spoken(both) == ["Oren", "Oren"]


def test_whispered_line_of_an_npc_without_a_model_is_not_answered(both, logged):
    from evennia_ai.npc.speech.output import whisper_to

    brida = next(who for who in both.room.contents if who.key == "Brida")
    both.talks_with(*[ModelUnavailable("scripted", "no connection")] * 9)
    whisper_to(both.npc, brida, "The ferry?", hops=1)
    both.passes(60)
    assert len(both.model.requests) == 1


def test_npcs_with_a_model_answer_each_other(both):
    both.talks_with("Ask Brida.", "Gladly.")
    both.says(both.anna, "Oren, what of the ferry?")
    assert spoken(both) == ["Oren", "Brida"]


def test_line_of_an_npc_without_a_model_is_recorded_by_other_npcs(both):
    both.opens(Access(model=OfflineResponder("Hm.")))
    both.says(both.anna, "Brida, what of the ferry?")
    both.passes(5)
    told = "Oren rows the ferry and I feed those who wait for the ferry."
    assert ("user", "Brida", told) in both.records()
