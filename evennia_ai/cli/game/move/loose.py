"""Constraints of the target that are off during the copy, and the counters of its tables.

Tables are copied one by one, so for a while rows refer to rows that do not exist yet. PostgreSQL's
foreign keys are dropped and created again at the end, when PostgreSQL checks them. SQLite's checks
are switched off for the connection and run at the end.
"""

from collections.abc import Sequence
from json import dumps
from typing import Any

from django.db import IntegrityError, transaction

from evennia_ai.cli.game.move.progress import NAME, Progress
from evennia_ai.cli.game.move.tables import MoveError, Table

_KEYS = """
SELECT conrelid::regclass::text, quote_ident(conname), pg_get_constraintdef(oid)
FROM pg_constraint WHERE contype = 'f' AND connamespace = current_schema()::regnamespace
"""
# Finds the sequence of a serial column or an identity column.
_SEQUENCE = "SELECT pg_get_serial_sequence(%s, %s)"


def cleared(target: Any) -> None:
    """Drop the tables that a killed move has created. The target was empty before that move.

    Django may have created the tables of a migration without recording the migration.
    """
    loosen(target)
    made = [name for name in target.introspection.table_names() if name != NAME]
    how = "CASCADE" if target.vendor == "postgresql" else ""
    with transaction.atomic(using=target.alias), target.cursor() as cursor:
        for name in made:
            cursor.execute(f"DROP TABLE {target.ops.quote_name(name)} {how}")


def emptied_and_loose(target: Any, tables: Sequence[Table], progress: Progress) -> None:
    """Drop the foreign keys and delete the rows that migrations wrote, all or nothing."""
    with transaction.atomic(using=target.alias), target.cursor() as cursor:
        names = [target.ops.quote_name(table.name) for table in tables]
        if target.vendor == "postgresql":
            cursor.execute(_KEYS)
            keys = cursor.fetchall()
            progress.set("keys", keys)
            for table, name, _ in keys:
                cursor.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}")
            cursor.execute(f"TRUNCATE {', '.join(names)}")
        else:
            for name in names:
                cursor.execute(f"DELETE FROM {name}")  # noqa: S608 - names of tables
        progress.set("stage", "copying")


def loosen(target: Any) -> None:
    """Switch off SQLite's checks for this connection.

    PostgreSQL's foreign keys are dropped instead.
    """
    if target.vendor == "sqlite":
        target.disable_constraint_checking()


def tightened(source: Any, target: Any, tables: Sequence[Table], progress: Progress) -> None:
    """Create the foreign keys again, and continue the counters of the source. Then check all."""
    with transaction.atomic(using=target.alias), target.cursor() as cursor:
        for table in tables:
            _count_on(source, target, table, cursor)
        for table_name, name, definition in progress.get("keys") or ():
            try:
                cursor.execute(f"ALTER TABLE {table_name} ADD CONSTRAINT {name} {definition}")
            except IntegrityError as error:
                raise MoveError(f"the target refuses a reference: {error}") from error
        progress.set("stage", "comparing")
    target.check_constraints()


def _count_on(source: Any, target: Any, table: Table, cursor: Any) -> None:
    """Set a table's counter so that no number is used twice.

    Histories refer to rows by number, so the numbers of deleted rows stay used.
    """
    if table.key.get_internal_type() not in ("AutoField", "BigAutoField", "SmallAutoField"):
        return
    newest = _given_out(source, table)
    if not newest:
        return
    if target.vendor == "postgresql":
        cursor.execute(_SEQUENCE, (target.ops.quote_name(table.name), table.key.column))
        cursor.execute("SELECT setval(%s::regclass, %s)", (cursor.fetchone()[0], newest))
    else:
        cursor.execute("DELETE FROM sqlite_sequence WHERE name = %s", (table.name,))
        cursor.execute(
            "INSERT INTO sqlite_sequence (name, seq) VALUES (%s, %s)", (table.name, newest)
        )


def _given_out(connection: Any, table: Table) -> int:
    """Return the highest number that a table ever used, or 0."""
    quote = connection.ops.quote_name
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT max({quote(table.key.column)}) FROM {quote(table.name)}")  # noqa: S608 - names of tables
        newest = cursor.fetchone()[0] or 0
        if connection.vendor == "postgresql":
            cursor.execute(_SEQUENCE, (quote(table.name), table.key.column))
            sequence = cursor.fetchone()[0]
            if sequence is None:
                return int(newest)
            cursor.execute(f"SELECT last_value FROM {sequence} WHERE is_called")  # noqa: S608 - a sequence's name
        else:
            cursor.execute("SELECT seq FROM sqlite_sequence WHERE name = %s", (table.name,))
        found = cursor.fetchone()
    return max(int(newest), int(found[0]) if found else 0)


def fingerprint(settings: dict[str, Any]) -> str:
    """Return which database these settings name, without its password."""
    return dumps([str(settings[name]) for name in ("ENGINE", "HOST", "PORT", "NAME")])
