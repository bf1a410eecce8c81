"""Whether source and target are alike: rows of each table, and chains of all conversations."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from evennia_ai.cli.game.move.tables import Table, digest_of_row, rows, storable
from evennia_ai.engine.foreign.documents import Progress
from evennia_ai.models import Conversation
from evennia_ai.store.history.record_rows import ref_of
from evennia_ai.store.history.verifying import verify

_ROOM: Final = 2**256
_SHOWN: Final = 16
"""Hexadecimal digits of a digest that are printed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """How many rows a table has, and the sum of what stands in them: in no order."""

    rows: int
    total: int

    def __str__(self) -> str:
        return f"{self.total:064x}"[:_SHOWN]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A table on both sides."""

    table: str
    source: Digest
    target: Digest

    @property
    def is_alike(self) -> bool:
        return self.source == self.target


def compared(
    source: Any, target: Any, tables: Sequence[Table], *, progress: Progress
) -> Iterator[Compared]:
    """Each table, read whole on both sides."""
    for done, table in enumerate(tables, start=1):
        progress("tables compared", done, len(tables))
        yield Compared(
            table=table.name, source=_digest(source, table), target=_digest(target, table)
        )


def broken_chains() -> Iterator[str]:
    """What is broken in conversations of the target, which is the game's database here."""
    for row in Conversation.objects.order_by("pk").iterator():
        if problem := verify(ref_of(row)):
            yield f"{ref_of(row)}: {problem}"


def conversations() -> int:
    """How many conversations the target has."""
    return int(Conversation.objects.count())


def _digest(connection: Any, table: Table) -> Digest:
    count, total = 0, 0
    for row in rows(connection, table):
        kept, _ = storable(table, row)
        count += 1
        total = (total + digest_of_row(table, kept)) % _ROOM
    return Digest(rows=count, total=total)
