"""All memories of an NPC, which of them a turn may be about, and the words they are compared by."""

import pytest

from evennia_ai.engine.memory.memories import (
    MOST_CANDIDATES,
    Held,
    Memory,
    compared_words,
    surplus,
    weight_of,
)
from tests.engine.memory.builders import ANNA, BEN, a_memory


def candidates(*memories: Memory, speaker: str = ANNA, present: tuple[str, ...] = ()) -> list[int]:
    found = Held(memories).candidates(speaker_ref=speaker, present_refs=present)
    return [memory.id for memory in found]


def test_the_speaker_those_present_and_the_world_count() -> None:
    memories = [
        a_memory(id=number, about=about) for number, about in enumerate([ANNA, BEN, "", "99"])
    ]
    assert candidates(*memories, present=(ANNA, BEN)) == [0, 1, 2]
    assert candidates(*memories) == [0, 2]


def test_without_a_speaker_only_the_world_counts() -> None:
    assert candidates(a_memory(id=1, about=ANNA), a_memory(id=2), speaker="") == [2]


def test_a_whisper_of_the_speaker_is_looked_at_and_that_of_another_is_not() -> None:
    hers = a_memory(id=1, about=ANNA, learnt="private")
    his = a_memory(id=2, about=BEN, learnt="private")
    assert candidates(hers, his, present=(BEN,)) == [1]


def test_there_is_a_bound_and_the_speaker_comes_first() -> None:
    world = [a_memory(id=i, recalled_at=float(i)) for i in range(MOST_CANDIDATES)]
    hers = a_memory(id=900, about=ANNA)
    found = candidates(*world, hers)
    assert len(found) == MOST_CANDIDATES
    assert found[0] == 1  # of the world the one that was recalled longest ago gives way
    assert found[-1] == 900


def test_no_surplus_under_the_bound() -> None:
    assert surplus(Held((a_memory(),)), most=1, hours=0.0) == []


def test_the_least_worth_is_too_much() -> None:
    small, great = a_memory(id=1, importance=1), a_memory(id=2, importance=9)
    assert surplus(Held((small, great)), most=1, hours=0.0) == [small]


def test_what_a_builder_wrote_is_worth_more_than_anything_else() -> None:
    builders = a_memory(id=1, importance=1, author="Mira")
    great = a_memory(id=2, importance=9)
    assert surplus(Held((builders, great)), most=1, hours=0.0) == [great]


def test_a_new_form_of_a_memory_takes_its_place() -> None:
    old, other = a_memory(id=1), a_memory("Fire!", id=2)
    new = a_memory("Lost.", id=1)
    assert Held((old, other)).with_memory(new).memories == (new, other)
    assert Held((old, other)).without([1]).memories == (other,)


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
def test_two_forms_of_a_word_share_something(one: str, other: str) -> None:
    assert compared_words(one) & compared_words(other)


@pytest.mark.parametrize(("one", "other"), [("rope", "road"), ("boss", "bos"), ("灯塔", "码头")])
def test_two_words_share_nothing(one: str, other: str) -> None:
    assert not compared_words(one) & compared_words(other)


def test_marks_are_no_words() -> None:
    assert compared_words("... !? -- \"'") == frozenset()


def test_a_script_without_blanks_counts_by_pairs() -> None:
    assert compared_words("旧灯塔") == {"旧灯", "灯塔"}


def test_a_single_character_of_such_a_script_is_a_word() -> None:
    assert compared_words("x 火 b") == {"x", "火", "b"}


def test_the_commonest_words_are_none() -> None:
    assert compared_words("Where is the rope?") == {"rope"}


def test_a_short_word_tells_less_than_a_long_one() -> None:
    assert weight_of("the") < weight_of("ferrym") == weight_of("灯塔") == 1.0
