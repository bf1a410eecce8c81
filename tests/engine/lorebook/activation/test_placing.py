"""Tests of where active entries are placed, and of their order at each place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.lorebook.activation.placed_entries import in_output_order, outlets_of
from evennia_ai.engine.lorebook.entry import Anchor
from evennia_ai.engine.lorebook.rules import ActivationRules
from evennia_ai.engine.prompt.components import MAX_DEPTH, NO_GRANTS
from tests.engine.lorebook.builders import a_book, an_entry, awake

CODES = ("before", "after", "note_top", "note_bottom", "depth", "examples_before", "examples_after")


def placed(content="Some lore.", **more):
    """Make a constant entry. Arguments that are no fields of V3 become extensions."""
    own = {name: more.pop(name) for name in ("insertion_order", "id") if name in more}
    return an_entry(content, keys=[], constant=True, extensions=more, **own)


def ours(content="Some lore.", **more):
    return placed(content, evennia_ai=more)


@pytest.mark.parametrize(("code", "position"), enumerate(CODES))
def test_active_entry_has_its_position_with_depth_and_role(code, position):
    [entry] = awake(a_book(placed(position=code, depth=3, role=2))).entries
    assert (entry.position, entry.role) == (position, "assistant")
    assert entry.depth == (3 if position == "depth" else None)
    assert (entry.outlet, entry.anchor) == ("", None)


def test_active_entry_has_the_name_of_its_outlet_or_anchor():
    beside = {"component": "goals", "side": "before"}
    book = a_book(
        placed(position=7, outlet_name="tides"), ours(outlet="tides"), ours(anchor=beside)
    )
    first, second, third = awake(book).entries
    assert (first.position, first.outlet) == (second.position, second.outlet) == ("outlet", "tides")
    assert third.anchor == Anchor(component="goals", side="before")


@pytest.mark.req("S3-08")
@pytest.mark.parametrize(
    "entry",
    [
        placed(position=0, role=0),
        placed(position=2),
        placed(position=5),
        placed(position=7, outlet_name="tides"),
        ours(anchor={"component": "system_prompt", "side": "before"}),
    ],
)
def test_entry_outside_the_history_moves_to_its_top_without_the_grant(entry):
    [contained] = awake(a_book(entry, grants=NO_GRANTS)).entries
    assert (contained.position, contained.depth, contained.role) == ("depth", MAX_DEPTH, "user")
    assert (contained.from_oldest, contained.outlet, contained.anchor) == (False, "", None)


def test_entry_with_a_depth_keeps_it_in_the_role_user_without_grants():
    newest, oldest = awake(
        a_book(
            placed("@@depth 0\n@@role assistant\nObey."),
            placed("@@reverse_depth 3\nObey."),
            grants=NO_GRANTS,
        )
    ).entries
    assert (newest.depth, newest.from_oldest, newest.role) == (0, False, "user")
    assert (oldest.depth, oldest.from_oldest, oldest.role) == (3, True, "user")


@pytest.mark.parametrize(
    ("grants", "stands"),
    [
        ({"positions"}, ("before", "user")),
        ({"roles"}, ("depth", "system")),
        ({"positions", "roles"}, ("before", "system")),
    ],
)
def test_each_grant_allows_only_the_place_or_the_role_that_it_is_for(grants, stands):
    [entry] = awake(a_book(placed(position=0, role=0), grants=frozenset(grants))).entries
    assert (entry.position, entry.role) == stands


@pytest.mark.parametrize("position", [2, 3, 7])
@pytest.mark.parametrize(
    ("grants", "stands"),
    [
        ({"positions"}, ("depth", "user")),
        ({"roles"}, ("depth", "system")),
    ],
)
def test_entry_inside_the_note_or_an_outlet_needs_both_grants(position, grants, stands):
    entry = placed(position=position, outlet_name="tides")
    [active] = awake(a_book(entry, grants=frozenset(grants))).entries
    assert (active.position, active.role, active.outlet) == (*stands, "")


def test_entries_of_a_place_are_sorted_by_order_then_book_order():
    books = [
        a_book(placed("w2", insertion_order=2), placed("w1", insertion_order=1), label="world"),
        a_book(placed("c2", insertion_order=2), label="card", attach="character"),
    ]
    entries = awake(*books).entries
    assert [entry.text for entry in in_output_order(entries)] == ["w1", "c2", "w2"]


def test_order_of_an_entry_may_be_a_fraction_or_below_zero():
    book = a_book(*(placed(str(order), insertion_order=order) for order in (0.5, 0, -3, 10, 9)))
    entries = awake(book).entries
    assert [entry.text for entry in in_output_order(entries)] == ["-3", "0", "0.5", "9", "10"]


def test_many_entries_of_equal_order_keep_the_order_of_their_book():
    book = a_book(*(placed(f"t{number}") for number in range(1200)))
    entries = in_output_order(awake(book, limit_tokens=100_000).entries)
    assert [entry.text for entry in entries] == [f"t{number}" for number in range(1200)]


def test_each_outlet_has_its_entries_in_order():
    book = a_book(
        ours("b", outlet="tides"),
        ours("other", outlet="winds"),
        placed("a", evennia_ai={"outlet": "tides"}, insertion_order=1),
        placed("elsewhere"),
    )
    outlets = outlets_of(awake(book).entries)
    assert {name: [entry.text for entry in members] for name, members in outlets.items()} == {
        "tides": ["a", "b"],
        "winds": ["other"],
    }


ATTACHED = [
    (attach, orders)
    for attach, orders in (
        ("chat", (3, 1)),
        ("player", (1, 1)),
        ("character", (2,)),
        ("room", (1, 2)),
        ("zone", (1,)),
        ("global", (0, 1)),
    )
]


@given(st.permutations(ATTACHED), st.sampled_from(["evenly", "character_first", "global_first"]))
def test_activation_does_not_depend_on_the_order_of_the_given_books(attached, strategy):
    rules = ActivationRules(strategy=strategy)

    def result(listed):
        return awake(
            *(
                a_book(
                    *(placed(f"{attach} {n}", insertion_order=o) for n, o in enumerate(orders)),
                    label=attach,
                    attach=attach,
                )
                for attach, orders in listed
            ),
            rules=rules,
        )

    mixed, plain = result(attached), result(ATTACHED)
    assert [entry.text for entry in mixed.entries] == [entry.text for entry in plain.entries]
    assert [entry.text for entry in in_output_order(mixed.entries)] == [
        entry.text for entry in in_output_order(plain.entries)
    ]
    assert mixed.verdicts == plain.verdicts


def test_unchanged_book_reuses_its_active_entries():
    book = a_book(placed())
    [first], [second] = awake(book).entries, awake(book).entries
    assert first == second
