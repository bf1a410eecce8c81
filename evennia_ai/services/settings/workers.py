"""The setting `EVENNIA_AI_WORKERS`: who does background work, and how many jobs may wait."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from evennia_ai.engine.foreign.fields import Must, read_fields

Queue = Literal["inprocess", "procrastinate"]
PROCRASTINATE: Final = "procrastinate"
QUEUE_APP: Final = "procrastinate.contrib.django"
"""The Django app that has the queue's tables. A game with workers lists it in INSTALLED_APPS."""


def _are_caps(given: object) -> bool:
    return isinstance(given, Mapping) and all(
        isinstance(kind, str) and isinstance(most, int) and not isinstance(most, bool) and most >= 0
        for kind, most in given.items()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """Who does background work, and how many jobs may wait."""

    queue: Queue = "inprocess"
    """"inprocess": the game does the work.

    "procrastinate": workers do it, through the game's database.
    """
    most_waiting: Annotated[int, Field(ge=1, le=10**6)] = 1000
    """How many jobs of one kind may wait. No further jobs are created."""
    caps: Annotated[
        Mapping[str, int],
        Must('a dictionary of whole numbers, such as {"observe": 200}', _are_caps),
    ] = field(default_factory=dict)
    """Other limits on waiting jobs, for single kinds of jobs."""
    stalled_seconds: Annotated[int, Field(ge=1, le=3600)] = 30
    """After how many seconds without a sign of its worker a job is given to another worker."""

    @property
    def in_workers(self) -> bool:
        """True if workers do background work."""
        return self.queue == PROCRASTINATE

    def cap_of(self, kind: str) -> int:
        """Return how many jobs of this kind may wait."""
        return self.caps.get(kind, self.most_waiting)


def read_workers(given: Any, *, where: str) -> WorkerSettings:
    """Return the settings in the dictionary `given`.

    Raises:
        FormatError: a value is not allowed.
    """
    return read_fields(WorkerSettings, given, where=where, what="")
