"""What the game does with what came of a job: check that it still fits, and write it.

A kind of work has two halves: its function (`evennia_ai.work`), which runs anywhere, reads and
thinks, and this one, which alone writes what the game owns.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from evennia_ai.errors import EvenniaAIError
from evennia_ai.work.job import Job, JobKind

Ending = Literal[
    "applied", "stale", "failed", "lapsed", "poisoned", "waiting", "over", "unavailable"
]
"""How a job ended, or why it was not begun.

"applied": written; "stale": what it was made from is not so any more; "failed": its function said
why there is nothing; "lapsed": nobody began it in time; "poisoned": it is set aside, after three
failures that nobody foresaw; "waiting": one with its lock waits already; "over": too many wait, do
without; "unavailable": the queue cannot be reached, it is tried again.
"""


class StaleError(EvenniaAIError):
    """What came of a job does not fit any more; raised by `apply`, which then wrote nothing."""


class Applies(Protocol):
    """The game's half of one kind of work."""

    name: str

    def apply(self, job: Job, body: Mapping[str, Any]) -> None:
        """Write what came of a job, in the transaction that is open, in the writer's thread.

        It touches no object of the game. StaleError: what the job was made from is not so any
        more.
        """

    def ended(self, job: Job, ending: Ending, reason: str) -> None:
        """The job ended so, and all of it is committed; on the reactor's thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GameKind:
    """Both halves of a kind."""

    does: JobKind
    applies: Applies
