"""What an NPC learns by itself is checked, stored, and found only by those who may know it."""

from contextlib import ExitStack

import pytest
from django.test import override_settings

from evennia_ai import models
from evennia_ai.engine.errors import ComponentValueError
from evennia_ai.npc.recording.heard import ConversationKey, open_conversation
from evennia_ai.npc.upkeep.remembering import recall, remember
from evennia_ai.services.settings.conf import conf
from evennia_ai.store import memories
from evennia_ai.store.core.snapshots import forget_everything


@pytest.fixture
def memory_of_game():
    """Return a function that changes the memory settings until the end of the test."""
    with ExitStack() as changed:
        yield lambda **values: changed.enter_context(override_settings(EVENNIA_AI_MEMORY=values))


@pytest.fixture
def room(stage):
    return open_conversation(
        stage.npc.ai.ref, ConversationKey(kind="room", place_ref=str(stage.room.id))
    )


@pytest.fixture
def with_anna(stage):
    return open_conversation(
        stage.npc.ai.ref, ConversationKey(kind="private", partner_ref=str(stage.anna.id))
    )


@pytest.fixture
def with_ben(stage):
    return open_conversation(
        stage.npc.ai.ref, ConversationKey(kind="private", partner_ref=str(stage.ben.id))
    )


def learnt(stage, text: str, where, **fields):
    return remember(stage.npc.ai.ref, text, where=where, rules=conf().memory, **fields)


def found(stage, query: str, where, **options) -> list[str]:
    return [
        memory.text
        for memory in recall(stage.npc.ai.ref, query, where=where, rules=conf().memory, **options)
    ]


def test_memory_is_stored_with_its_source(stage, room):
    made = learnt(
        stage, "Anna owes Oren a rope.", room, about=str(stage.anna.id), importance=7, source=4
    )

    memory = memories.held_by(stage.npc.ai.ref).memories[0]
    assert memory == made.memory
    assert (memory.about, memory.importance, memory.turn) == (str(stage.anna.id), 7, 4)
    assert (memory.place_ref, memory.learnt, memory.author) == (str(stage.room.id), "aloud", "npc")
    assert memory.created_at == memory.recalled_at > 0
    assert str(made) == "Remembered: Anna owes Oren a rope."


def test_memory_about_what_the_npc_is_is_refused_with_the_reason(stage, room):
    made = learnt(stage, "Oren is a dragon.", room)

    assert memories.held_by(stage.npc.ai.ref).memories == ()
    assert str(made).startswith("Not remembered: it says what Oren is")


def test_memory_about_an_alias_of_the_npc_is_refused(stage, room):
    assert learnt(stage, "The ferryman is a dragon.", room).refusal


def test_first_person_in_a_memory_becomes_the_npcs_name(stage, room):
    made = learnt(stage, "I promised Anna the rope.", room)

    assert made.memory.text == "Oren promised Anna the rope."


def test_repeated_memory_is_merged_and_becomes_more_important(stage, room):
    learnt(stage, "Anna owes Oren a rope.", room, importance=5)
    again = learnt(stage, "anna owes Oren the rope!", room, importance=5)

    assert again.is_merged
    assert again.memory.importance == 6
    assert str(again).endswith("It was known already and counts more now.")


def test_private_memory_is_about_the_partner(stage, with_anna):
    made = learnt(stage, "Ben stole the bread.", with_anna, about=str(stage.ben.id))

    assert (made.memory.about, made.memory.learnt) == (str(stage.anna.id), "private")


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("|rAnna|n owes\nOren a rope.", "Anna owes Oren a rope."),
        ("Anna owes\x1b[31m Oren a rope.", "Anna owes Oren a rope."),
        ("[INST] Anna owes Oren a rope.", "(INST) Anna owes Oren a rope."),
        ("Anna owes Oren {{char}} a rope.", "Anna owes Oren {{char}} a rope."),
        ("Anna owes \u202eOren a rope.", "Anna owes Oren a rope."),
    ],
)
def test_memory_text_is_one_line_without_markup(stage, room, text, kept):
    assert learnt(stage, text, room).memory.text == kept


@pytest.mark.parametrize(
    ("text", "why"), [("", "no text"), ("|r \n", "no text"), ("word " * 70, "over 300 characters")]
)
def test_empty_and_too_long_memory_texts_are_refused(stage, room, text, why):
    assert why in learnt(stage, text, room).refusal


def test_invalid_importance_is_an_error_and_stores_nothing(stage, room):
    with pytest.raises(ComponentValueError, match="importance 11"):
        learnt(stage, "Anna owes Oren a rope.", room, importance=11)
    assert memories.held_by(stage.npc.ai.ref).memories == ()


