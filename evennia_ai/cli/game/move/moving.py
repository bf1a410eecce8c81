"""The steps of a move, in their order. A killed move starts its step again or continues it.

In this process the target is the game's default database, so migrations and the check of histories
work as in a game. The source is a second, read-only database.
"""

import contextlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from django.core.management import call_command
from django.db import DatabaseError, IntegrityError, connections, transaction
from django.db.migrations.executor import MigrationExecutor

from evennia_ai.cli.game.move.batches import batches
from evennia_ai.cli.game.move.comparing import broken_chains, compared, conversations
from evennia_ai.cli.game.move.loose import (
    cleared,
    emptied_and_loose,
    fingerprint,
    loosen,
    tightened,
)
from evennia_ai.cli.game.move.opening import SOURCE
from evennia_ai.cli.game.move.progress import NAME, Progress
from evennia_ai.cli.game.move.tables import (
    MoveError,
    Row,
    Table,
    insert,
    rows,
    storable,
    tables_of_game,
)
from evennia_ai.cli.output import FINDING, write_lines
from evennia_ai.cli.terminal import shown_progress
from evennia_ai.engine.text.columns import escape_controls
from evennia_ai.store.core.postgresql.problems import problem_of

_UNLIKE: Final = (
    "The target differs from the game: the game was played meanwhile, or another program wrote"
    " into the target. The target stays marked as unfinished. Create it again, and repeat the"
    " move."
)
_OF_DJANGO: Final = frozenset({"django_migrations", "sqlite_sequence"})
_ADVISORY: Final = 2_026_112_720
_PATIENCE: Final = "10s"


def move(folder: Path, address: str) -> int:
    """Move the game. Return 1 if source and target differ in the end."""
    source, target = connections[SOURCE], connections["default"]
    _refuse_running(folder)
    _refuse_bad_target(target)
    progress = Progress(target)
    with _alone(target), _frozen(source):
        _refuse_unfit(source, target, progress)
        tables = tables_of_game()
        if progress.get("stage") == "making":
            cleared(target)
            _make_tables(target)
            emptied_and_loose(target, tables, progress)
        if progress.get("stage") == "copying":
            loosen(target)
            _copy(source, target, tables, progress)
            tightened(source, target, tables, progress)
        if not _is_alike(source, target, tables):
            write_lines([_UNLIKE])
            return FINDING
        broken = _broken()
        progress.end()
    write_lines(_what_now(source, address))
    return FINDING if broken else 0


def _refuse_running(folder: Path) -> None:
    """Raise MoveError if a server or portal of this game is running."""
    for name in ("server", "portal"):
        path = folder / "server" / f"{name}.pid"
        with contextlib.suppress(OSError, ValueError):
            number = int(path.read_text(encoding="utf-8"))
            if b"twistd" in Path(f"/proc/{number}/cmdline").read_bytes():
                raise MoveError(
                    f"the game runs ({path}, process {number}); `evennia stop` there, then move"
                )


def _refuse_bad_target(target: Any) -> None:
    if problem := problem_of(target):
        raise MoveError(f"the target: {problem.message} {problem.hint}")


def _refuse_unfit(source: Any, target: Any, progress: Progress) -> None:
    """Begin a move or continue one. MoveError if the move could not succeed."""
    executor = MigrationExecutor(source)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        raise MoveError("the game's database is not up to date; run `evennia migrate` there")
    try:
        source.check_constraints()
    except IntegrityError as error:
        raise MoveError(f"the game refers to rows that are gone: {error}") from error
    name = fingerprint(source.settings_dict)
    if progress.is_begun():
        if progress.get("source") != name:
            raise MoveError(
                "the target holds an unfinished move of another game; name an empty database"
            )
        return
    if known := target.introspection.table_names():
        raise MoveError(
            f"the target is not empty: it has {len(known)} tables, {known[0]} among them, and no"
            " move of this game was begun there; name an empty database"
        )
    progress.begin(source=name, stage="making")


def _make_tables(target: Any) -> None:
    with contextlib.redirect_stdout(sys.stderr):
        call_command("migrate", verbosity=0, interactive=False, skip_checks=True)


