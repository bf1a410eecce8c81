"""The game's side of a job: checks that its result still fits, and writes it.

A kind of work has two halves. Its function (`npc/jobs`) runs anywhere and only reads and computes.
The half here is the only one that writes data of the game.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

from evennia_ai.npc.jobs.job import Job, JobKind
from evennia_ai.npc.jobs.kinds.forms import SentRequest
from evennia_ai.store.history.model_requests import ModelRequest

Ending = Literal[
    "applied", "stale", "failed", "lapsed", "poisoned", "waiting", "over", "unavailable"
]
"""How a job ended, or why it was not started.

"applied": its result is written. "stale": its input has changed meanwhile. "failed": its function
gave a reason for no result. "lapsed": nobody started it in time. "poisoned": set aside after three
unexpected errors. "waiting": a job with its lock waits already. "over": too many jobs wait, so
do without. "unavailable": the queue cannot be reached, and the job was dropped.
"""

RECORDED: Final = "recorded"
"""The field of a body with the places of requests that are already committed as records."""


class Applies(Protocol):
    """The game's half of one kind of work."""

    name: str

    def apply(self, job: Job, body: Mapping[str, Any]) -> object:
        """Write the result of a job, all or nothing, in the writer's thread.

        Use no object of the game. The return value goes to a caller of `done_here`.

        Raises:
            StaleError: The input of the job has changed.
        """

    def ended(self, job: Job, ending: Ending, reason: str) -> None:
        """Called in the reactor's thread when the job has ended and everything is committed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GameKind:
    """A kind of background job with the worker's half (do it) and the game's half (apply it)."""

    does: JobKind
    applies: Applies
    records: Callable[[Job, SentRequest], ModelRequest] | None = None
    """Commits a request before it is sent, for a job that is done in this process."""
    prepares: Callable[[Job, Mapping[str, Any]], Mapping[str, Any]] | None = None
    """Converts the body for `apply`, with the help of objects of the game. Runs in the reactor's
    thread."""
