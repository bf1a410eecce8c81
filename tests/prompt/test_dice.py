"""Dice: chance that is a function of what is rolled for."""

from evennia_ai.prompt.dice import Dice, fraction


def test_a_fraction_lies_in_its_range_and_is_spread() -> None:
    rolls = [fraction("seed", number) for number in range(2000)]
    assert all(0 <= roll < 1 for roll in rolls)
    assert 0.47 < sum(rolls) / len(rolls) < 0.53


def test_what_is_rolled_for_is_kept_apart() -> None:
    assert fraction("a", "bc") != fraction("ab", "c")
    assert Dice(turn="1", conversation="9").roll("x") != Dice(turn="2", conversation="9").roll("x")
    assert Dice(turn="1", conversation="9").pick("x") == Dice(turn="2", conversation="9").pick("x")


def test_a_lone_surrogate_can_be_rolled_for() -> None:
    assert 0 <= fraction("\ud800") < 1
