"""Read from the database in a thread, within a time limit.

Django gives each thread its own connection. In this module, the connection may only read, for a
limited time. SQLite is interrupted while it runs a statement, and its wait for locks is limited.
PostgreSQL ends the statement itself.

In tests and on the command line, the work may run inside a transaction of the caller. Then the
connection is left as it is: the caller limits the transaction, and Django's clean-up would close
the connection because autocommit is off.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from django.db import InterfaceError, OperationalError, connection, transaction

from evennia_ai.engine.errors import StoreError

T = TypeVar("T")

_STEPS: Final = 1_000
"""How many steps of its program SQLite runs between two looks at the clock: 0.01 to 0.1 ms."""


class ReadingTooLongError(StoreError):
    """A read took longer than allowed."""


def read_limited(work: Callable[[], T], *, limit_seconds: float) -> T:
    """Return the result of `work`, which may only read.

    Inside a transaction `work` runs without limits.

    Raises:
        ReadingTooLongError: the work took longer than `limit_seconds` and was stopped.
    """
    if connection.in_atomic_block:
        return work()
    connection.close_if_unusable_or_obsolete()
    try:
        with limit_to_reading(connection, seconds=limit_seconds):
            return work()
    finally:
        connection.close_if_unusable_or_obsolete()


@contextmanager
def limit_to_reading(database: Any, *, seconds: float) -> Iterator[None]:
    """Let a connection only read, and only for a limited time.

    Raises:
        ReadingTooLongError: the time is over.
    """
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
    """True if an error, or one of its causes, means that the database is absent, busy or broken."""
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
    """Return the rows of a raw query. No rows if `among` is empty.

    PostgreSQL returns bytes as bytes here (`postgresql/binary.py`).

    Args:
        query: SQL that has `{}` where the list of placeholders for `among` goes.
        of: The values of the placeholders before that list.
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
    # Imported here because it needs psycopg.
    from evennia_ai.store.core.postgresql.binary import binary_cursor

    return binary_cursor(connection)
