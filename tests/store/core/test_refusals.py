"""Test that shown database errors contain no secrets."""

import pytest
from django.db import OperationalError

from evennia_ai.engine.errors import StoreError
from evennia_ai.store.core.refusals import reason_of
from evennia_ai.store.core.snapshots import Snapshots, one_transaction

SERVER = 'connection to server at "10.0.0.7", port 4630 failed'
# The driver's text, and what is shown of it.
TEXTS = {
    f"connection failed: {SERVER}: Connection refused\n\tIs the server running?": (
        "Connection refused"
    ),
    f"{SERVER}: Connection timed out\n\tIs the server running?": "Connection timed out",
    f'{SERVER}: FATAL:  password authentication failed for user "harbour"': "OperationalError",
    f'{SERVER}: FATAL:  database "harbour" does not exist': "OperationalError",
    f"{SERVER}: FATAL:  the database system is starting up": "the database system is starting up",
    f"{SERVER}: FATAL:  sorry, too many clients already": "sorry, too many clients already",
    'connection to server on socket "/srv/pg/.s.PGSQL.5432" failed: No such file or directory': (
        "No such file or directory"
    ),
    'could not translate host name "db.harbour.example" to address: Name or service not known': (
        "Name or service not known"
    ),
    "consuming input failed: server closed the connection unexpectedly\n\tThis probably means": (
        "server closed the connection unexpectedly"
    ),
    "canceling statement due to lock timeout\nCONTEXT:  while locking tuple (0,1) in relation x": (
        "canceling statement due to lock timeout"
    ),
    'could not extend file "base/16384/2619": No space left on device\nHINT:  Check free space.': (
        "No space left on device"
    ),
    'relation "evennia_ai_turn" does not exist\nLINE 1: SELECT secret FROM x': "OperationalError",
    "no such table: evennia_ai_turn": "OperationalError",
    "UNIQUE constraint failed: evennia_ai_turn.number": "OperationalError",
    "database is locked": "database is locked",
    "disk I/O error": "disk I/O error",
    "database or disk is full": "database or disk is full",
    "could not open /srv/harbour/evennia.db3": "OperationalError",
    "could not connect to 10.0.0.7": "OperationalError",
    "see: db.harbour.example": "OperationalError",
    "": "OperationalError",
}


@pytest.mark.parametrize("text", TEXTS)
def test_database_reason_has_no_address_name_or_path(text: str) -> None:
    assert reason_of(OperationalError(text)) == TEXTS[text]


def _refuses(_: str) -> str:
    raise OperationalError(f"{SERVER}: Connection refused")


@pytest.mark.parametrize("does", ["reads", "reads several", "writes"])
def test_store_error_hides_the_database_address_when_the_database_is_down(
    does: str, db: None
) -> None:
    kept = Snapshots("names", _refuses, load_each=lambda keys: {key: _refuses(key) for key in keys})
    with pytest.raises(StoreError, match="Connection refused") as told:
        if does == "reads":
            kept("x")
        elif does == "reads several":
            kept.load_missing(["x"])
        else:
            with one_transaction("naming somebody"):
                _refuses("x")
    assert "10.0.0.7" not in str(told.value)
    assert "10.0.0.7" in str(told.value.__cause__)
