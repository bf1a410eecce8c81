"""`evennia-ai` killed at a statement: `python -m tests.cli.dying_move AT WORDS...`.

It is killed, as by `kill -9`, before its statement number AT to the database it moves to, counted
from 1. A batch has few rows here, so that a small game has many.
"""

import os
import signal
import sys
from itertools import count
from typing import Any

from evennia_ai.cli import run
from evennia_ai.cli.game.move import batches

FEW_ROWS = 20


def main(at: int, words: list[str]) -> int:
    """The exit status of `evennia-ai WORDS`, where it comes so far."""
    from django.db.backends.utils import CursorWrapper

    numbers = count(1)
    execute: Any = CursorWrapper._execute

    def executed(self: Any, *arguments: Any) -> Any:
        if self.db.alias == "default" and next(numbers) == at:
            os.kill(os.getpid(), signal.SIGKILL)
        return execute(self, *arguments)

    CursorWrapper._execute = executed
    setattr(batches, "BATCH_ROWS", FEW_ROWS)  # noqa: B010 - it is final for all but tests
    return run(words)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
