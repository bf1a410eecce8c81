"""How far a move is: a table of the target's, written in the transaction of what it tells.

So a move that was killed goes on where it was, and a database in which one was begun is told from
one in which somebody keeps something else. The table is gone when the move is over.
"""

from json import dumps, loads
from typing import Any, Final

from django.db import transaction

NAME: Final = "evennia_ai_move"


class Progress:
    """What is known of a move, by keys; the values are JSON."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def is_begun(self) -> bool:
        """True if a move into this database was begun and is not over."""
        return NAME in self._connection.introspection.table_names()

    def begin(self, **values: Any) -> None:
        """Make the table, with these values, or nothing."""
        with transaction.atomic(using=self._connection.alias):
            self._execute(f"CREATE TABLE {NAME} (name varchar(200) PRIMARY KEY, value text)")
            for name, value in values.items():
                self.set(name, value)

    def end(self) -> None:
        """Take the table away: the database is a game's from now on."""
        self._execute(f"DROP TABLE {NAME}")

    def get(self, name: str) -> Any:
        """The value; None where there is none."""
        with self._connection.cursor() as cursor:
            cursor.execute(f"SELECT value FROM {NAME} WHERE name = %s", (name,))  # noqa: S608 - ours
            found = cursor.fetchone()
        return None if found is None else loads(found[0])

    def set(self, name: str, value: Any) -> None:
        """Write the value, in the current transaction where there is one."""
        self._execute(
            f"INSERT INTO {NAME} (name, value) VALUES (%s, %s)"  # noqa: S608 - ours
            " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (name, dumps(value, default=str)),
        )

    def _execute(self, statement: str, values: tuple[Any, ...] = ()) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute(statement, values)
