"""The game's half of a kind of job: it checks that a result still fits, and writes it.

A kind of job has two halves. The worker's half (`npc/jobs`) runs anywhere, and only reads and
computes. Only the game's half writes data of the game.
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
"""How a job ended, or why it was not started. "applied": its result is written. "stale": its input
has changed meanwhile. "failed": its function gave a reason for having no result. "lapsed": nobody
started it in time. "poisoned": it is set aside after three unexpected errors. "waiting": the same
job, or one with its queueing lock, waits already. "over": too many jobs of its kind wait.
"unavailable": the queue cannot be reached, and the job was dropped."""

RECORDED: Final = "recorded"
"""The key in a body for the places of requests that are committed as records already."""


class Applies(Protocol):
    """The game's half of one kind of job."""

    name: str

    def apply(self, job: Job, body: Mapping[str, Any]) -> object:
        """Write the result of a job, all or nothing. Called in the writer's thread.

        It must not use objects of the game. Its return value goes to a caller of `done_here`.

        Raises:
            StaleError: The input of the job has changed.
        """

    def ended(self, job: Job, ending: Ending, reason: str) -> None:
        """Called in the reactor's thread when the job has ended and everything is committed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GameKind:
    """A kind of job with both halves: `does` is the worker's, `applies` the game's."""

    does: JobKind
    applies: Applies
    records: Callable[[Job, SentRequest], ModelRequest] | None = None
    """Commits a request before it is sent, when the job runs in this process."""
    prepares: Callable[[Job, Mapping[str, Any]], Mapping[str, Any]] | None = None
    """Converts the body for `apply` with the help of objects of the game. Called in the reactor's
    thread."""
