"""A cursor that reads rows in PostgreSQL's binary format, for queries that read many bytes.

Django writes values into the text of a query, and the answer to such a query is text too: bytes
come as digits, at twice the length. Here the values are sent separately and the answer is binary.
The module needs psycopg, so import it only where a PostgreSQL connection exists.
"""

from typing import Any

from psycopg import Cursor
from psycopg.pq import Format


def binary_cursor(connection: Any) -> Any:
    """Return a cursor like Django's with binary results, for a PostgreSQL connection of Django."""
    connection.ensure_connection()
    made = Cursor(connection.connection)
    made.format = Format.BINARY
    wrapped = connection.make_debug_cursor if connection.queries_logged else connection.make_cursor
    return wrapped(made)
