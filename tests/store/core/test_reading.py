"""Test reading with a time limit, on a separate database file."""

import pytest
from django.db import DatabaseError, OperationalError, connection, connections, transaction
from django.db.backends.sqlite3.base import DatabaseWrapper

from evennia_ai.engine.errors import StoreError
from evennia_ai.store.core import reading
from evennia_ai.store.core.reading import (
    ReadingTooLongError,
    limit_to_reading,
    read_limited,
)

FOREVER = """
WITH RECURSIVE counted(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted)
SELECT count(*) FROM counted
"""


@pytest.fixture
def database(tmp_path):
    settings = {**connection.settings_dict, "ENGINE": "django.db.backends.sqlite3", "OPTIONS": {}}
    made = DatabaseWrapper({**settings, "NAME": str(tmp_path / "a.sqlite3")}, "reading")
    with made.cursor() as cursor:
        cursor.execute("CREATE TABLE page (title)")
    connections["reading"] = made
    yield made
    made.close()
    del connections["reading"]


@pytest.fixture
def apart():
    """A second connection to the database of the tests, which may be PostgreSQL."""
    made = connections["reading"] = connection.copy("reading")
    yield made
    made.close()
    del connections["reading"]


def run(database, query):
    with database.cursor() as cursor:
        cursor.execute(query)
        return cursor.fetchall()


def make_a_table(database):
    with database.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE quay (title text)")


def test_slow_read_is_stopped(database):
    with (
        pytest.raises(ReadingTooLongError, match="longer than 20 ms and was given up"),
        limit_to_reading(database, seconds=0.02),
    ):
        run(database, FOREVER)


def test_first_error_of_a_read_is_reported_despite_later_ones(database):
    with pytest.raises(ReadingTooLongError), limit_to_reading(database, seconds=0.02):
        try:
            run(database, FOREVER)
        except OperationalError as error:
            raise StoreError("the pages cannot be searched") from error


def test_error_within_the_time_is_raised_unchanged(database):
    with (
        pytest.raises(OperationalError, match="no such table"),
        limit_to_reading(database, seconds=9),
    ):
        run(database, "SELECT 1 FROM nowhere")


@pytest.mark.req("S0-44")
def test_limited_read_cannot_write(database):
    with pytest.raises(OperationalError, match="readonly"), limit_to_reading(database, seconds=9):
        run(database, "INSERT INTO page VALUES ('Ferry')")


def test_limited_read_does_not_wait_long_for_a_lock(database):
    other = DatabaseWrapper(database.settings_dict, "writing")
    run(other, "BEGIN EXCLUSIVE")
    try:
        with pytest.raises(ReadingTooLongError), limit_to_reading(database, seconds=0.02):
            run(database, "SELECT title FROM page")
    finally:
        other.close()


def test_connection_is_restored_after_a_limited_read(database):
    before = run(database, "PRAGMA busy_timeout")
    with limit_to_reading(database, seconds=9):
        assert run(database, "SELECT 1") == [(1,)]

    run(database, "INSERT INTO page VALUES ('Ferry')")
    assert run(database, "PRAGMA busy_timeout") == before


def test_slow_read_is_stopped_on_every_database(apart):
    with pytest.raises(ReadingTooLongError), limit_to_reading(apart, seconds=0.02):
        run(apart, FOREVER)

    assert run(apart, "SELECT 1") == [(1,)]


@pytest.mark.req("S0-44")
def test_limited_read_cannot_write_on_every_database(apart):
    with pytest.raises(DatabaseError, match=r"read-?only"), limit_to_reading(apart, seconds=9):
        make_a_table(apart)

    make_a_table(apart)


def test_transaction_of_the_caller_is_not_limited(database, monkeypatch):
    monkeypatch.setattr(reading, "connection", database)
    with transaction.atomic("reading"):
        run(database, "INSERT INTO page VALUES ('Ferry')")
        found = read_limited(lambda: run(database, "SELECT title FROM page"), limit_seconds=0.0)

    assert found == run(database, "SELECT title FROM page") == [("Ferry",)]


def test_transaction_of_a_test_is_not_limited(db):
    """The database of the tests may be PostgreSQL."""
    assert connection.in_atomic_block
    assert read_limited(lambda: run(connection, "SELECT 1"), limit_seconds=0.0) == [(1,)]
    assert run(connection, "SELECT 2") == [(2,)]
