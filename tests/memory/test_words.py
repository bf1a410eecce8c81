"""Words are compared in any script, without most of their endings."""

import pytest

from evennia_ai.memory.memories import weight_of, words_of


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
    assert words_of(one) & words_of(other)


@pytest.mark.parametrize(("one", "other"), [("rope", "road"), ("boss", "bos"), ("灯塔", "码头")])
def test_two_words_share_nothing(one: str, other: str) -> None:
    assert not words_of(one) & words_of(other)


def test_marks_are_no_words() -> None:
    assert words_of("... !? -- \"'") == frozenset()


def test_a_script_without_blanks_counts_by_pairs() -> None:
    assert words_of("旧灯塔") == {"旧灯", "灯塔"}


def test_a_single_character_of_such_a_script_is_a_word() -> None:
    assert words_of("x 火 b") == {"x", "火", "b"}


def test_the_commonest_words_are_none() -> None:
    assert words_of("Where is the rope?") == {"rope"}


def test_a_short_word_tells_less_than_a_long_one() -> None:
    assert weight_of("the") < weight_of("ferrym") == weight_of("灯塔") == 1.0
