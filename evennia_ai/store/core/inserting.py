"""Inserting: rows of what is written in every turn, many in one statement, from plain values.

Django's instances cost more than the database here: each makes a model object, a query and its
compiler, and tells signals that nobody listens to. What people author is still written by them.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from django.db import connection, models

_ROWS_AT_ONCE: Final = 50
"""Rows of one statement: SQLite takes 32,766 values, older builds 999."""


class Insert:
    """Writes rows of one table; every row has a value for each of `columns`, in their order."""

    def __init__(self, table: type[models.Model], columns: Sequence[str]) -> None:
        named = ", ".join(f'"{column}"' for column in columns)
        self._row = f"({', '.join(['%s'] * len(columns))})"
        self._start = f'INSERT INTO "{table._meta.db_table}" ({named}) VALUES '  # noqa: S608
        self._one = f"{self._start}{self._row} RETURNING id"
        self._if_new = f"{self._start}{self._row} ON CONFLICT DO NOTHING RETURNING id"

    def __call__(self, rows: Sequence[Sequence[Any]]) -> list[int]:
        """Write the rows in the current transaction; their ids, in the same order.

        DatabaseError: the transaction is to be given up. IntegrityError: another writer was first.
        """
        ids: list[int] = []
        with connection.cursor() as cursor:
            for some in _slices(rows):
                cursor.execute(self._statement(len(some)), [one for row in some for one in row])
                ids += [found for (found,) in cursor.fetchall()]
        return ids

    def if_new(self, row: Sequence[Any]) -> int | None:
        """Write a row; its id, None where another one has what may be there only once.

        The transaction goes on in either case, and needs no savepoint for it.
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