def _copy(source: Any, target: Any, tables: Sequence[Table], progress: Progress) -> None:
    """Copy the rows of each table that are not copied yet."""
    left = set(source.introspection.table_names()) - {one.name for one in tables} - _OF_DJANGO
    for name in sorted(left - {NAME}):
        _tell(f"{name}: no app of the game has this table; it is not copied")
    with shown_progress() as shown:
        for done, table in enumerate(tables):
            shown("tables copied", done, len(tables))
            known = progress.get(f"table {table.name}") or {"after": None, "rows": 0}
            for batch in batches(rows(source, table, after=known["after"])):
                known = {"after": _key(source, table, batch), "rows": known["rows"] + len(batch)}
                with transaction.atomic(using=target.alias):
                    _insert(target, table, batch)
                    progress.set(f"table {table.name}", known)


def _insert(target: Any, table: Table, batch: Sequence[Row]) -> None:
    kept = []
    for row in batch:
        plain, columns = storable(table, row)
        for column in columns:
            _tell(f"{table.name}, {table.key.column} {row[0]}: a NUL in {column} became U+FFFD")
        kept.append(plain)
    try:
        insert(target, table, kept)
    except DatabaseError as error:
        which = f"{batch[0][0]} to {batch[-1][0]}"
        raise MoveError(
            f"{table.name}, {table.key.column} {which}: the target refuses a row: {error}"
        ) from error


def _key(source: Any, table: Table, batch: Sequence[Row]) -> Any:
    """Return the key after which the next batch begins, as the source compares it."""
    return table.key.get_db_prep_value(batch[-1][0], source)


def _is_alike(source: Any, target: Any, tables: Sequence[Table]) -> bool:
    """Print the rows and digests of each table. Return True if both sides are the same."""
    alike = True
    with shown_progress() as shown:
        for one in compared(source, target, tables, progress=shown):
            told = f"{one.table}: {one.source.rows} rows, {one.source}"
            if not one.is_alike:
                alike = False
                told += f" DIFFERS from the target: {one.target.rows} rows, {one.target}"
            if one.source.rows or not one.is_alike:
                write_lines([told])
    return alike


def _broken() -> int:
    """Print the broken chains of the target, which are broken in the source, too. Count them."""
    broken = list(broken_chains())
    write_lines(escape_controls(f"BROKEN, as at the source: {told}") for told in broken)
    write_lines([f"{conversations()} conversations, {len(broken)} broken chains"])
    return len(broken)


def _what_now(source: Any, address: str) -> list[str]:
    line = 'DATABASES = database("..."), with the address that you gave to --to'
    if address.startswith("sqlite"):
        line = f'DATABASES = database("{address}")'
    old = escape_controls(str(source.settings_dict["NAME"]))
    return [
        "The game is moved. In server/conf/secret_settings.py write",
        "    from evennia_ai.services.settings.database import database",
        f"    {line}",
        f"then `evennia start`. The old database, {old}, is unchanged; keep it for a while.",
    ]


@contextmanager
def _alone(target: Any) -> Iterator[None]:
    """Make a second move into the same target wait, then fail.

    A killed move needs a moment to end.
    """
    if target.vendor != "postgresql":
        yield
        return
    with target.cursor() as cursor:
        cursor.execute(f"SET lock_timeout = '{_PATIENCE}'")
        try:
            cursor.execute("SELECT pg_advisory_lock(%s)", (_ADVISORY,))
        except DatabaseError as error:
            raise MoveError("another move into this target is at work") from error
        cursor.execute("SET lock_timeout = 0")
    yield


@contextmanager
def _frozen(source: Any) -> Iterator[None]:
    """Keep the source as it is now: no other program may write to it during the move."""
    if source.vendor == "postgresql":
        with transaction.atomic(using=source.alias):
            _see_one_state(source)
            yield
        return
    with source.cursor() as cursor:
        try:
            cursor.execute("BEGIN IMMEDIATE")
            cursor.execute("PRAGMA query_only = ON")
        except DatabaseError as error:
            raise MoveError(f"another program writes into the game's database: {error}") from error
    try:
        yield
    finally:
        # Closing the connection rolls its transaction back.
        source.close()


def _see_one_state(source: Any) -> None:
    with source.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        cursor.execute(
            "SELECT count(*), min(application_name) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            " AND backend_type = 'client backend'"
        )
        others, name = cursor.fetchone()
    if others:
        raise MoveError(
            f"{others} other programs are connected to the game's database"
            f" ({name or 'without a name'}); stop the game, wherever it runs"
        )


def _tell(text: str) -> None:
    print(escape_controls(text), file=sys.stderr)
