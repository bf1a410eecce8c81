"""Check that source and target are the same: the rows of each table, and all histories."""

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
"""How many hexadecimal digits of a digest are printed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """How many rows a table has, and a sum of their hashes that does not depend on their order."""

    rows: int
    total: int

    def __str__(self) -> str:
        return f"{self.total:064x}"[:_SHOWN]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The digests of a table in source and target."""

    table: str
    source: Digest
    target: Digest

    @property
    def is_alike(self) -> bool:
        return self.source == self.target


def compared(
    source: Any, target: Any, tables: Sequence[Table], *, progress: Progress
) -> Iterator[Compared]:
    """Yield each table, compared after reading all of its rows on both sides."""
    for done, table in enumerate(tables, start=1):
        progress("tables compared", done, len(tables))
        yield Compared(
            table=table.name, source=_digest(source, table), target=_digest(target, table)
        )


def broken_chains() -> Iterator[str]:
    """Yield what is broken in conversations of the target, the default database of this process."""
    for row in Conversation.objects.order_by("pk").iterator():
        if problem := verify(ref_of(row)):
            yield f"{ref_of(row)}: {problem}"


def conversations() -> int:
    """Return how many conversations the target has."""
    return int(Conversation.objects.count())


def _digest(connection: Any, table: Table) -> Digest:
    count, total = 0, 0
    for row in rows(connection, table):
        kept, _ = storable(table, row)
        count += 1
        total = (total + digest_of_row(table, kept)) % _ROOM
    return Digest(rows=count, total=total)
