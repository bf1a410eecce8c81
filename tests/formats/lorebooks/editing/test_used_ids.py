"""Ids of removed lorebook entries are never given again, because past turns and locks use them."""

import pytest

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.lorebook.book import mode_in
from evennia_ai.formats.lorebooks.editing.edits import add_entry, new_book, remove_entry, set_mode

FIELDS = {"name": "x", "keys": ["x"], "content": "X."}
WORLD = {"entries": {}}


def grown(book, count):
    for _ in range(count):
        book, _ = add_entry(book, FIELDS)
    return book


@pytest.mark.parametrize("book", [new_book("inn"), {"entries": []}, WORLD])
@pytest.mark.parametrize("removed", [["2"], ["0"], ["2", "1"], ["1", "2"], ["0", "1", "2"]])
def test_new_entry_never_gets_the_id_of_a_removed_one(book, removed):
    book = grown(book, 3)
    for uid in removed:
        book = remove_entry(book, uid)
    book, first = add_entry(book, FIELDS)
    assert first == "3"
    book, second = add_entry(remove_entry(book, first), FIELDS)
    assert second == "4"


def test_last_id_is_kept_when_the_mode_changes():
    book = set_mode(remove_entry(grown(new_book("inn"), 2), "1"), "frozen")
    assert add_entry(book, FIELDS)[1] == "2"
    assert book["data"]["extensions"]["evennia_ai"] == {"mode": "frozen", "last_id": 1}


@pytest.mark.parametrize("last", [-1, "3", 1.5, True, None, 10**15, [1]])
def test_invalid_last_id_is_refused_by_name(last):
    with pytest.raises(FormatError, match="last_id: must be a whole number"):
        mode_in({"extensions": {"evennia_ai": {"last_id": last}}}, where="book")
