"""A library that is away, locked, or not there yet: told in one line, and nothing is changed."""

import sqlite3
from contextlib import closing

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.store.core.copies import copies
from evennia_ai.store.library import entries as shelf
from evennia_ai.store.library.entries import LibraryError, entries, entry, reading, remove
from evennia_ai.store.library.following import look
from tests.shared_library import published_base
from tests.store.library.test_bases import FERRY, taken, texts


def test_a_game_without_a_library_is_told_where_to_read_of_it(db):
    assert not shelf.is_named()
    with pytest.raises(LibraryError, match=r"has no library; docs/build/library\.md"), reading():
        entries()


def test_nothing_is_asked_where_nothing_was_taken(library):
    assert look() == look()
    assert not library.exists()


def test_reading_makes_no_file_where_there_is_none(library):
    with pytest.raises(LibraryError, match="its file is missing"), reading():
        entries()
    assert not library.exists()


def test_a_library_that_goes_away_leaves_what_was_taken(library):
    published_base(FERRY)
    taken()
    before = copies()
    library.rename(library.with_suffix(".away"))
    with pytest.raises(LibraryError, match="its file is missing"):
        look()
    assert (texts(), copies()) == (FERRY, before)


def test_a_library_that_somebody_locks_is_given_up(library):
    published_base(FERRY)
    taken()
    with closing(sqlite3.connect(library, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with (
            pytest.raises(LibraryError, match=r"took longer than 0\.05 s"),
            reading(seconds=0.05),
        ):
            entries()
    assert texts() == FERRY


def test_a_file_that_is_no_library_is_told(library):
    library.write_bytes(b"no database at all, though as long as the head of one would be")
    with pytest.raises(LibraryError, match="the library cannot be read: file is not a database"):
        with reading():
            entries()


def test_a_library_that_is_only_read_cannot_be_published_to(library):
    published_base(FERRY)
    with reading(), pytest.raises(LibraryError, match="cannot be written, nothing was changed"):
        remove("base", "harbour", by=trusted("Ismay"))


def test_what_the_library_has_is_told_where_something_else_is_wanted(library):
    published_base(FERRY)
    with pytest.raises(LibraryError, match="has no moor; it has harbour"), reading():
        entry("base", "moor")
    with pytest.raises(LibraryError, match="has no card:Oren; it has harbour"):
        remove("card", "Oren", by=trusted("Ismay"))
