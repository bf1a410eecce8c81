"""Batches of rows that fit into memory."""

from collections.abc import Iterable, Iterator
from typing import Final

from evennia_ai.cli.game.move.tables import Row

BATCH_ROWS: Final = 500
BATCH_CHARACTERS: Final = 2_000_000
"""A batch ends with the row that makes it longer than this."""


def batches(stream: Iterable[Row]) -> Iterator[list[Row]]:
    """Yield the rows in batches with a limited number of rows and characters."""
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
