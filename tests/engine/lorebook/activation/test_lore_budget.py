"""Tests of the lore budget: what each entry costs, and that no budget is exceeded."""

from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.lorebook.activation.lore_budget import LoreBudget
from evennia_ai.engine.lorebook.rules import ActivationRules
from evennia_ai.engine.prompt.components import NO_GRANTS
from tests.engine.lorebook.builders import (
    a_book,
    a_scan,
    a_world_entry,
    an_entry,
    awake,
    reasons,
    texts,
)

COIN = a_scan("user: coin")


def told(result, label):
    """Return the full reason of the verdict on an entry, including its charge."""
    return next(v.reason for v in result.verdicts if v.item == f"lore:{label}")


def test_verdict_on_an_entry_has_the_lore_budget_before_and_after():
    book = a_book(an_entry("one two three"), an_entry("one two"))
    result = awake(book, rules=ActivationRules(budget_tokens=10))
    assert told(result, "book#0").endswith("; budget 10 -> 7 tokens")
    assert told(result, "book#1").endswith("; budget 7 -> 5 tokens")
    assert [verdict.tokens for verdict in result.verdicts] == [3, 2]


def test_verdict_on_an_entry_without_room_has_its_tokens():
    result = awake(a_book(an_entry("one two three")), rules=ActivationRules(budget_tokens=2))
    assert [(verdict.kept, verdict.tokens) for verdict in result.verdicts] == [(False, 3)]


def test_entry_that_ignores_the_budget_may_exceed_it():
    large = an_entry("one two three", extensions={"ignore_budget": True}, priority=200)
    result = awake(a_book(large, an_entry("one")), rules=ActivationRules(budget_tokens=2))
    assert texts(result) == ["one two three"]
    assert told(result, "book#0").endswith("; budget 2 -> -1 tokens")
    assert told(result, "book#1").endswith("needs 1 tokens, 0 were left")


def test_entry_that_ignores_the_budget_is_active_in_both_presets():
    entry = a_world_entry("one two three", ignoreBudget=True)
    for preset in ("evennia_ai", "sillytavern"):
        rules = ActivationRules(rules=preset, budget_tokens=1, overflow="stop")
        assert texts(awake(a_book(entry), rules=rules)) == ["one two three"]


def test_entry_that_ignores_the_budget_is_rolled_for_when_the_budget_is_full():
    full = an_entry("one two three", priority=900)
    lucky = an_entry("yes", extensions={"ignore_budget": True, "probability": 60})
    unlucky = an_entry("no", extensions={"ignore_budget": True, "probability": 40})
    rules = ActivationRules(budget_tokens=2, overflow="stop", dice=0.5)
    result = awake(a_book(full, lucky, unlucky), rules=rules)
    assert texts(result) == ["yes"]
    assert reasons(result)["book#2"].endswith("rolled 50.0 with a chance of 40 %")


def test_full_budget_stops_only_entries_that_use_the_same_budget():
    common = a_book(an_entry("one two three", priority=900), an_entry("one"), label="common")
    own = a_book(
        an_entry("own", extensions={"probability": 60}),
        an_entry("unlucky", extensions={"probability": 40}),
        label="own",
        token_budget=2,
    )
    rules = ActivationRules(budget_tokens=2, overflow="stop", dice=0.5)
    assert texts(awake(common, own, rules=rules)) == ["own"]


def test_smaller_of_two_budgets_applies_to_a_book_without_grant():
    entries = [an_entry(f"{number} two") for number in range(3)]
    for own, rules in ((4, 100), (100, 4)):
        book = a_book(*entries, grants=NO_GRANTS, token_budget=own)
        result = awake(book, rules=ActivationRules(budget_tokens=rules))
        assert texts(result) == ["0 two", "1 two"]


def test_speaker_without_a_name_has_a_share_of_the_budget():
    scan = a_scan("user: coin", "user Ben: gate")
    book = a_book(an_entry("a"), an_entry("b"), an_entry("c", keys=["gate"]))
    result = awake(book, scan=scan, rules=ActivationRules(speaker_matches=1))
    assert texts(result) == ["a", "c"]
    assert reasons(result)["book#1"].endswith(
        "over the share of somebody, who activated 1 entries already"
    )


def test_speaker_before_the_scanned_window_does_not_count_for_shares():
    scan = a_scan("user Ben: gate", "assistant: -", "user Anna: coin")
    book = a_book(an_entry("a"), an_entry("b"), scan_depth=2)
    result = awake(book, scan=scan, rules=ActivationRules(speaker_matches=1))
    assert texts(result) == ["a", "b"]


