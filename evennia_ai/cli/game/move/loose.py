"""What a target does not hold to while rows are on their way, and what it counts on from.

Rows come table by table, so for a while one refers to another that is not there yet. PostgreSQL
is without its foreign keys until all are there and checks each when it gets them back; SQLite has
them switched off, and is asked at the end.
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
# The sequences of a serial column and of an identity.
_SEQUENCE = "SELECT pg_get_serial_sequence(%s, %s)"


def cleared(target: Any) -> None:
    """Take away the tables that a move made which was killed meanwhile: it found none there.

    Django may have made those of a migration and not written down that it did.
    """
    loosen(target)
    made = [name for name in target.introspection.table_names() if name != NAME]
    how = "CASCADE" if target.vendor == "postgresql" else ""
    with transaction.atomic(using=target.alias), target.cursor() as cursor:
        for name in made:
            cursor.execute(f"DROP TABLE {target.ops.quote_name(name)} {how}")


def emptied_and_loose(target: Any, tables: Sequence[Table], progress: Progress) -> None:
    """Take what migrations wrote out of the target, and its foreign keys; all or nothing."""
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
    """For this connection; PostgreSQL's keys are away for all."""
    if target.vendor == "sqlite":
        target.disable_constraint_checking()


def tightened(source: Any, target: Any, tables: Sequence[Table], progress: Progress) -> None:
    """Give the target its foreign keys back, and let it count on where the source would have."""
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
    """No number is given out twice, not even that of what is gone: histories go by numbers."""
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
    """The highest number that a table ever gave out; 0 for none."""
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
    """Which database these settings name, without its password."""
    return dumps([str(settings[name]) for name in ("ENGINE", "HOST", "PORT", "NAME")])
