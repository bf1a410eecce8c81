"""A database by its address."""

import pytest

from evennia_ai.services.settings.database import LIBRARY, DatabaseAddressError, database, library


def test_an_address_is_what_django_calls_databases():
    made = database("postgres://mara:p%40ss%2F@db.example:5433/harbour?sslmode=require")["default"]

    named = {name: made[name] for name in ("NAME", "USER", "PASSWORD", "HOST", "PORT")}
    assert named == {
        "NAME": "harbour",
        "USER": "mara",
        "PASSWORD": "p@ss/",
        "HOST": "db.example",
        "PORT": "5433",
    }
    assert made["OPTIONS"]["sslmode"] == "require"
    assert made["OPTIONS"]["connect_timeout"] == 5


def test_a_file_has_the_write_ahead_log():
    made = database("sqlite:////var/lib/harbour/game.db3")["default"]

    assert made["NAME"] == "/var/lib/harbour/game.db3"
    assert "WAL" in made["OPTIONS"]["init_command"]


@pytest.mark.parametrize(
    "address",
    [
        "",
        "harbour",
        "mysql://mara:hidden@localhost/harbour",
        "postgres://mara:hidden@localhost",
        "postgres://mara:hidden@localhost/",
        "postgres://mara:hidden@localhost:many/harbour",
        "sqlite://relative.db3",
        "sqlite:///relative.db3",
    ],
)
def test_what_is_no_address_is_refused_without_being_told(address):
    with pytest.raises(DatabaseAddressError, match="it must be postgres://") as refused:
        database(address)

    assert "hidden" not in str(refused.value)


def test_where_psycopg_is_missing_it_is_said_how_to_get_it(monkeypatch):
    monkeypatch.setattr("evennia_ai.services.settings.database.find_spec", lambda _: None)
    with pytest.raises(DatabaseAddressError, match=r'pip install "evennia-ai\[postgres\]"'):
        database("postgres://mara@localhost/harbour")


def test_a_library_stands_beside_the_games_own_database():
    made = database("postgres://mara:hidden@localhost/harbour")
    made |= library("postgres://mara:hidden@localhost/library")

    assert {name: one["NAME"] for name, one in made.items()} == {
        "default": "harbour",
        LIBRARY: "library",
    }


def test_a_library_in_a_file_is_read_by_who_may_not_write_it():
    assert library("sqlite:////srv/library.db3")[LIBRARY]["OPTIONS"] == {}


def test_what_is_no_address_of_a_library_is_refused_without_being_told():
    with pytest.raises(DatabaseAddressError, match="it must be postgres://") as refused:
        library("postgres://mara:hidden@localhost")

    assert "hidden" not in str(refused.value)


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ("postgres://mara@localhost/harbour", ["evennia_ai.E101"]),
        ("postgres://reader@localhost/harbour", ["evennia_ai.E101"]),
        ("postgres://mara@localhost/library", []),
        ("postgres://mara@elsewhere/harbour", []),
        ("sqlite:////srv/library.db3", []),
        (None, []),
    ],
)
def test_the_games_own_database_is_no_library(address, found, monkeypatch):
    from django.conf import settings

    from evennia_ai.checks import check_library

    made = database("postgres://mara@localhost/harbour") | (library(address) if address else {})
    monkeypatch.setattr(settings, "DATABASES", made)

    assert [one.id for one in check_library()] == found
