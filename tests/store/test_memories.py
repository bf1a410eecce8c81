"""Test stored memories: added, merged, limited, and recalled with a turn."""

from dataclasses import replace

import pytest
from django.db import transaction

from evennia_ai import models
from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import ComponentValueError, NotStoredError
from evennia_ai.engine.memory.memories import Memory
from evennia_ai.store import memories
from evennia_ai.store.core.snapshots import forget_everything
from evennia_ai.store.memories import changes_of, memories_then
from tests.engine.memory.builders import ANNA, BEN, a_memory

NPC = "12"


def added(text: str = "The ferry leaves at dawn.", *, most: int = 500, by="npc", **fields):
    new = a_memory(text, id=memories.NEW, **fields)
    return memories.add_memory(NPC, new, by=trusted(by), most=most)


def kept() -> list[str]:
    return [memory.text for memory in memories.held_by(NPC).memories]


def actions(memory: Memory) -> list[str]:
    return [change.action for change in changes_of(NPC, memory.id)]


def test_memory_is_read_back():
    fields = {"about": ANNA, "importance": 7, "created_at": 3.5, "recalled_at": 4.5}
    made = added(**fields, learnt="private", place_ref="3", turn=9, author="Mira").memory
    forget_everything()

    assert memories.held_by(NPC).memories == (made,)
    assert (made.about, made.importance, made.learnt, made.turn) == (ANNA, 7, "private", 9)


def test_cached_memories_are_read_without_a_query(no_queries):
    added()
    memories.held_by(NPC)

    with no_queries():
        assert memories.get_memory(NPC, memories.held_by(NPC).memories[0].id).revision == 1


def test_memories_of_another_npc_are_separate():
    added()

    assert memories.held_by("13").memories == ()


@pytest.mark.parametrize(
    "again", ["The ferry leaves at dawn.", "the FERRY leaves at dawn!", "A ferry leaves at dawn"]
)
def test_repeated_content_makes_a_memory_more_important(again):
    first = added(importance=3).memory
    second = added(again, importance=5, recalled_at=8.0)

    assert kept() == ["The ferry leaves at dawn."]
    assert second.is_merged
    assert (second.memory.importance, second.memory.recalled_at) == (6, 8.0)
    assert actions(first) == ["created", "merged"]


def test_importance_does_not_exceed_its_maximum():
    added(importance=10)

    assert added(importance=10).memory.importance == 10


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"about": ANNA}, {"about": BEN}),
        ({"about": ANNA}, {"about": ANNA, "learnt": "private"}),
        ({"text": "Anna hit Ben."}, {"text": "Ben hit Anna."}),
        ({"text": "Ben is a thief."}, {"text": "Ben is not a thief."}),
    ],
)
def test_other_content_is_another_memory(one, other):
    added(**one)
    added(**other)

    assert len(kept()) == 2


def test_weakest_memory_is_dropped_over_the_limit():
    added("Old and small.", importance=1)
    added("Great fire.", importance=9)
    last = added("New.", importance=5, created_at=900.0, recalled_at=900.0, most=2)

    assert [gone.text for gone in last.dropped] == ["Old and small."]
    assert kept() == ["Great fire.", "New."]
    assert actions(last.dropped[0]) == ["created", "faded"]


def test_memory_written_by_a_builder_is_dropped_last():
    added("A builder's word.", importance=1, author="Mira", by=trusted("Mira"))
    added("Great fire.", importance=9, most=1)

    assert kept() == ["A builder's word."]


def test_builder_can_change_a_memory():
    made = added().memory
    changed = memories.change_memory(
        NPC, made.id, by=trusted("Mira"), text="The ferry is lost.", importance=9
    )

    assert (changed.text, changed.importance, changed.revision) == ("The ferry is lost.", 9, 2)
    assert kept() == ["The ferry is lost."]
    assert "lost" in changed.words_in(())
    assert [c.changed_by for c in changes_of(NPC, made.id)] == ["npc", "Mira"]


