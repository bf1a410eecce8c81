"""Rows in batches that memory can hold."""

from collections.abc import Iterable, Iterator
from typing import Final

from evennia_ai.cli.game.move.tables import Row

BATCH_ROWS: Final = 500
BATCH_CHARACTERS: Final = 2_000_000
"""A batch ends with the row that makes it longer."""


def batches(stream: Iterable[Row]) -> Iterator[list[Row]]:
    """The rows, so many at a time as are neither many nor long."""
    batch: list[Row] = []
    characters = 0
    for row in stream:
        batch.append(row)
        characters += sum(len(one) for one in row if isinstance(one, str | bytes))
        if len(batch) >= BATCH_ROWS or characters > BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch
