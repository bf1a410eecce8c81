"""The tables of a game, and how their rows are read and written.

Rows are read without the models. The pickle of an attribute is copied as text, so the classes of
its objects need not exist. Only values that databases store in different ways (dates, booleans,
decimals, bytes) are converted to Python values in between.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from hashlib import sha256
from json import dumps, loads
from typing import Any, Final
from uuid import UUID

from django.apps import apps

from evennia_ai.engine.errors import StoreError

Row = tuple[Any, ...]
FETCHED: Final = 50
"""How many rows are fetched at once. A single row may hold a file of megabytes."""

_NUL: Final = "\x00"
_JSON_NUL: Final = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")
_PUT: Final = "�"


class MoveError(StoreError):
    """A game cannot be moved as it is. Nothing in its source was changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table and its columns."""

    name: str
    fields: tuple[Any, ...]
    """Django's fields, the key first."""
    key: Any = field(repr=False)
    """The field that is the primary key."""

    @property
    def columns(self) -> list[str]:
        return [one.column for one in self.fields]


def tables_of_game() -> tuple[Table, ...]:
    """Return all tables of all apps of the game, including those of many-to-many relations."""
    found = {}
    for model in apps.get_models(include_auto_created=True):
        meta = model._meta
        if meta.managed and not meta.proxy and not meta.swapped:
            others = [one for one in meta.local_concrete_fields if one is not meta.pk]
            found[meta.db_table] = Table(name=meta.db_table, fields=(meta.pk, *others), key=meta.pk)
    return tuple(found[name] for name in sorted(found))


def rows(connection: Any, table: Table, *, after: Any = None) -> Iterator[Row]:
    """Yield the rows after a key, in key order, as Python values. They are read in small parts."""
    quote = connection.ops.quote_name
    columns = ", ".join(map(quote, table.columns))
    key = quote(table.key.column)
    where = "" if after is None else f"WHERE {key} > %s"
    query = f"SELECT {columns} FROM {quote(table.name)} {where} ORDER BY {key}"  # noqa: S608 - names of tables
    readers = [_reader(connection, one, table) for one in table.fields]
    with connection.chunked_cursor() as cursor:
        cursor.execute(query, () if after is None else (after,))
        while fetched := cursor.fetchmany(FETCHED):
            for row in fetched:
                yield tuple(read(value) for read, value in zip(readers, row, strict=True))


def insert(connection: Any, table: Table, batch: Sequence[Row]) -> None:
    """Write rows in the current transaction."""
    quote = connection.ops.quote_name
    writers = [_writer(connection, one) for one in table.fields]
    columns = ", ".join(map(quote, table.columns))
    places = f"({', '.join(['%s'] * len(writers))})"
    values = [write(value) for row in batch for write, value in zip(writers, row, strict=True)]
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {quote(table.name)} ({columns})"  # noqa: S608 - names of tables
            f" VALUES {', '.join([places] * len(batch))}",
            values,
        )


def storable(table: Table, row: Row) -> tuple[Row, tuple[str, ...]]:
    """Return a row without NUL characters, and the names of the columns that had some.

    PostgreSQL cannot store NUL.

    Raises:
        MoveError: A text is longer than its column allows, which SQLite does not check.
    """
    found: list[str] = []
    made = []
    for one, value in zip(table.fields, row, strict=True):
        if isinstance(value, str):
            _refuse_long(table, row, one, value)
            plain = value.replace(_NUL, _PUT)
            if one.get_internal_type() == "JSONField":
                plain = _JSON_NUL.sub(rf"\1{_PUT}", plain)
            if plain != value:
                found.append(one.column)
            value = plain  # noqa: PLW2901 - the same value, as it can be stored
        made.append(value)
    return tuple(made), tuple(found)


def _refuse_long(table: Table, row: Row, one: Any, value: str) -> None:
    most = one.max_length if one.get_internal_type() != "TextField" else None
    if most and len(value) > most:
        raise MoveError(
            f"{table.name}, {table.key.column} {row[0]}: {one.column} has {len(value)} characters"
            f" and may have {most}; shorten it in the game, and move again"
        )


def digest_of_row(table: Table, row: Row) -> int:
    """Return a number that changes with any change of the row."""
    plain = [
        _plain(value, is_json=one.get_internal_type() == "JSONField")
        for one, value in zip(table.fields, row, strict=True)
    ]
    return int.from_bytes(sha256(dumps(plain).encode()).digest())


def _plain(value: Any, *, is_json: bool) -> Any:
    match value:
        case str() if is_json:
            # A database may change the spaces, order and number format of JSON.
            read = loads(value, parse_int=Decimal, parse_float=Decimal)
            return dumps(read, sort_keys=True, default=lambda one: str(one.normalize()))
        case bytes():
            return sha256(value).hexdigest()
        case datetime() if value.tzinfo is not None:
            return value.astimezone(UTC).isoformat()
        case Decimal():
            return str(value.normalize())
        case date() | time() | timedelta() | UUID():
            return str(value)
    return value


def _based(one: Any) -> Any:
    """Return the field that defines a column's type: for a foreign key, the field it points to."""
    while one.remote_field is not None:
        one = one.target_field
    return one


def _reader(connection: Any, one: Any, table: Table) -> Callable[[Any], Any]:
    """Return a function from a database's value to Python's. It ignores the model's conversions."""
    based = _based(one)
    expression = based.get_col(table.name)
    converters = connection.ops.get_db_converters(expression)
    if based.get_internal_type() == "DurationField":
        converters = [*converters, *based.get_db_converters(connection)]

    def read(value: Any) -> Any:
        if isinstance(value, memoryview):
            return bytes(value)
        for convert in converters:
            value = convert(value, expression, connection)
        return value

    return read


def _writer(connection: Any, one: Any) -> Callable[[Any], Any]:
    """Return a function from Python's value to what the database's driver takes."""
    ops = connection.ops
    based = _based(one)
    known: dict[str, Callable[[Any], Any]] = {
        "DateTimeField": ops.adapt_datetimefield_value,
        "DateField": ops.adapt_datefield_value,
        "TimeField": ops.adapt_timefield_value,
        "DurationField": lambda value: based.get_db_prep_value(value, connection),
        "UUIDField": lambda value: based.get_db_prep_value(value, connection),
        "DecimalField": lambda value: ops.adapt_decimalfield_value(
            value, based.max_digits, based.decimal_places
        ),
    }
    write = known.get(based.get_internal_type())
    if write is None:
        return lambda value: value
    return lambda value: None if value is None else write(value)
