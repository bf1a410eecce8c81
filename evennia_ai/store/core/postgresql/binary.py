"""A cursor that reads rows in PostgreSQL's binary format, for queries that return many bytes.

Django's cursor gets rows as text, in which bytes have twice their length. This cursor gets them in
binary. The module needs psycopg, so import it only where a PostgreSQL connection exists.
"""

from typing import Any

from psycopg import Cursor
from psycopg.pq import Format


def binary_cursor(connection: Any) -> Any:
    """Return a cursor that is used like Django's and reads rows in binary format."""
    connection.ensure_connection()
    made = Cursor(connection.connection)
    made.format = Format.BINARY
    wrapped = connection.make_debug_cursor if connection.queries_logged else connection.make_cursor
    return wrapped(made)
