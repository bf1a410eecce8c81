"""Reading in a thread: with a connection of the thread's own, nothing written, in limited time.

Django gives each thread a connection. Here it may read alone and only for so long: SQLite is
interrupted between two steps of its program and waits no longer for a lock, PostgreSQL ends the
statement itself. Where no server runs, as in tests and on the command line, it is read in place. A
transaction that somebody has begun there is theirs: whoever began it bounds it, and its connection
stays as it is. Django, asked to close what is old, would close it, as it finds autocommit off.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from django.db import InterfaceError, OperationalError, connection, transaction

from evennia_ai.engine.errors import StoreError

T = TypeVar("T")

_STEPS: Final = 1_000
"""Steps of SQLite's program from one look at the clock to the next; some hundredths of a ms."""


class ReadingTooLongError(StoreError):
    """What was read took longer than it may."""


def read_alone(work: Callable[[], T], *, limit_seconds: float) -> T:
    """What `work` returns, run with this thread's connection; in somebody's transaction as it is.

    ReadingTooLongError: it took too long, and was given up.
    """
    if connection.in_atomic_block:
        return work()
    connection.close_if_unusable_or_obsolete()
    try:
        with limited(connection, seconds=limit_seconds):
            return work()
    finally:
        connection.close_if_unusable_or_obsolete()


@contextmanager
def limited(database: Any, *, seconds: float) -> Iterator[None]:
    """Let a connection only read, and for so long; ReadingTooLongError if it took longer."""
    until = time.monotonic() + seconds
    bound = _BOUNDS.get(database.vendor, _unbound)
    try:
        with bound(database, seconds):
            yield
    except Exception as error:
        if time.monotonic() < until or not is_of_database(error):
            raise
        raise ReadingTooLongError(
            f"reading took longer than {1000 * seconds:g} ms and was given up"
        ) from error


def is_of_database(error: BaseException | None) -> bool:
    """True if this error came of a database that is away, busy or unable, now or for good."""
    while error is not None and not isinstance(error, (OperationalError, InterfaceError)):
        error = error.__cause__
    return error is not None


@contextmanager
def _bound_sqlite(database: Any, seconds: float) -> Iterator[None]:
    database.ensure_connection()
    raw, until = database.connection, time.monotonic() + seconds
    (waits,) = raw.execute("PRAGMA busy_timeout").fetchone()
    raw.execute(f"PRAGMA busy_timeout = {round(1000 * seconds)}")
    raw.execute("PRAGMA query_only = ON")
    raw.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
    try:
        yield
    finally:
        raw.set_progress_handler(None, 0)
        raw.execute("PRAGMA query_only = OFF")
        raw.execute(f"PRAGMA busy_timeout = {waits}")


@contextmanager
def _bound_postgresql(database: Any, seconds: float) -> Iterator[None]:
    with transaction.atomic(using=database.alias), database.cursor() as cursor:
        cursor.execute(
            f"SET TRANSACTION READ ONLY; SET LOCAL statement_timeout = {round(1000 * seconds)}"
        )
        yield


@contextmanager
def _unbound(database: Any, seconds: float) -> Iterator[None]:
    yield


_BOUNDS: Final = {"sqlite": _bound_sqlite, "postgresql": _bound_postgresql}


def rows_of(query: str, *, of: Sequence[Any] = (), among: Sequence[Any]) -> list[tuple[Any, ...]]:
    """The rows that a query finds, read past the ORM; none where `among` is empty.

    Its `{}` stands for the values among which one must be; those of `of` are before them. On
    PostgreSQL bytes come as bytes.
    """
    if not among:
        return []
    with _cursor() as cursor:
        cursor.execute(query.format(", ".join(["%s"] * len(among))), [*of, *among])
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows


def _cursor() -> Any:
    if connection.vendor != "postgresql":
        return connection.cursor()
    from evennia_ai.store.core.postgresql.binary import binary_cursor  # it needs psycopg

    return binary_cursor(connection)
