"""Dice: random numbers that depend only on a seed and a purpose."""

from evennia_ai.engine.prompt.dice import Dice, fraction, fractions, seed_of


def test_random_fractions_are_between_0_and_1_and_evenly_spread() -> None:
    rolls = [fraction("seed", number) for number in range(2000)]
    assert all(0 <= roll < 1 for roll in rolls)
    assert 0.47 < sum(rolls) / len(rolls) < 0.53


def test_random_numbers_differ_by_their_purpose() -> None:
    assert fraction("a", "bc") != fraction("ab", "c")
    assert Dice(turn="1", conversation="9").roll("x") != Dice(turn="2", conversation="9").roll("x")
    assert Dice(turn="1", conversation="9").pick("x") == Dice(turn="2", conversation="9").pick("x")


def test_random_number_purpose_may_contain_a_lone_surrogate() -> None:
    assert 0 <= fraction("\ud800") < 1


def test_random_fractions_from_one_hash_are_evenly_spread_and_differ_by_purpose() -> None:
    many = fractions(2000, "seed", 1)
    assert len(set(many)) == 2000
    assert all(0 <= one < 1 for one in many)
    assert 0.47 < sum(many) / len(many) < 0.53
    assert fractions(3, "seed", 1) == many[:3]
    assert fractions(3, "seed", 2) != many[:3]
    assert fractions(0, "seed") == []


def test_random_seed_of_a_text_is_short_and_unique() -> None:
    assert seed_of("a" * 10**6) != seed_of("a" * 10**6 + "b")
    assert len(seed_of("\ud800" * 1000)) == len(seed_of(""))
