"""`evennia-ai move` that is killed at a given SQL statement.

Batches have few rows here, so that a small game has many batches. The changes of this module are
not undone, so it only runs in processes of its own (`tests/cli/forked_games.py`).
"""

import os
import signal
from collections.abc import Sequence
from itertools import count
from typing import Any

from evennia_ai import cli
from evennia_ai.cli.game.move import batches

FEW_ROWS = 20


def run(words: Sequence[str]) -> int:
    """Run `evennia-ai` with all but the first of these words. Return its exit status.

    The first word is a number N. The process is killed, as by `kill -9`, before its N-th SQL
    statement to the target database.
    """
    from django.db.backends.utils import CursorWrapper

    at, *words = words
    numbers = count(1)
    execute: Any = CursorWrapper._execute

    def executed(self: Any, *arguments: Any) -> Any:
        if self.db.alias == "default" and next(numbers) == int(at):
            os.kill(os.getpid(), signal.SIGKILL)
        return execute(self, *arguments)

    CursorWrapper._execute = executed
    setattr(batches, "BATCH_ROWS", FEW_ROWS)  # noqa: B010 - it is final for all but tests
    return cli.run(words)
