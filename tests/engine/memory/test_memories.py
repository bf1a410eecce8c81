"""Memories of an NPC: the candidates of a turn, surplus memories, and compared words."""

import pytest

from evennia_ai.engine.memory.memories import (
    MOST_CANDIDATES,
    Memory,
    MemorySet,
    comparison_words,
    surplus_memories,
    word_weight,
)
from tests.engine.memory.builders import ANNA, BEN, a_memory


def candidates(*memories: Memory, speaker: str = ANNA, present: tuple[str, ...] = ()) -> list[int]:
    found = MemorySet(memories).candidates(speaker_ref=speaker, present_refs=present)
    return [memory.id for memory in found]


def test_memory_candidates_are_about_the_speaker_people_present_and_the_world() -> None:
    memories = [
        a_memory(id=number, about=about) for number, about in enumerate([ANNA, BEN, "", "99"])
    ]
    assert candidates(*memories, present=(ANNA, BEN)) == [0, 1, 2]
    assert candidates(*memories) == [0, 2]


def test_memory_candidates_without_a_speaker_are_about_the_world() -> None:
    assert candidates(a_memory(id=1, about=ANNA), a_memory(id=2), speaker="") == [2]


def test_memory_candidates_include_only_whispers_of_the_speaker() -> None:
    hers = a_memory(id=1, about=ANNA, learnt="private")
    his = a_memory(id=2, about=BEN, learnt="private")
    assert candidates(hers, his, present=(BEN,)) == [1]


def test_memory_candidates_keep_those_about_the_speaker_at_the_limit() -> None:
    world = [a_memory(id=i, recalled_at=float(i)) for i in range(MOST_CANDIDATES)]
    hers = a_memory(id=900, about=ANNA)
    found = candidates(*world, hers)
    assert len(found) == MOST_CANDIDATES
    assert found[0] == 1  # the memory of the world that was recalled longest ago is left out
    assert found[-1] == 900


def test_no_memory_is_surplus_up_to_the_limit() -> None:
    assert surplus_memories(MemorySet((a_memory(),)), most=1, hours=0.0) == []


def test_surplus_memory_is_the_least_important_one() -> None:
    small, great = a_memory(id=1, importance=1), a_memory(id=2, importance=9)
    assert surplus_memories(MemorySet((small, great)), most=1, hours=0.0) == [small]


def test_builders_memories_are_the_last_surplus_memories() -> None:
    builders = a_memory(id=1, importance=1, author="Mira")
    great = a_memory(id=2, importance=9)
    assert surplus_memories(MemorySet((builders, great)), most=1, hours=0.0) == [great]


def test_added_memory_replaces_the_memory_with_its_id() -> None:
    old, other = a_memory(id=1), a_memory("Fire!", id=2)
    new = a_memory("Lost.", id=1)
    assert MemorySet((old, other)).with_memory(new).memories == (new, other)
    assert MemorySet((old, other)).without([1]).memories == (other,)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("rope", "Ropes"),
        ("harbour", "HARBOURS"),
        ("remember", "remembrance"),
        ("Straße", "STRASSE"),
        ("корабль", "Корабля"),
        ("ﬁsh", "fish"),
        ("灯塔", "这座灯塔很旧"),
    ],
)
def test_forms_of_a_word_share_a_comparison_word(one: str, other: str) -> None:
    assert comparison_words(one) & comparison_words(other)


@pytest.mark.parametrize(("one", "other"), [("rope", "road"), ("boss", "bos"), ("灯塔", "码头")])
def test_different_words_share_no_comparison_word(one: str, other: str) -> None:
    assert not comparison_words(one) & comparison_words(other)


def test_comparison_words_ignore_punctuation() -> None:
    assert comparison_words("... !? -- \"'") == frozenset()


def test_comparison_words_are_pairs_in_scripts_without_blanks() -> None:
    assert comparison_words("旧灯塔") == {"旧灯", "灯塔"}


def test_comparison_words_keep_a_single_character_in_scripts_without_blanks() -> None:
    assert comparison_words("x 火 b") == {"x", "火", "b"}


def test_comparison_words_leave_out_the_most_common_words() -> None:
    assert comparison_words("Where is the rope?") == {"rope"}


def test_word_weight_is_lower_for_a_short_word() -> None:
    assert word_weight("the") < word_weight("ferrym") == word_weight("灯塔") == 1.0
