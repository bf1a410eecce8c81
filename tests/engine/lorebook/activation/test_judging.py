"""Tests of the judgement on one entry: secondary keys, the order of conditions, and scores."""

import pytest

from evennia_ai.engine.lorebook.rules import ActivationRules
from tests.engine.lorebook.builders import a_book, a_scan, an_entry, awake, reasons, texts
from tests.engine.lorebook.turns import a_turn

WANTS = "- key 'coin' in message 1 at 0-4, but wants"
LOGICS = ("any", "not_all", "not_any", "all")


def with_secondary(logic, *secondary, **more):
    number = LOGICS.index(logic)
    fields = {"selective": True, "secondary_keys": list(secondary), **more}
    return an_entry(**fields, extensions={"selectiveLogic": number})


@pytest.mark.parametrize(
    ("logic", "said", "is_awake"),
    [
        ("any", "coin", False),
        ("any", "coin red", True),
        ("any", "coin red blue", True),
        ("not_all", "coin", True),
        ("not_all", "coin red", True),
        ("not_all", "coin red blue", False),
        ("not_any", "coin", True),
        ("not_any", "coin red", False),
        ("not_any", "coin red blue", False),
        ("all", "coin", False),
        ("all", "coin red", False),
        ("all", "coin red blue", True),
        *((logic, "red blue", False) for logic in LOGICS),
    ],
)
def test_secondary_key_logic_decides_by_the_number_of_found_keys(logic, said, is_awake):
    book = a_book(with_secondary(logic, "red", "blue"))
    assert bool(texts(awake(book, scan=a_scan(f"user: {said}")))) == is_awake


@pytest.mark.parametrize(
    ("logic", "said", "reason"),
    [
        (
            "any",
            "coin",
            f"{WANTS} one of 'red', 'blue': none there",
        ),
        ("any", "coin blue", "+ key 'coin' in message 1 at 0-4, and one of 'red', 'blue'"),
        (
            *("all", "coin blue"),
            f"{WANTS} all of 'red', 'blue': 'red' missing",
        ),
        (
            *("not_all", "coin blue red"),
            f"{WANTS} not all of 'red', 'blue': 'red', 'blue' there",
        ),
        (
            *("not_any", "coin blue"),
            f"{WANTS} none of 'red', 'blue': 'blue' there",
        ),
    ],
)
def test_reason_names_the_secondary_keys_that_decided(logic, said, reason):
    book = a_book(with_secondary(logic, "red", "blue"))
    assert reasons(awake(book, scan=a_scan(f"user: {said}"))) == {"book#0": reason}


def test_secondary_keys_do_not_count_for_an_entry_that_is_not_selective():
    book = a_book(with_secondary("all", "red", selective=False))
    assert texts(awake(book)) == ["Some lore."]


def test_constant_entry_ignores_its_secondary_keys():
    book = a_book(with_secondary("all", "red", constant=True))
    assert reasons(awake(book)) == {"book#0": "+ constant"}


def test_secondary_key_may_be_in_another_message_than_the_primary_key():
    book = a_book(with_secondary("any", "red"))
    lines = ["user: red", "user: -", "user: coin"]
    assert texts(awake(book, scan=a_scan(*lines)))
    assert not texts(awake(book, scan=a_scan(*lines), rules=ActivationRules(scan_depth=2)))


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (an_entry("@@activate\nA.", enabled=False), "- disabled"),
        (an_entry("@@dont_activate\nA.", constant=True), "- @@dont_activate"),
        (an_entry("@@dont_activate\n@@activate\nA."), "+ @@activate"),
        (
            an_entry("@@activate_only_after 9\n@@exclude_keys coin\nA."),
            "- @@activate_only_after 9: 1 reply so far",
        ),
        (
            an_entry("@@exclude_keys coin\nA.", extensions={"delay": 9}),
            "- delay: inactive until 9 turns, 1 so far",
        ),
        (
            an_entry("@@is_greeting 1\nA.", extensions={"evennia_ai": {"npcs": ["Oren"]}}),
            "- npc.key must be Oren, and the fact is unknown",
        ),
        (an_entry("@@is_greeting 1\nA.", keys=["gate"]), "- no key in the newest 4 messages"),
    ],
)
def test_first_unmet_condition_in_a_fixed_order_is_the_reason(entry, reason):
    scan = a_scan("assistant: Aye.", "user: coin")
    assert reasons(awake(a_book(entry), scan=scan)) == {"book#0": reason}


def test_is_user_icon_decorator_is_met_by_the_icon_of_the_user():
    book = a_book(an_entry("@@is_user_icon sailor\nA."), absent={})
    for icon, is_awake in ((None, True), ("sailor", True), ("monk", False)):
        assert bool(texts(awake(book, rules=ActivationRules(user_icon=icon)))) == is_awake


def test_activate_only_every_decorator_counts_the_replies_so_far():
    book = a_book(an_entry("@@activate_only_every 2\nA."))
    said = [
        bool(texts(awake(book, scan=a_scan(*["assistant: coin"] * replies))))
        for replies in range(1, 5)
    ]
    assert said == [False, True, False, True]


def test_event_to_answer_does_not_count_as_a_reply():
    book = a_book(an_entry("@@activate_only_after 1\nA."))
    assert texts(awake(book, scan=a_scan(event="Anna: coin"))) == []


def test_activate_decorator_ignores_conditions_timers_and_delay_levels():
    entry = an_entry(
        "@@activate\n@@activate_only_after 99\n@@is_greeting 7\nA.",
        keys=[],
        extensions={"delay": 99, "delay_until_recursion": 5},
    )
    assert texts(a_turn(a_book(entry), scan=a_scan())) == ["A."]


def test_member_with_most_found_keys_wins_a_scored_group():
    def member(content, *keys, **more):
        return an_entry(content, keys=list(keys), extensions={"group": "g", **more})

    rules = ActivationRules(group_scoring=True, dice=0.0)
    book = a_book(member("one", "coin"), member("two", "coin", "gate"))
    assert texts(awake(book, scan=a_scan("user: coin gate"), rules=rules)) == ["two"]
