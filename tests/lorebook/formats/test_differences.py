"""Differences are found, undone, and left alone where somebody changed the member since."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.lorebook.formats.conversion import differences, restored, same


def test_a_difference_names_the_member_and_both_sides():
    assert differences({"a": 1, "b": 2}, {"b": "2", "c": 3}) == [
        {"at": ["a"], "rebuilt": 1},
        {"at": ["b"], "original": "2", "rebuilt": 2},
        {"at": ["c"], "original": 3},
    ]


def test_members_of_extensions_differ_one_by_one():
    found = differences({"extensions": {"a": 1, "b": 1}}, {"extensions": {"a": 1, "b": 2}})
    assert found == [{"at": ["extensions", "b"], "original": 2, "rebuilt": 1}]


@pytest.mark.parametrize(("one", "other"), [(1, True), (1, 1.0), (0, False), ("1", 1), ([], {})])
def test_values_of_other_types_are_not_the_same(one, other):
    assert not same(one, other)


def test_a_member_that_was_changed_since_is_left_alone():
    found = differences({"a": 1, "b": 1}, {"a": 2, "b": 2})
    assert restored({"a": 1, "b": 5}, found) == {"a": 2, "b": 5}


VALUES = st.none() | st.booleans() | st.integers(0, 2) | st.lists(st.integers(0, 1), max_size=2)
OBJECTS = st.dictionaries(st.sampled_from(["a", "b", "c"]), VALUES)
WITH_INSIDE = OBJECTS | st.builds(
    lambda part, inside: {**part, "extensions": inside}, OBJECTS, OBJECTS | VALUES
)


@given(WITH_INSIDE, WITH_INSIDE)
def test_undoing_all_differences_gives_the_original(rebuilt, original):
    assert same(restored(rebuilt, differences(rebuilt, original)), original)


@given(WITH_INSIDE, VALUES | st.lists(VALUES | OBJECTS | st.fixed_dictionaries({"at": VALUES})))
def test_what_is_no_difference_is_left_alone(value, found):
    assert restored(value, found) == value
