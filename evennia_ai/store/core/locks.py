"""Locks: how long a write waits for a lock that another process has.

Where the game waits, nobody in it is answered. So what the game's own thread writes of ours waits
for a moment and is then refused, which its callers know how to tell or to try again; a thread that
nobody waits for has all the time that the database's settings give it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Any, Final

from django.db import connection

GAME_MILLISECONDS: Final = 100
"""How long the game's own thread waits."""

_SQLITE_SECONDS: Final = 5.0
"""What Python's sqlite3 waits where the settings say nothing."""

_games: set[int] = set()


def hurry() -> None:
    """This thread is the game's from now on."""
    _games.add(get_ident())


def take_time() -> None:
    """It is that no more: the server stops."""
    _games.discard(get_ident())


@contextmanager
def waiting_a_moment() -> Iterator[None]:
    """For a transaction: in the game's thread it waits no longer for a lock than a moment."""
    if get_ident() not in _games or connection.in_atomic_block:
        yield
        return
    _wait(GAME_MILLISECONDS)
    try:
        yield
    finally:
        _wait(_usual_milliseconds())


def _wait(milliseconds: int) -> None:
    told: Any = {"sqlite": "PRAGMA busy_timeout = ", "postgresql": "SET lock_timeout = "}
    if connection.vendor in told:
        with connection.cursor() as cursor:
            cursor.execute(f"{told[connection.vendor]}{milliseconds}")


def _usual_milliseconds() -> int:
    """0 is PostgreSQL's own: for ever."""
    if connection.vendor != "sqlite":
        return 0
    options = connection.settings_dict.get("OPTIONS", {})
    return round(1000 * options.get("timeout", _SQLITE_SECONDS))