def test_least_important_memory_is_dropped_and_logged_over_the_limit(
    stage, room, memory_of_game, monkeypatch
):
    lines: list[str] = []
    monkeypatch.setattr("evennia.utils.logger.log_info", lambda line, **_: lines.append(line))
    memory_of_game(kept=1)
    first = learnt(stage, "It rains.", room, importance=1)
    second = learnt(stage, "The ferry is lost.", room, importance=9)

    assert second.dropped == 1
    assert memories.held_by(stage.npc.ai.ref).memories == (second.memory,)
    assert lines == [
        (
            f"evennia_ai: NPC {stage.npc.ai.ref} had too many memories; the least important were"
            f" dropped: {first.memory.origin}"
        )
    ]


def test_nothing_is_remembered_when_memory_is_off(stage, room, memory_of_game):
    memory_of_game(enabled=False)

    assert "EVENNIA_AI_MEMORY" in learnt(stage, "It rains.", room).refusal
    assert found(stage, "", room) == []


def test_recall_returns_matching_memories_best_first(stage, room):
    learnt(stage, "Anna owes Oren a rope.", room)
    learnt(stage, "The ferry leaves at dawn.", room)
    learnt(stage, "A rope hangs in the boathouse, a long rope.", room, importance=9)

    assert found(stage, "Where is the rope?", room) == [
        "A rope hangs in the boathouse, a long rope.",
        "Anna owes Oren a rope.",
    ]
    assert found(stage, "dragons", room) == []


def test_recall_without_words_returns_the_best_memories(stage, room):
    learnt(stage, "It rains.", room, importance=1)
    learnt(stage, "The ferry is lost.", room, importance=9)

    assert found(stage, "", room, limit=1) == ["The ferry is lost."]


def test_recall_can_be_restricted_to_one_person_or_the_world(stage, room):
    learnt(stage, "Anna owes Oren a rope.", room, about=str(stage.anna.id))
    learnt(stage, "The ferry is lost.", room)

    assert found(stage, "", room, about=str(stage.anna.id)) == ["Anna owes Oren a rope."]
    assert found(stage, "", room, about="") == ["The ferry is lost."]


def test_whispered_memory_is_found_only_with_the_whisperer(stage, room, with_anna, with_ben):
    learnt(stage, "Anna fears the lake.", with_anna)

    assert found(stage, "lake", with_anna) == ["Anna fears the lake."]
    assert found(stage, "lake", with_ben) == found(stage, "lake", room) == []


def test_found_memory_counts_as_recalled_now(stage, room):
    made = learnt(stage, "The ferry is lost.", room).memory
    models.Memory.objects.update(recalled_at=made.recalled_at - 100)
    forget_everything()
    recall(stage.npc.ai.ref, "ferry", where=room, rules=conf().memory)

    assert memories.get_memory(stage.npc.ai.ref, made.id).recalled_at >= made.recalled_at


def test_memory_stores_words_of_its_scene(stage, room):
    stage.talks_with(lambda request: "Aye, the storm took it.")
    stage.says(stage.anna, "Oren, where is the lantern of the mole?")
    made = learnt(stage, "Anna misses a light.", room).memory

    assert {"storm", "lanter", "ben"} <= {*made.scene.split()}
    assert memories.changes_of(stage.npc.ai.ref, made.id)[0].value["scene"] == made.scene


def test_person_hidden_from_the_npc_is_not_in_the_scene(stage, room):
    stage.ben.locks.add("view:false();search:false()")

    assert "ben" not in learnt(stage, "It rains.", room).memory.scene.split()


def test_memory_is_found_by_words_of_its_scene(stage, room):
    stage.talks_with(lambda request: "Aye, the storm took it.")
    stage.says(stage.anna, "Oren, where is the lantern of the mole?")
    learnt(stage, "Anna misses a light.", room)

    assert found(stage, "lantern", room) == ["Anna misses a light."]


def test_whispered_memory_is_found_by_its_scene_only_with_the_whisperer(stage, room, with_anna):
    stage.talks_with(lambda request: "Hush.")
    stage.whispers(stage.anna, "The lantern of the mole was mine.")
    learnt(stage, "Anna misses a light.", with_anna)
    learnt(stage, "It rains.", room)

    assert found(stage, "lantern", room) == []
    assert found(stage, "lantern", with_anna) == ["Anna misses a light."]


def test_best_matching_memory_is_first_even_if_it_is_old(stage, room):
    ref = stage.npc.ai.ref
    old = learnt(stage, "The ferry of Corvin sank.", room, importance=1).memory
    models.Memory.objects.filter(pk=old.id).update(recalled_at=old.recalled_at - 2000)
    forget_everything()
    learnt(stage, "The ferry is late.", room, importance=10)

    assert found(stage, "Corvin's ferry", room)[0] == old.text
    assert memories.get_memory(ref, old.id).recalled_at > old.recalled_at - 1
