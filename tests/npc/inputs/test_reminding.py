"""Which memories a turn recalls, and that past turns are composed again with their memories."""

from typing import Any

import pytest

from evennia_ai import models
from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import ReplayError
from evennia_ai.engine.history.turn.manifest import text_in_row
from evennia_ai.engine.memory.recalling import MemorySettings
from evennia_ai.npc.inputs.facts import candidates
from evennia_ai.npc.views.recomposing import NotReadBackError, PastReader, compose_again
from evennia_ai.store import memories
from evennia_ai.store.erasing import erase_about
from evennia_ai.store.history import turns
from tests.engine.memory.builders import a_memory


def learn(stage: Any, text: str, *, about: Any = None, **fields: Any) -> int:
    """Add a memory of the stage's NPC and return its id."""
    new = a_memory(text, id=memories.NEW, about=str(about.id) if about else "", **fields)
    return memories.add_memory(stage.npc.ai.ref, new, by=trusted("npc"), most=500).memory.id


def prompt_text(stage: Any, number: int = -1) -> str:
    """Return all messages of a request as one text, by default of the last one."""
    return "\n".join(message.content for message in stage.model.requests[number].messages)


@pytest.fixture
def talking(stage):
    stage.talks_with(lambda request: "Aye.")
    return stage


def test_prompt_has_memories_about_speaker_bystanders_and_world(talking):
    learn(talking, "Anna owes Oren a rope.", about=talking.anna)
    learn(talking, "Ben broke an oar.", about=talking.ben)
    learn(talking, "The ferry is lost.")
    talking.says(talking.anna, "Oren, good evening!")

    assert "What you remember:\n- Anna owes" in prompt_text(talking)
    assert "- Ben broke an oar.\n- The ferry is lost." in prompt_text(talking)


def test_prompt_has_no_memory_about_an_absent_person(talking):
    learn(talking, "Ben broke an oar.", about=talking.ben)
    talking.ben.location = None
    talking.says(talking.anna, "Oren, good evening!")

    assert "oar" not in prompt_text(talking)


def test_whispered_memory_is_recalled_only_in_private_with_that_person(talking):
    learn(talking, "Anna is afraid of Ben.", about=talking.anna, learnt="private")
    talking.whispers(talking.anna, "Do you remember?")
    talking.whispers(talking.ben, "Is Anna afraid?")
    talking.says(talking.anna, "Oren, am I afraid?")

    assert ["afraid of Ben" in prompt_text(talking, i) for i in range(3)] == [True, False, False]


def test_prompt_has_no_memory_when_memory_is_switched_off(talking):
    learn(talking, "The ferry is lost.")
    talking.talks_with(lambda request: "Aye.", memory=MemorySettings(enabled=False))
    talking.says(talking.anna, "Oren, good evening!")

    assert "ferry" not in prompt_text(talking)


def test_past_turn_is_composed_again_after_its_memories_changed(talking):
    lost = learn(talking, "The ferry is lost.", recalled_at=2.5)
    gone = learn(talking, "Ben broke an oar.")
    talking.says(talking.anna, "Oren, good evening!")
    memories.change_memory(talking.npc.ai.ref, lost, by=trusted("Mira"), text="The ferry is found.")
    memories.remove_memory(talking.npc.ai.ref, gone, by=trusted("Mira"))
    learn(talking, "It rains.")

    turn = turns.last_turn(talking.npc.ai.ref)
    assert compose_again(turn, PastReader()).sha256 == turn.manifest.sha256


def test_past_turn_cannot_be_read_back_when_a_memory_was_erased(talking):
    learn(talking, "The ferry is lost.")
    talking.says(talking.anna, "Oren, good evening!")
    models.MemoryRevision.objects.update(value="")

    with pytest.raises(NotReadBackError, match="its words are gone"):
        compose_again(turns.last_turn(talking.npc.ai.ref), PastReader())


def test_manifest_has_no_words_of_memories(talking):
    learn(talking, "The ferry is lost.")
    talking.says(talking.anna, "Oren, good evening!")

    manifest = text_in_row(models.Turn.objects.get().manifest)
    assert "memory:" in manifest
    assert "lost" not in manifest


def test_cached_memories_make_no_query(talking, no_queries):
    learn(talking, "The ferry is lost.")
    talking.says(talking.anna, "Oren, good evening!")
    memories.held_by(talking.npc.ai.ref)

    with no_queries():
        found = candidates(talking.npc, None)
    assert [memory.text for memory in found] == ["The ferry is lost."]


def test_past_prompt_is_not_shown_after_a_memory_in_it_was_erased(talking):
    learn(talking, "Anna owes Oren a rope.", about=talking.anna)
    talking.says(talking.anna, "Oren, good evening!")
    assert "rope" in str(talking.npc.ai.last_report())
    erase_about(str(talking.anna.id), by=trusted("Mira"))

    with pytest.raises(ReplayError, match="erased on request"):
        talking.npc.ai.last_report()
