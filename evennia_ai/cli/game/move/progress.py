"""How far a move is, stored in a table of the target.

Each entry is written in the same transaction as the rows that it counts. So a killed move continues
where it was, and a target with a begun move differs from a database with other data. The table is
dropped when the move is over.
"""

from json import dumps, loads
from typing import Any, Final

from django.db import transaction

NAME: Final = "evennia_ai_move"


class Progress:
    """The stored progress of a move: JSON values by key."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def is_begun(self) -> bool:
        """True if a move into this database was begun and is not over."""
        return NAME in self._connection.introspection.table_names()

    def begin(self, **values: Any) -> None:
        """Create the table with these values, or nothing."""
        with transaction.atomic(using=self._connection.alias):
            self._execute(f"CREATE TABLE {NAME} (name varchar(200) PRIMARY KEY, value text)")
            for name, value in values.items():
                self.set(name, value)

    def end(self) -> None:
        """Drop the table. From now on the database belongs to a game."""
        self._execute(f"DROP TABLE {NAME}")

    def get(self, name: str) -> Any:
        """Return the value of a key, or None."""
        with self._connection.cursor() as cursor:
            cursor.execute(f"SELECT value FROM {NAME} WHERE name = %s", (name,))  # noqa: S608 - ours
            found = cursor.fetchone()
        return None if found is None else loads(found[0])

    def set(self, name: str, value: Any) -> None:
        """Write a value, in the current transaction if there is one."""
        self._execute(
            f"INSERT INTO {NAME} (name, value) VALUES (%s, %s)"  # noqa: S608 - ours
            " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (name, dumps(value, default=str)),
        )

    def _execute(self, statement: str, values: tuple[Any, ...] = ()) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute(statement, values)
