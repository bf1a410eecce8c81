"""Rows as PostgreSQL itself has them, for queries that read many bytes.

Django has values written into the text of a query, whose answer can only be text as well: bytes
come as digits then, twice as long, which one side has to write and the other to read. Here values
go beside the query, and the answer is binary. It needs psycopg, so it is imported where a
connection to PostgreSQL is there already.
"""

from typing import Any

from psycopg import Cursor
from psycopg.pq import Format


def binary_cursor(connection: Any) -> Any:
    """A cursor like Django's, for a connection of Django's to PostgreSQL."""
    connection.ensure_connection()
    made = Cursor(connection.connection)
    made.format = Format.BINARY
    wrapped = connection.make_debug_cursor if connection.queries_logged else connection.make_cursor
    return wrapped(made)
