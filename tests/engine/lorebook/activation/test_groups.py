"""Tests of inclusion groups: one member wins, and the verdicts on the others name the winner."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.lorebook.rules import ActivationRules
from evennia_ai.engine.prompt.dice import Dice
from tests.engine.lorebook.builders import a_book, a_scan, an_entry, awake, reasons, texts
from tests.engine.lorebook.turns import over_turns


def member(content, group="g", *, keys=("coin",), **more):
    return an_entry(content, keys=list(keys), extensions={"group": group, **more})


@pytest.mark.parametrize(
    ("roll", "winner"), [(0.0, "light"), (0.1, "light"), (0.11, "heavy"), (0.999, "heavy")]
)
def test_group_winner_is_drawn_by_weight_in_processing_order(roll, winner):
    book = a_book(member("light", group_weight=10), member("heavy", group_weight=90))
    assert texts(awake(book, rules=ActivationRules(dice=roll))) == [winner]


def test_group_winners_are_drawn_in_proportion_to_weights():
    book = a_book(member("rare", group_weight=10), member("usual", group_weight=90))
    won = [texts(awake(book, dice=Dice(turn=str(n), conversation="1"))) for n in range(400)]
    assert 20 <= won.count(["rare"]) <= 65
    assert won.count(["rare"]) + won.count(["usual"]) == 400


def test_group_has_a_winner_without_any_weight():
    book = a_book(member("a", group_weight=0), member("b", group_weight=0))
    assert len(texts(awake(book, rules=ActivationRules(dice=0.9)))) == 1


def test_each_group_has_its_own_roll():
    entries = [member(f"{group}{n}", group) for group in ("g", "h") for n in range(6)]
    turns = [
        texts(awake(a_book(*entries), dice=Dice(turn=str(n), conversation="1"))) for n in range(20)
    ]
    assert all(len(turn) == 2 for turn in turns)
    assert any(first[1:] != second[1:] for first, second in turns)


def test_group_names_are_split_at_commas_and_case_sensitive():
    book = a_book(member("a", "weather, talk"), member("b", "Weather"), member("c", "talk"))
    assert texts(awake(book, rules=ActivationRules(dice=0.0))) == ["a", "b"]


def test_repeated_group_name_counts_once():
    book = a_book(member("a", "g,g"), member("b", "g"))
    result = awake(book, rules=ActivationRules(dice=0.0))
    assert reasons(result)["book#0"].endswith("won group 'g' of 2 (weight 100 of 200, rolled 0.00)")


def test_constant_entry_competes_in_its_group_like_others():
    constant = {**member("constant", keys=()), "constant": True}
    book = a_book(constant, member("preferred", group_override=True))
    assert texts(awake(book)) == ["preferred"]


def test_group_member_of_a_later_pass_loses_when_another_is_active():
    book = a_book(member("The bell."), member("late", keys=["bell"], group_override=True))
    result = awake(book)
    assert texts(result) == ["The bell."]
    assert reasons(result)["book#1"].endswith("; group 'g' already has the active entry book#0")


def test_group_cooldown_holds_for_all_groups_of_the_entry():
    joke = member("joke", "jokes,talk", evennia_ai={"group_cooldown": 2})
    book = a_book(
        joke, member("pun", "talk", keys=["gate"]), member("tale", "tales", keys=["gate"])
    )
    first, second, third = over_turns(book, said=["coin", "gate", "gate"])
    assert texts(first) == ["joke"]
    assert texts(second) == ["tale"]
    assert sorted(texts(third)) == ["pun", "tale"]


def test_sticky_group_member_stays_during_group_cooldown():
    joke = member("joke", sticky=3, evennia_ai={"group_cooldown": 9})
    assert [texts(turn) for turn in over_turns(a_book(joke), said=["coin", "-", "-", "coin"])] == [
        *(["joke"], ["joke"], ["joke"]),
        [],
    ]


GROUPS = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=3).map(",".join)
MEMBERS = st.lists(
    st.tuples(
        GROUPS,
        st.sampled_from(["coin", "gate", "bell"]),
        st.fixed_dictionaries(
            {},
            optional={
                "group_weight": st.integers(0, 3),
                "group_override": st.booleans(),
                "use_group_scoring": st.booleans(),
                "probability": st.sampled_from([0, 50, 100]),
            },
        ),
    ),
    max_size=8,
)


@given(MEMBERS, st.booleans(), st.integers(0, 5))
def test_at_most_one_member_of_a_group_is_active(members, scoring, turn):
    book = a_book(
        *(
            member(f"T{n} bell", group, keys=[key], **more)
            for n, (group, key, more) in enumerate(members)
        )
    )
    rules = ActivationRules(group_scoring=scoring)
    dice = Dice(turn=str(turn), conversation="1")
    result = awake(book, scan=a_scan("user: coin gate"), rules=rules, dice=dice)
    active = [set(members[int(entry.uid)][0].split(",")) for entry in result.entries]
    for group in "abc":
        assert sum(group in groups for groups in active) <= 1
    for uid, reason in reasons(result).items():
        if "group '" in reason and reason.startswith("-"):
            groups = members[int(uid.removeprefix("book#"))][0].split(",")
            assert any(f"group '{group}'" in reason for group in groups)


@given(MEMBERS)
def test_every_group_with_candidates_has_a_winner_when_no_entry_has_a_chance(members):
    alone = [(group.split(",")[0], key) for group, key, _ in members if key != "bell"]
    book = a_book(*(member(f"T{n}", group, keys=[key]) for n, (group, key) in enumerate(alone)))
    result = awake(book, scan=a_scan("user: coin gate"))
    assert {alone[int(entry.uid)][0] for entry in result.entries} == {group for group, _ in alone}
