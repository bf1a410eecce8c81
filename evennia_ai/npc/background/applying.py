"""What the game does with what came of a job: check that it still fits, and write it.

A kind of work has two halves: its function (`evennia_ai.npc.jobs`), which runs anywhere, reads and
thinks, and this one, which alone writes what the game owns.
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
"""How a job ended, or why it was not begun.

"applied": written; "stale": what it was made from is not so any more; "failed": its function said
why there is nothing; "lapsed": nobody began it in time; "poisoned": it is set aside, after three
failures that nobody foresaw; "waiting": one with its lock waits already; "over": too many wait, do
without; "unavailable": the queue cannot be reached, it is tried again.
"""

RECORDED: Final = "recorded"
"""In a body: the places of the records of those requests in it that are committed already."""


class Applies(Protocol):
    """The game's half of one kind of work."""

    name: str

    def apply(self, job: Job, body: Mapping[str, Any]) -> object:
        """Write what came of a job, all or nothing, in the writer's thread.

        It touches no object of the game. What it returns is for who had the job done here.
        StaleError: what the job was made from is not so any more.
        """

    def ended(self, job: Job, ending: Ending, reason: str) -> None:
        """The job ended so, and all of it is committed; on the reactor's thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GameKind:
    """Both halves of a kind."""

    does: JobKind
    applies: Applies
    records: Callable[[Job, SentRequest], ModelRequest] | None = None
    """Commits what a model is about to be asked, for a job that is done here."""
    prepares: Callable[[Job, Mapping[str, Any]], Mapping[str, Any]] | None = None
    """The body as `apply` takes it: with what objects of the game say to it. On the reactor's
    thread."""
