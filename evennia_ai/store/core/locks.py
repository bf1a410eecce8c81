"""Limit how long a statement waits for a database lock that another process holds.

While the game's main thread waits, the game answers no player. So its statements wait only for a
moment; then the database refuses them, and the caller reports this or tries again. Other threads,
such as the writer or a worker, try again until the lock is released. Each of their statements waits
one second, because PostgreSQL has no limit by default, and a statement that waits for ever reports
nothing. A refused statement rolls back its transaction, so nothing is written twice.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock, get_ident, local
from typing import Any, Final

from django.db import connection, connections
from django.db.backends.signals import connection_created

GAME_MILLISECONDS: Final = 100
"""How long a statement of the game's main thread waits for a lock."""

RETRYING_MILLISECONDS: Final = 1_000
"""How long a statement waits for a lock in a thread that tries again."""

LOCKED_SECONDS: Final = 0.05
"""The pause between two tries, in addition to the time that the statement itself waits."""

_SQLITE_SECONDS: Final = 5.0
"""The default time that Python's sqlite3 waits for a lock."""

_SQLITE_LOCKED: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_POSTGRES_LOCKED: Final = ("55P03", "40P01")
"""PostgreSQL's error codes lock_not_available and deadlock_detected (its manual, appendix A)."""

_SET_WAIT: Final = {"sqlite": "PRAGMA busy_timeout = ", "postgresql": "SET lock_timeout = "}

_games: set[int] = set()
_thread: Final = local()


def mark_game_thread() -> None:
    """Mark this thread as the game's main thread, whose statements wait only for a moment."""
    _games.add(get_ident())


def unmark_game_thread() -> None:
    """Undo `mark_game_thread` when the server stops."""
    _games.discard(get_ident())


@contextmanager
def short_lock_wait() -> Iterator[None]:
    """In the game's main thread, let a transaction's statements wait only a moment for locks."""
    if get_ident() not in _games or connection.in_atomic_block:
        yield
        return
    _wait(connection, GAME_MILLISECONDS)
    try:
        yield
    finally:
        _wait(connection, _usual_milliseconds())


def notice_locks() -> None:
    """Let this thread's statements wait at most one second for a lock.

    The caller must try again.

    This applies to the thread's open connections and to those that it opens later.
    """
    if getattr(_thread, "notices_locks", False):
        return
    _thread.notices_locks = True
    for known in connections.all(initialized_only=True):
        if known.connection is not None:
            _wait(known, RETRYING_MILLISECONDS)


def is_lock(error: BaseException | None) -> bool:
    """True if an error or one of its causes means that another process holds a lock."""
    while error is not None:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _SQLITE_LOCKED:
            return True
        if getattr(error, "sqlstate", "") in _POSTGRES_LOCKED:
            return True
        error = error.__cause__
    return False


class LockedOut:
    """The threads that wait for another process to release a lock.

    It logs when the first thread begins to wait, and when the last one continues.
    """

    def __init__(self, log: Callable[[str], object]) -> None:
        self._log: Final = log
        self._waiting: Final[set[int]] = set()
        self._changing: Final = Lock()

    def __bool__(self) -> bool:
        """True while any thread waits."""
        return bool(self._waiting)

    def waits(self) -> None:
        """Add this thread to those that wait for the database. Log it if it is the first."""
        with self._changing:
            if not self._waiting:
                self._log("evennia_ai: another process has locked the database; waiting")
            self._waiting.add(get_ident())

    def goes_on(self) -> None:
        """Remove this thread from those that wait for the database. Log it if it was the last."""
        with self._changing:
            if self._waiting == {get_ident()}:
                self._log("evennia_ai: the database is not locked any more")
            self._waiting.discard(get_ident())


def _wait(database: Any, milliseconds: int) -> None:
    if database.vendor in _SET_WAIT:
        with database.cursor() as cursor:
            cursor.execute(f"{_SET_WAIT[database.vendor]}{milliseconds}")


def _usual_milliseconds() -> int:
    """Return how long a statement waits for a lock if only Django's settings decide.

    0 means no limit (PostgreSQL).
    """
    if connection.vendor != "sqlite":
        return 0
    options = connection.settings_dict.get("OPTIONS", {})
    return round(1000 * options.get("timeout", _SQLITE_SECONDS))


def _limit_wait(connection: Any, **_: Any) -> None:
    """Set the time limit on a connection that Django has just opened in this thread."""
    if getattr(_thread, "notices_locks", False):
        _wait(connection, RETRYING_MILLISECONDS)


connection_created.connect(_limit_wait)
