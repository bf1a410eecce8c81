"""A connection that is made anew once it is gone.

Django looks whether a connection still lives where a web request begins or ends. A game's own
thread has no requests: after PostgreSQL was started again, it would be refused for ever. So it is
looked before each statement and each transaction, without asking the server: a connection that was
ended has something to read. Inside a transaction nothing is looked at: what was begun is lost, and
whoever began it has to be told.
"""

import select
from typing import Any

from django.db.backends.postgresql import base
from psycopg import OperationalError


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection of one thread to PostgreSQL."""

    def ensure_connection(self) -> None:
        """Open a connection where there is none, or none any more."""
        known = self.connection
        if known is not None and not self.in_atomic_block and _is_gone(known):
            self.close()
        super().ensure_connection()


def _is_gone(connection: Any) -> bool:
    """True if the server ended the connection; some microseconds."""
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
