"""`evennia-ai` killed at a statement.

A batch has few rows here, so that a small game has many. What is changed is not put back: this is
for processes of their own (`tests/cli/forked_games.py`).
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
    """The exit status of `evennia-ai` with all but the first of these words, if it comes so far.

    It is killed, as by `kill -9`, before its statement of that number to the database it moves to,
    counted from 1.
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
