"""Tests of SillyTavern's order at each place, and that a new entry changes few sort keys."""

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.lorebook.rules import ActivationRules
from tests.engine.lorebook.builders import a_book, a_scan, a_world_entry, awake

RULES = ActivationRules(rules="sillytavern", recursive=False)
BEFORE, DEPTH, EXAMPLES_BEFORE = 0, 4, 5
ORDERS = st.sampled_from([-1e9, -7, -1, -0.5, -0.0, 0, 0.25, 1, 2, 10, 100, 1e12])


def placed(*entries):
    """Return the active entries from top to bottom."""
    result = awake(a_book(*entries), scan=a_scan("user: coin"), rules=RULES)
    return sorted(result.entries, key=lambda entry: entry.sort_key)


def an_entry_of(order, *, position, role=0, text=""):
    return a_world_entry(text or f"{order} {role}", order=order, position=position, role=role)


@given(st.lists(st.tuples(ORDERS, st.sampled_from([0, 1, 2])), max_size=9))
def test_sillytavern_order_sorts_by_role_then_order_then_reversed_at_one_depth(several):
    """From top to bottom: assistant, user, system. In each role, low orders come first. Of equal
    orders, the last entry comes first."""
    entries = [
        an_entry_of(order, position=DEPTH, role=role, text=str(n))
        for n, (order, role) in enumerate(several)
    ]
    rank = {2: 0, 1: 1, 0: 2}
    wanted = sorted(range(len(several)), key=lambda n: (rank[several[n][1]], several[n][0], -n))
    assert [int(entry.text) for entry in placed(*entries)] == wanted


@given(st.lists(ORDERS, max_size=9))
def test_sillytavern_order_is_rising_before_character_and_falling_before_examples(orders):
    for position, sign in ((BEFORE, 1), (EXAMPLES_BEFORE, -1)):
        entries = [
            an_entry_of(order, position=position, text=str(n)) for n, order in enumerate(orders)
        ]
        numbers = range(len(orders))
        wanted = sorted(numbers, key=lambda n: (sign * orders[n], -sign * n))
        assert [int(entry.text) for entry in placed(*entries)] == wanted


def test_new_entry_changes_sort_keys_only_of_entries_of_its_order():
    entries = [an_entry_of(n, position=n % 6, text=f"text {n}") for n in range(60)]
    newcomer = an_entry_of(20.5, position=BEFORE, text="new")
    before = {entry.text: entry.sort_key for entry in placed(*entries)}
    after = {entry.text: entry.sort_key for entry in placed(*entries, newcomer)}
    assert {text: after[text] for text in before} == before


@given(st.lists(ORDERS, min_size=1, max_size=9))
def test_sillytavern_entries_of_one_place_have_equal_orders_among_other_texts(orders):
    """With different orders, an entry before a component could be placed after that component."""
    for position, one in ((BEFORE, 0), (EXAMPLES_BEFORE, 0), (DEPTH, 100)):
        entries = [an_entry_of(order, position=position) for order in orders]
        assert {entry.sort_key[0] for entry in placed(*entries)} == {one}
