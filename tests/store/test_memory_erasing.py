"""Test that memories of a person are erased with their revisions and in prompts."""

import json
from contextlib import suppress

import pytest

from evennia_ai import models
from evennia_ai.engine.actors import trusted
from evennia_ai.engine.history.records import NewRecord, RecordKind
from evennia_ai.store import memories
from evennia_ai.store.core.snapshots import forget_everything
from evennia_ai.store.erasing import count_about, erase_about, forget_old, forget_person, people
from evennia_ai.store.history import record_rows
from evennia_ai.store.history.conversations import append_records, get_or_open_conversation
from evennia_ai.store.history.verifying import verify
from evennia_ai.store.history.windows import windows
from evennia_ai.store.memories import changes_of
from tests.engine.memory.builders import ANNA, BEN, a_memory
from tests.store.builders import a_line, a_turn, said

NPC = "12"
SECRET = "Anna hid the gold."


@pytest.fixture
def quay():
    return get_or_open_conversation(NPC, kind="room", place_ref="3")


def learnt(text: str = SECRET, *, npc: str = NPC, **fields):
    fields = {"about": ANNA, **fields}
    return memories.add_memory(
        npc, a_memory(text, id=memories.NEW, **fields), by=trusted("npc"), most=9
    ).memory


def a_prompt_text(memory, **meta) -> NewRecord:
    """Store the text of a prompt that showed a memory."""
    parts = [[memory.origin, 0, len(memory.text), memory.revision]]
    return a_line(
        memory.text, kind=RecordKind.CONTEXT_BLOCK, name="", meta={"parts": parts, **meta}
    )


def everything() -> str:
    return json.dumps(
        [
            *models.Memory.objects.values_list("text"),
            *models.MemoryRevision.objects.values_list("value"),
            *models.Record.objects.values_list("body", "meta"),
        ]
    )


def test_erased_memory_leaves_no_words(quay):
    made = learnt()
    memories.change_memory(NPC, made.id, by=trusted("Mira"), text="Anna hid the gold twice.")
    append_records(quay, [a_prompt_text(made)])
    count = erase_about(ANNA, by=trusted("Mira"))

    assert count == 1
    assert "gold" not in everything()
    assert memories.held_by(NPC).memories == ()
    assert [change.action for change in changes_of(NPC, made.id)] == [
        "created",
        "updated",
        "erased",
    ]


def test_removed_memory_is_erased_too(quay):
    made = learnt()
    memories.remove_memory(NPC, made.id, by=trusted("Mira"))

    assert count_about(ANNA) == 1
    assert erase_about(ANNA, by=trusted("Mira")) == 1
    assert "gold" not in everything()


def test_memories_about_others_stay(quay):
    learnt("Ben sings.", about=BEN)
    learnt("The ferry is lost.", about="")
    learnt()
    erase_about(ANNA, by=trusted("Mira"))

    assert [m.text for m in memories.held_by(NPC).memories] == ["Ben sings.", "The ferry is lost."]


def test_memories_about_the_world_cannot_be_erased_by_person(quay):
    learnt("The ferry is lost.", about="")

    assert (count_about(""), erase_about("", by=trusted("Mira"))) == (0, 0)
    assert len(memories.held_by(NPC).memories) == 1


def test_erasing_for_one_npc_leaves_the_memories_of_others(quay):
    learnt()
    learnt(npc="13")
    erase_about(ANNA, by=trusted("Mira"), npc_ref=NPC)

    assert memories.held_by(NPC).memories == ()
    assert len(memories.held_by("13").memories) == 1


def test_rest_of_the_conversation_stays_with_a_valid_chain(quay):
    made = learnt()
    append_records(quay, [a_line("Good evening!"), a_prompt_text(made), a_line("Fog again.")])
    erase_about(ANNA, by=trusted("Mira"))

    assert said(quay) == ["Good evening!", "Fog again."]
    assert verify(quay) is None
    last = record_rows.records_of(quay)[-1]
    assert (last.kind, last.meta["by"], last.meta["of"]) == ("erasure", "Mira", "memories")
    assert windows(quay.id).remembered_from == 1


def test_text_of_a_memory_in_the_history_is_erased(quay):
    made = learnt()
    append_records(quay, [a_line("Good evening!")])
    append_records(quay, [a_prompt_text(made, stays=True, of="dynamic", before="1.1")])
    assert SECRET in said(quay)
    erase_about(ANNA, by=trusted("Mira"))

    assert said(quay) == ["Good evening!"]
    append_records(quay, [a_line("Fog again.")])
    forget_everything()
    assert said(quay) == ["Good evening!", "Fog again."]


def test_prompt_with_another_memory_keeps_its_words(quay):
    made = learnt()
    other = learnt("Ben sings.", about=BEN)
    append_records(quay, [a_prompt_text(other)])
    erase_about(ANNA, by=trusted("Mira"))

    assert made.id != other.id
    assert "Ben sings." in everything()


def test_turn_works_after_an_erasure_of_memories(quay):
    made = learnt()
    append_records(quay, [a_prompt_text(made)])
    erase_about(ANNA, by=trusted("Mira"))

    assert a_turn(quay).number == 1


def test_whispers_and_memories_are_erased_together(quay):
    whispers = get_or_open_conversation(NPC, kind="private", partner_ref=ANNA)
    append_records(whispers, [a_line("The gold is mine.")])
    learnt()
    done = forget_person(ANNA, by=trusted("Mira"), npc_ref=NPC)

    assert (done.said.conversations, done.memories) == (1, 1)
    assert "gold" not in everything()


def test_erasure_of_memories_is_complete_or_nothing(quay, monkeypatch):
    learnt()
    monkeypatch.setattr("evennia_ai.store.erasing.erase_private", _fails)
    with suppress(ZeroDivisionError):
        forget_person(ANNA, by=trusted("Mira"))

    forget_everything()
    assert [memory.text for memory in memories.held_by(NPC).memories] == [SECRET]


def _fails(*_, **__):
    raise ZeroDivisionError


def test_people_with_memories_are_listed(quay):
    learnt()
    learnt("The ferry is lost.", about="")
    assert people() == (ANNA,)
    erase_about(ANNA, by=trusted("Mira"))
    assert people() == ()


def test_conversation_with_erased_memories_still_expires(quay):
    made = learnt()
    append_records(quay, [a_line("Good evening!"), a_prompt_text(made)])
    erase_about(ANNA, by=trusted("Mira"))

    assert forget_old(4e9, keep_days=1).conversations == 1
    assert said(quay) == []
