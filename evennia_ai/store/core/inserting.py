"""Insert many rows of plain values in one statement, for tables that every turn writes.

Inserting Django's model instances would take longer in Python than in the database: each one builds
a model object, a query and a compiler, and sends signals that nobody receives. Things that people
write are still inserted as model instances.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from django.db import connection, models

_ROWS_AT_ONCE: Final = 50
"""The most rows per statement.

SQLite accepts 32,766 values per statement, older builds only 999.
"""


class Insert:
    """A prepared INSERT statement for one table.

    Each row has one value per column, in the order of the columns.
    """

    def __init__(self, table: type[models.Model], columns: Sequence[str]) -> None:
        named = ", ".join(f'"{column}"' for column in columns)
        self._row = f"({', '.join(['%s'] * len(columns))})"
        self._start = f'INSERT INTO "{table._meta.db_table}" ({named}) VALUES '  # noqa: S608
        self._one = f"{self._start}{self._row} RETURNING id"
        self._if_new = f"{self._start}{self._row} ON CONFLICT DO NOTHING RETURNING id"

    def __call__(self, rows: Sequence[Sequence[Any]]) -> list[int]:
        """Insert the rows in the current transaction and return their ids in the same order.

        Raises:
            DatabaseError: the transaction must be rolled back.
            IntegrityError: another writer was first.
        """
        ids: list[int] = []
        with connection.cursor() as cursor:
            for some in _slices(rows):
                cursor.execute(self._statement(len(some)), [one for row in some for one in row])
                ids += [found for (found,) in cursor.fetchall()]
        return ids

    def if_new(self, row: Sequence[Any]) -> int | None:
        """Insert a row and return its id, or None if a unique constraint refuses it.

        The transaction stays usable in both cases, and no savepoint is needed.
        """
        with connection.cursor() as cursor:
            cursor.execute(self._if_new, row)
            found = cursor.fetchone()
        return None if found is None else int(found[0])

    def _statement(self, count: int) -> str:
        if count == 1:
            return self._one
        return f"{self._start}{', '.join([self._row] * count)} RETURNING id"


def _slices(rows: Sequence[Sequence[Any]]) -> Iterator[Sequence[Sequence[Any]]]:
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        yield rows[start : start + _ROWS_AT_ONCE]
