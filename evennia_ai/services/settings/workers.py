"""`EVENNIA_AI_WORKERS`: where the work beside speaking is done, and how much of it may wait."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from evennia_ai.engine.foreign.fields import Must, read_fields

Queue = Literal["inprocess", "procrastinate"]
PROCRASTINATE: Final = "procrastinate"
QUEUE_APP: Final = "procrastinate.contrib.django"
"""The Django app that brings the queue's tables; beside ours in INSTALLED_APPS."""


def _are_caps(given: object) -> bool:
    return isinstance(given, Mapping) and all(
        isinstance(kind, str) and isinstance(most, int) and not isinstance(most, bool) and most >= 0
        for kind, most in given.items()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """Who works, and how much may wait for it."""

    queue: Queue = "inprocess"
    """"inprocess": the game does it itself; "procrastinate": workers do, by its database."""
    most_waiting: Annotated[int, Field(ge=1, le=10**6)] = 1000
    """So many jobs of a kind may wait; over it the game does without."""
    caps: Annotated[
        Mapping[str, int],
        Must('a dictionary of whole numbers, such as {"observe": 200}', _are_caps),
    ] = field(default_factory=dict)
    """The same for single kinds."""
    stalled_seconds: Annotated[int, Field(ge=1, le=3600)] = 30
    """After so long without a sign of its worker a job is given to another."""

    @property
    def in_workers(self) -> bool:
        """True if workers do it."""
        return self.queue == PROCRASTINATE

    def cap_of(self, kind: str) -> int:
        """How many jobs of this kind may wait."""
        return self.caps.get(kind, self.most_waiting)


def read_workers(given: Any, *, where: str) -> WorkerSettings:
    """The settings in the dictionary `given`; FormatError names the first that cannot be."""
    return read_fields(WorkerSettings, given, where=where, what="")
