"""A PostgreSQL connection that is opened again after the server closed it.

Django checks whether a connection is alive when a web request begins or ends. The game's own
threads have no web requests, so after a restart of PostgreSQL all their statements would fail for
ever. This backend therefore checks before each statement and transaction. The check needs no query:
a closed connection has data to read. Inside a transaction there is no check, because the
transaction is lost and the caller must get the error.
"""

import select
from typing import Any

from django.db.backends.postgresql import base
from psycopg import OperationalError


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection of one thread to PostgreSQL."""

    def ensure_connection(self) -> None:
        """Open a connection if there is none, or if the server has closed it."""
        known = self.connection
        if known is not None and not self.in_atomic_block and _is_gone(known):
            self.close()
        super().ensure_connection()


def _is_gone(connection: Any) -> bool:
    """True if the server has closed the connection. This takes some microseconds."""
    while not connection.closed and _has_news(connection.fileno()):
        try:
            connection.pgconn.consume_input()
        except OperationalError:
            return True
    return bool(connection.closed)


def _has_news(file: int) -> bool:
    waiting = select.poll()
    waiting.register(file, select.POLLIN)
    return bool(waiting.poll(0))
