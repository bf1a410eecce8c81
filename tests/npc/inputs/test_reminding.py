"""What an NPC is reminded of in its turns, and that a past turn gives the same bytes again."""

from typing import Any

import pytest

from evennia_ai import models
from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import ReplayError
from evennia_ai.engine.memory.recalling import MemorySettings
from evennia_ai.npc.inputs.facts import candidates
from evennia_ai.npc.views.recomposing import NotReadBackError, PastReader, composed_again
from evennia_ai.store import memories
from evennia_ai.store.erasing import erase_about
from evennia_ai.store.history import turns
from tests.engine.memory.builders import a_memory


def learn(stage: Any, text: str, *, about: Any = None, **fields: Any) -> int:
    """Have the stage's NPC remember something."""
    new = a_memory(text, id=memories.NEW, about=str(about.id) if about else "", **fields)
    return memories.add_memory(stage.npc.ai.ref, new, by=trusted("npc"), most=500).memory.id


def told(stage: Any, number: int = -1) -> str:
    """All that the model was told the last time."""
    return "\n".join(message.content for message in stage.model.requests[number].messages)


@pytest.fixture
def talking(stage):
    stage.talks_with(lambda request: "Aye.")
    return stage


def test_it_is_reminded_of_the_speaker_of_those_present_and_of_the_world(talking):
    learn(talking, "Anna owes Oren a rope.", about=talking.anna)
    learn(talking, "Ben broke an oar.", about=talking.ben)
    learn(talking, "The ferry is lost.")
    talking.says(talking.anna, "Oren, good evening!")

    assert "What you remember:\n- Anna owes" in told(talking)
    assert "- Ben broke an oar.\n- The ferry is lost." in told(talking)


def test_who_is_not_here_is_not_thought_of(talking):
    learn(talking, "Ben broke an oar.", about=talking.ben)
    talking.ben.location = None
    talking.says(talking.anna, "Oren, good evening!")

    assert "oar" not in told(talking)


def test_what_was_whispered_is_told_to_who_whispered_it_and_to_nobody_else(talking):
    learn(talking, "Anna is afraid of Ben.", about=talking.anna, learnt="private")
    talking.whispers(talking.anna, "Do you remember?")
    talking.whispers(talking.ben, "Is Anna afraid?")
    talking.says(talking.anna, "Oren, am I afraid?")

    assert ["afraid of Ben" in told(talking, i) for i in range(3)] == [True, False, False]


def test_a_game_may_switch_memory_off(talking):
    learn(talking, "The ferry is lost.")
    talking.talks_with(lambda request: "Aye.", memory=MemorySettings(enabled=False))
    talking.says(talking.anna, "Oren, good evening!")

    assert "ferry" not in told(talking)


def test_a_turn_is_composed_again_after_its_memories_were_changed(talking):
    lost = learn(talking, "The ferry is lost.", recalled_at=2.5)
    gone = learn(talking, "Ben broke an oar.")
    talking.says(talking.anna, "Oren, good evening!")
    memories.change_memory(talking.npc.ai.ref, lost, by=trusted("Mira"), text="The ferry is found.")
    memories.remove_memory(talking.npc.ai.ref, gone, by=trusted("Mira"))
    learn(talking, "It rains.")

    turn = turns.last_turn(talking.npc.ai.ref)
    assert composed_again(turn, PastReader()).sha256 == turn.manifest.sha256


def test_a_turn_whose_memories_are_gone_for_good_says_so(talking):
    learn(talking, "The ferry is lost.")
    talking.says(talking.anna, "Oren, good evening!")
    models.MemoryRevision.objects.update(value="")

    with pytest.raises(NotReadBackError, match="its words are gone"):
        composed_again(turns.last_turn(talking.npc.ai.ref), PastReader())


def test_no_words_of_a_memory_are_in_the_manifest(talking):
    learn(talking, "The ferry is lost.")
    talking.says(talking.anna, "Oren, good evening!")

    manifest = models.Turn.objects.get().manifest
    assert "memory:" in manifest
    assert "lost" not in manifest


def test_a_warm_turn_asks_the_database_nothing_for_memories(talking, no_queries):
    learn(talking, "The ferry is lost.")
    talking.says(talking.anna, "Oren, good evening!")
    memories.held_by(talking.npc.ai.ref)

    with no_queries():
        found = candidates(talking.npc, None)
    assert [memory.text for memory in found] == ["The ferry is lost."]


def test_a_prompt_is_not_shown_any_more_once_a_memory_of_it_was_erased(talking):
    learn(talking, "Anna owes Oren a rope.", about=talking.anna)
    talking.says(talking.anna, "Oren, good evening!")
    assert "rope" in str(talking.npc.ai.last_report())
    erase_about(str(talking.anna.id), by=trusted("Mira"))

    with pytest.raises(ReplayError, match="erased on request"):
        talking.npc.ai.last_report()
