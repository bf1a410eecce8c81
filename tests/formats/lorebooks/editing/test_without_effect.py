"""Reports on fields of SillyTavern's lore entries that have no effect in this package."""

import pytest

from evennia_ai.formats.lorebooks.editing.without_effect import list_idle_fields

WORLD = {"entries": {"0": {"vectorized": True, "automationId": "x"}, "1": {"vectorized": True}}}
V3 = {"entries": [{"extensions": {"vectorized": True, "automation_id": ""}}, {}]}


def test_field_without_effect_is_reported_with_the_number_of_entries() -> None:
    by_meaning, scripts = list_idle_fields(WORLD)
    assert by_meaning.startswith("vectorized of 2 entries has no effect and is kept")
    assert scripts.startswith("automationId of 1 entry has no effect and is kept")


def test_field_without_effect_is_not_reported_when_no_entry_uses_it() -> None:
    assert len(list_idle_fields(V3)) == 1
    assert len(list_idle_fields({"data": V3})) == 1


@pytest.mark.parametrize("book", [None, [], {}, {"entries": 5}, {"entries": [None, 1]}, "x"])
def test_value_that_is_no_book_has_no_fields_without_effect(book: object) -> None:
    assert list_idle_fields(book) == ()