def test_unchanged_memory_gets_no_revision():
    made = added(importance=5).memory

    assert memories.change_memory(NPC, made.id, by=trusted("Mira"), importance=5).revision == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"text": ""},
        {"text": "x" * 301},
        {"text": "two\nlines"},
        {"text": "a\x00b"},
        {"importance": 0},
        {"importance": 11},
        {"importance": True},
        {"learnt": "shouted"},
    ],
)
def test_invalid_memory_value_changes_nothing(fields):
    made = added().memory

    with pytest.raises(ComponentValueError, match=f"the memory's {next(iter(fields))}"):
        memories.change_memory(NPC, made.id, by=trusted("Mira"), **fields)
    with pytest.raises(ComponentValueError):
        added(**{"text": "Another one.", **fields})
    assert memories.held_by(NPC).memories == (made,)


def test_removed_memory_is_gone_and_its_revisions_stay():
    made = added().memory
    memories.remove_memory(NPC, made.id, by=trusted("Mira"))

    assert kept() == []
    assert actions(made) == ["created", "removed"]
    with pytest.raises(NotStoredError):
        memories.remove_memory(NPC, made.id, by=trusted("Mira"))


def test_memory_of_another_npc_is_not_found():
    made = added().memory

    with pytest.raises(NotStoredError):
        memories.change_memory("13", made.id, by=trusted("Mira"), importance=9)


def test_memory_id_is_never_reused():
    gone = added().memory
    memories.remove_memory(NPC, gone.id, by=trusted("Mira"))

    assert added().memory.id > gone.id


def test_duplicate_memories_are_merged():
    one, other = added("Fire!", importance=4).memory, added("It burns.", importance=6).memory
    left = memories.merge_memories(NPC, one, [other], by=trusted("npc"))

    assert kept() == ["Fire!"]
    assert (left.importance, actions(other)) == (7, ["created", "doubled"])


def test_faded_memories_are_dropped_together():
    one, other = added("Fire!").memory, added("It burns.").memory

    assert memories.fade_memories(NPC, [one.id, other.id, 999], by=trusted("npc")) == 2
    assert kept() == []


def test_recalled_memory_is_fresh_again():
    made = added().memory
    with transaction.atomic():
        memories.mark_recalled(NPC, [made.id], at_hours=30.0)
    forget_everything()

    again = memories.get_memory(NPC, made.id)
    assert (again.recalled_at, again.revision) == (30.0, 1)


def test_recall_within_the_hour_is_not_written(no_queries):
    made = added(recalled_at=29.5).memory
    memories.held_by(NPC)

    with no_queries():
        memories.mark_recalled(NPC, [made.id], at_hours=30.0)


def test_unwritten_turn_recalls_nothing():
    made = added().memory
    memories.held_by(NPC)
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        memories.mark_recalled(NPC, [made.id], at_hours=30.0)
        assert memories.get_memory(NPC, made.id).recalled_at == 30.0
        1 / 0  # noqa: B018

    assert memories.get_memory(NPC, made.id).recalled_at == 0.0


def test_past_memory_is_restored_after_edits_and_removal():
    made = added().memory
    memories.change_memory(NPC, made.id, by=trusted("Mira"), text="The ferry is lost.")
    memories.remove_memory(NPC, made.id, by=trusted("Mira"))

    then = memories_then({made.id: (1, 2.5)})
    assert then == (replace(made, recalled_at=2.5),)
    with pytest.raises(NotStoredError):
        memories_then({made.id: (3, 2.5)})
    with pytest.raises(NotStoredError):
        memories_then({made.id: (9, 2.5)})


def test_memory_row_has_every_field_of_the_value():
    made = added(about=ANNA).memory

    row = models.Memory.objects.get(pk=made.id)
    assert (row.npc_ref, row.text, row.about) == (NPC, made.text, ANNA)
