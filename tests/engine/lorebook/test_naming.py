"""Tests of the names by which people refer to entries."""

import pytest

from evennia_ai.engine.lorebook.book import Lorebook, find_entries, names_of
from evennia_ai.engine.prompt.report import origins_called
from evennia_ai.formats.lorebooks.books import read_book

BOOK = {
    "entries": [
        {"id": uid, "comment": name, "keys": ["k"], "content": "c", "enabled": True}
        | {"insertion_order": 1, "extensions": {}}
        for uid, name in ((7, "the ferry"), (8, "7"), (9, "The Ferry"), (10, ""))
    ]
}


def a_book(label: str = "harbour") -> Lorebook:
    return read_book(BOOK, label=label)


def test_id_of_an_entry_is_preferred_to_the_name_of_another() -> None:
    assert [entry.uid for entry in find_entries(a_book(), "7")] == ["7"]


def test_entry_name_means_every_entry_that_has_it_in_any_letter_case() -> None:
    assert [entry.uid for entry in find_entries(a_book(), "THE ferry")] == ["7", "9"]
    assert find_entries(a_book(), "nobody") == []


def test_names_of_leaves_out_entries_without_a_name() -> None:
    assert "lore:harbour#10" not in names_of([a_book()])


@pytest.mark.parametrize("wanted", ["the ferry", "harbour#the ferry", "lore:Harbour/THE FERRY"])
def test_entry_name_may_follow_the_name_of_its_book(wanted: str) -> None:
    names = names_of([a_book(), a_book("moor")])
    found = [origin for origin in origins_called(wanted, names) if "harbour" in origin]
    assert found == ["lore:harbour#7", "lore:harbour#9"]
    assert len(origins_called(wanted, names)) == (4 if wanted == "the ferry" else 2)
