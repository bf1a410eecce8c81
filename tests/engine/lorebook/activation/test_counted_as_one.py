"""Tests of `CountedAsOne`: SillyTavern's budget with only a few counts of tokens."""

from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.lorebook.activation.lore_budget import CountedAsOne
from evennia_ai.engine.lorebook.rules import ActivationRules
from evennia_ai.engine.prompt.tokens import TokenCounter
from tests.engine.lorebook.builders import a_book, an_entry, awake, texts

# SillyTavern estimates 3.35 characters for each token and rounds up. So two texts counted
# separately have as many tokens as both together, or one more.
GUESSING = TokenCounter("guessing", "1", lambda text: -(-len(text) * 100 // 335))
LONG = st.text(alphabet="ab ", min_size=1, max_size=40).filter(str.strip)
ENTRIES = st.lists(
    st.builds(
        an_entry,
        st.one_of(LONG, LONG.map(lambda text: f"{text} key")),
        keys=st.sampled_from([["coin"], ["key"]]),
        constant=st.booleans(),
        insertion_order=st.integers(0, 3),
        extensions=st.sampled_from([{}, {}, {"ignore_budget": True}, {"probability": 50}]),
    ),
    max_size=10,
)


def rules_of(**more):
    return ActivationRules(rules="sillytavern", budget_percent=100, **more)


@given(ENTRIES, st.integers(1, 90), st.sampled_from(["skip", "stop"]), st.booleans())
def test_estimated_count_admits_the_same_entries_as_sillytavern(
    entries, budget, overflow, recursive
):
    def admitted():
        rules = rules_of(overflow=overflow, budget_tokens=budget, recursive=recursive)
        return texts(awake(a_book(*entries), rules=rules, counter=GUESSING))

    bounded = admitted()
    at_most = patch.object(CountedAsOne, "at_most", lambda self, tokens: 10**9)
    at_least = patch.object(CountedAsOne, "at_least", lambda self, tokens: -(10**9))
    with at_most, at_least:
        assert admitted() == bounded


@pytest.mark.parametrize(("budget", "active"), [(16, 10), (15, 9), (14, 8), (1, 0)])
def test_token_count_after_the_last_admitted_entry_is_exact(budget, active):
    """Ten texts of 2 tokens each have 15 tokens together. They must have fewer tokens than the
    budget."""
    book = a_book(*(an_entry(f"lo{n:02}") for n in range(10)))
    rules = rules_of(budget_tokens=budget, recursive=False)
    assert len(awake(book, rules=rules, counter=GUESSING).entries) == active


def counted_for(*, entries, budget, overflow="stop", one_by_one=False):
    """Return how many characters are counted besides one count of each entry, and the active
    entries.

    If `one_by_one`, the first entry has a chance, so entries are not admitted several at once.
    """
    contents = [f"entry {n} " + "word " * 40 for n in range(entries)]
    counted = []

    def count(text):
        counted.append(len(text))
        return len(text) // 4

    chance = {"probability": 99} if one_by_one else {}
    first = an_entry(contents[0], insertion_order=900, extensions=chance)
    book = a_book(first, *(an_entry(content) for content in contents[1:]))
    rules = rules_of(budget_tokens=budget, recursive=False, overflow=overflow, dice=0.1)
    noting = TokenCounter("noting", "1", count)
    result = awake(book, rules=rules, counter=noting, limit_tokens=budget)
    return sum(counted) - sum(map(len, contents)), len(result.entries)


@pytest.mark.parametrize("one_by_one", [False, True])
def test_no_entry_text_is_counted_twice_when_all_entries_fit(one_by_one):
    more, active = counted_for(entries=300, budget=100_000, one_by_one=one_by_one)
    assert active == 300
    assert more < 1_000


@pytest.mark.parametrize("overflow", ["stop", "skip"])
def test_entry_texts_are_counted_together_only_near_the_budget_limit(overflow):
    text = 210  # approximate characters of one entry
    more, active = counted_for(entries=300, budget=5_000, overflow=overflow)
    assert 80 < active < 110
    assert more < 6 * active * text
