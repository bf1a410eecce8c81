"""Test that `DATABASES` is made from the address of a database."""

import pytest

from evennia_ai.services.settings.database import DatabaseAddressError, database


def test_database_address_becomes_the_django_setting():
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


def test_sqlite_file_gets_a_write_ahead_log():
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
def test_invalid_database_address_is_refused_without_being_quoted(address):
    with pytest.raises(DatabaseAddressError, match="it must be postgres://") as refused:
        database(address)

    assert "hidden" not in str(refused.value)


def test_missing_psycopg_is_reported_with_the_install_command(monkeypatch):
    monkeypatch.setattr("evennia_ai.services.settings.database.find_spec", lambda _: None)
    with pytest.raises(DatabaseAddressError, match=r'pip install "evennia-ai\[postgres\]"'):
        database("postgres://mara@localhost/harbour")
