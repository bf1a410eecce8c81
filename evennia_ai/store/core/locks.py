"""Locks: how long a statement waits for a lock that another process has.

Where the game waits, nobody in it is answered. So what the game's own thread writes of ours waits
for a moment and is then refused, which its callers know how to tell or to try again.

A thread that nobody waits for, such as the writer's or a worker's, tries again until the lock is
gone. Its statements wait for a second each, because a statement that waits for ever tells nobody
that it does: PostgreSQL knows no limit by itself. A refused statement undoes its transaction, so
nothing is written twice.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock, get_ident, local
from typing import Any, Final

from django.db import connection, connections
from django.db.backends.signals import connection_created

GAME_MILLISECONDS: Final = 100
"""How long the game's own thread waits."""

RETRYING_MILLISECONDS: Final = 1_000
"""How long a statement of a thread waits that tries again."""

LOCKED_SECONDS: Final = 0.05
"""Between two tries, besides the time that the database itself waits for a lock."""

_SQLITE_SECONDS: Final = 5.0
"""What Python's sqlite3 waits where the settings say nothing."""

_SQLITE_LOCKED: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_POSTGRES_LOCKED: Final = ("55P03", "40P01")
"""PostgreSQL's states lock_not_available and deadlock_detected (its manual, appendix A)."""

_SET_WAIT: Final = {"sqlite": "PRAGMA busy_timeout = ", "postgresql": "SET lock_timeout = "}

_games: set[int] = set()
_thread: Final = local()


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
    _wait(connection, GAME_MILLISECONDS)
    try:
        yield
    finally:
        _wait(connection, _usual_milliseconds())


def notice_locks() -> None:
    """Have a lock refuse this thread's statements after a second; the caller tries them again.

    This holds for the connections that the thread has, and for those that it opens later.
    """
    if getattr(_thread, "notices_locks", False):
        return
    _thread.notices_locks = True
    for known in connections.all(initialized_only=True):
        if known.connection is not None:
            _wait(known, RETRYING_MILLISECONDS)


def is_lock(error: BaseException | None) -> bool:
    """True if an error, or what it was raised from, is a lock that another process has."""
    while error is not None:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _SQLITE_LOCKED:
            return True
        if getattr(error, "sqlstate", "") in _POSTGRES_LOCKED:
            return True
        error = error.__cause__
    return False


class LockedOut:
    """The threads that wait for a lock of another process.

    The log says when the first of them begins to wait, and when the last goes on.
    """

    def __init__(self, log: Callable[[str], object]) -> None:
        self._log: Final = log
        self._waiting: Final[set[int]] = set()
        self._changing: Final = Lock()

    def __bool__(self) -> bool:
        """True while a thread waits."""
        return bool(self._waiting)

    def waits(self) -> None:
        """Note that a lock keeps this thread from going on."""
        with self._changing:
            if not self._waiting:
                self._log("evennia_ai: another process has locked the database; we wait")
            self._waiting.add(get_ident())

    def goes_on(self) -> None:
        """Note that no lock keeps this thread from going on."""
        with self._changing:
            if self._waiting == {get_ident()}:
                self._log("evennia_ai: the database is not locked any more")
            self._waiting.discard(get_ident())


def _wait(database: Any, milliseconds: int) -> None:
    if database.vendor in _SET_WAIT:
        with database.cursor() as cursor:
            cursor.execute(f"{_SET_WAIT[database.vendor]}{milliseconds}")


def _usual_milliseconds() -> int:
    """0 is PostgreSQL's own: for ever."""
    if connection.vendor != "sqlite":
        return 0
    options = connection.settings_dict.get("OPTIONS", {})
    return round(1000 * options.get("timeout", _SQLITE_SECONDS))


def _opened(connection: Any, **_: Any) -> None:
    """Django opened a connection in this thread."""
    if getattr(_thread, "notices_locks", False):
        _wait(connection, RETRYING_MILLISECONDS)


connection_created.connect(_opened)
