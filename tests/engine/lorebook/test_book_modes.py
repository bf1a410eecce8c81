"""Tests of the mode of a book in `extensions.evennia_ai`, in V3 books and world files."""

import pytest

from evennia_ai.engine.errors import FormatError
from evennia_ai.formats.lorebooks.books import read_book
from evennia_ai.formats.lorebooks.conversion import as_v3, as_world
from evennia_ai.formats.lorebooks.editing.edits import new_book, set_mode
from tests.engine.lorebook.builders import a_book, a_world_entry, an_entry

FROZEN = {"evennia_ai": {"mode": "frozen"}}
BOOKS = {
    "v3": {"entries": [an_entry()], "extensions": {"theirs": 1}},
    "standalone": {
        "spec": "lorebook_v3",
        "data": {"entries": [an_entry()], "extensions": {}},
        "more": 2,
    },
    "world": {"entries": {"0": a_world_entry()}, "theirs": 3, "extensions": {}},
}


def test_book_is_floating_by_default():
    assert a_book().mode == "floating"
    assert a_book(extensions={"evennia_ai": {"mode": None}}).mode == "floating"
    assert a_book(extensions=FROZEN).mode == "frozen"


def test_given_book_mode_overrides_the_mode_in_the_file():
    assert a_book(extensions=FROZEN, mode="floating").mode == "floating"


@pytest.mark.parametrize("book", BOOKS.values(), ids=BOOKS)
def test_removing_the_book_mode_leaves_no_field(book):
    frozen = set_mode(book, "frozen")

    assert read_book(frozen).mode == "frozen"
    assert set_mode(frozen, "frozen") == frozen
    assert set_mode(frozen, "floating") == book


def test_setting_the_book_mode_keeps_other_extensions():
    assert set_mode(BOOKS["v3"], "frozen")["extensions"] == {"theirs": 1, **FROZEN}


def test_setting_the_book_mode_does_not_change_the_given_data():
    book = new_book("harbour")
    set_mode(book, "frozen")

    assert book == new_book("harbour")


@pytest.mark.parametrize("name", ["standalone", "world"])
def test_book_mode_survives_conversion_to_another_format_and_back(name):
    frozen = set_mode(BOOKS[name], "frozen")
    there, back = (as_world, as_v3) if name == "standalone" else (as_v3, as_world)

    assert read_book(there(frozen)).mode == "frozen"
    assert back(there(frozen)) == frozen


def test_a_book_of_another_program_can_be_frozen():
    memory = {"kind": "memory", "name": "m", "entries": [{"entry": "Wet.", "keywords": ["sea"]}]}

    assert read_book(set_mode(memory, "frozen")).mode == "frozen"


@pytest.mark.parametrize(
    ("own", "told"),
    [
        ([], r"book inn\.extensions\.evennia_ai: must be an object of mode and last_id, not \[\]"),
        ({"moed": "frozen"}, r"extensions\.evennia_ai: unknown member 'moed'; it may be mode"),
        ({"mode": "ice"}, r"evennia_ai\.mode: must be floating or frozen, not 'ice'"),
        ({"mode": ["frozen"]}, r"must be floating or frozen, not \['frozen'\]"),
    ],
)
def test_invalid_book_mode_data_is_named_in_the_error(own, told):
    with pytest.raises(FormatError, match=told):
        a_book(label="inn", extensions={"evennia_ai": own})


def test_book_extensions_of_another_type_give_the_default_mode():
    assert a_book(extensions=7).mode == "floating"