def test_key_in_a_speakers_name_counts_as_said_by_that_speaker():
    scan = a_scan("user Ben: -", event="Anna: hm")
    book = a_book(an_entry("a", keys=["Anna"]), an_entry("b", keys=["Anna"]))
    result = awake(book, scan=scan, rules=ActivationRules(speaker_matches=1))
    assert texts(result) == ["a"]


def test_constant_entries_get_room_before_matched_entries_of_any_priority():
    constant = an_entry("one two", keys=[], constant=True, priority=-5)
    rules = ActivationRules(budget_tokens=3)
    assert texts(awake(a_book(an_entry("1 2", priority=900), constant), rules=rules)) == ["one two"]


PEOPLE = st.sampled_from(["Anna", "Ben", "Cara"])
SIZED = st.tuples(
    st.sampled_from(["coin", "gate", "bell"]), st.integers(1, 5), st.booleans(), st.integers(0, 3)
)


@given(
    st.lists(SIZED, max_size=7),
    st.lists(SIZED, max_size=4),
    st.lists(st.tuples(PEOPLE, st.sampled_from(["coin", "gate", "bell", "-"])), max_size=4),
    st.integers(0, 15),
    st.integers(0, 8),
    st.sampled_from([30, 50, 100]),
)
def test_active_entries_never_exceed_the_lore_budgets(plain, own, lines, budget, own_budget, share):
    def entries(listed):
        return [
            an_entry(" ".join(["x"] * size), keys=[key], constant=constant, priority=priority)
            for key, size, constant, priority in listed
        ]

    books = [
        a_book(*entries(plain), label="plain"),
        a_book(*entries(own), label="own", token_budget=own_budget),
    ]
    rules = ActivationRules(budget_tokens=budget, speaker_share_percent=share)
    result = awake(
        *books, scan=a_scan(*(f"user {who}: {text}" for who, text in lines)), rules=rules
    )
    spent = {
        label: sum(e.tokens for e in result.entries if e.book == label)
        for label in ("plain", "own")
    }
    assert spent["plain"] <= budget
    assert spent["own"] <= own_budget
    speakers = {who for who, _ in lines}
    if len(speakers) > 1:
        for who in speakers:
            said = [i for i, (speaker, _) in enumerate(lines) if speaker == who]
            woken = [
                entry.tokens
                for entry in result.entries
                if any(
                    f"in message {index + 1} at" in result.causes[entry.identity] for index in said
                )
            ]
            assert sum(woken) <= int(budget * share / 100) or share == 100


def test_entries_of_a_book_without_budget_grant_never_displace_other_entries():
    card = a_book(an_entry("one two", constant=True, priority=900), label="card", grants=NO_GRANTS)
    world = a_book(an_entry("three four", priority=1), label="world")
    result = awake(card, world, scan=COIN, rules=ActivationRules(budget_tokens=3))
    assert texts(result) == ["three four"]


SEVERAL = st.lists(
    st.builds(
        an_entry,
        st.sampled_from(["one", "one two", "one two three", "feeds a key"]),
        keys=st.sampled_from([["coin"], ["key"]]),
        priority=st.integers(0, 2),
        constant=st.booleans(),
        extensions=st.sampled_from(
            [{}, {}, {"ignore_budget": True}, {"probability": 50}, {"group": "g"}]
        ),
    ),
    max_size=8,
)


@given(
    SEVERAL,
    SEVERAL,
    st.none() | st.integers(0, 9),
    st.sampled_from(["evennia_ai", "sillytavern"]),
    st.sampled_from(["skip", "stop"]),
    st.sampled_from([0, 1]),
    st.integers(0, 20),
)
def test_entries_admitted_together_cost_as_much_as_entries_admitted_one_by_one(
    first, second, own_budget, preset, overflow, speaker_matches, budget
):
    def verdicts():
        rules = ActivationRules(
            rules=preset, overflow=overflow, speaker_matches=speaker_matches, budget_tokens=budget
        )
        books = a_book(*first), a_book(*second, label="other", token_budget=own_budget)
        return awake(*books, scan=a_scan("user: coin", "user: key"), rules=rules).verdicts

    in_a_row = verdicts()
    with patch.object(LoreBudget, "offer_in_a_row", lambda self, candidates: []):
        assert verdicts() == in_a_row
