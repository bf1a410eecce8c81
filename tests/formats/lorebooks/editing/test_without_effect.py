"""Fields of SillyTavern's entries that do nothing here are told, of whatever form the book is."""

import pytest

from evennia_ai.formats.lorebooks.editing.without_effect import fields_without_effect

WORLD = {"entries": {"0": {"vectorized": True, "automationId": "x"}, "1": {"vectorized": True}}}
V3 = {"entries": [{"extensions": {"vectorized": True, "automation_id": ""}}, {}]}


def test_a_world_file_is_told_with_the_number_of_its_entries() -> None:
    by_meaning, scripts = fields_without_effect(WORLD)
    assert by_meaning.startswith("vectorized of 2 entries has no effect and is kept")
    assert scripts.startswith("automationId of 1 entry has no effect and is kept")


def test_what_is_empty_is_not_told() -> None:
    assert len(fields_without_effect(V3)) == 1
    assert len(fields_without_effect({"data": V3})) == 1


@pytest.mark.parametrize("book", [None, [], {}, {"entries": 5}, {"entries": [None, 1]}, "x"])
def test_what_is_no_book_has_nothing_to_tell(book: object) -> None:
    assert fields_without_effect(book) == ()
