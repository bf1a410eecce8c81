"""The background jobs of one process: their kinds, and where they run according to the settings.

Callers only need `submit`. The kind's `apply` writes the result, wherever the job ran. The Deferred
of `submit` fires when the job has ended.
"""

from collections.abc import Callable
from typing import Final

from twisted.internet.defer import Deferred

from evennia_ai.npc.background.applying import Ending, GameKind
from evennia_ai.npc.background.in_process import InProcess, InThread
from evennia_ai.npc.background.queued import Queued, WorkStatus
from evennia_ai.npc.jobs.job import Job
from evennia_ai.npc.model_calls.calls import ModelCalls
from evennia_ai.services.settings.workers import WorkerSettings


class Work:
    """Runs jobs in this process, or gives them to workers."""

    def __init__(
        self,
        settings: WorkerSettings,
        calls: ModelCalls,
        *,
        in_thread: InThread,
        game_id: Callable[[], str],
    ) -> None:
        self.kinds: Final[dict[str, GameKind]] = {}
        self._here: Final = InProcess(settings, calls, self.kinds, in_thread=in_thread)
        self._queued: Final = (
            Queued(settings, calls, self.kinds, game_id=game_id) if settings.in_workers else None
        )

    def add(self, kind: GameKind) -> None:
        """Add a kind of job."""
        self.kinds[kind.does.name] = kind

    @property
    def in_workers(self) -> bool:
        """True if worker processes do the jobs that no turn waits for."""
        return self._queued is not None

    def begin(self) -> None:
        """Start to apply results of workers. Called when the server starts."""
        if self._queued is not None:
            self._queued.begin()

    def close(self) -> None:
        """Stop applying results of workers."""
        if self._queued is not None:
            self._queued.close()

    def submit(self, job: Job) -> "Deferred[tuple[Ending, str]]":
        """Start a job. The Deferred fires with how it ended, and the reason.

        It fires at once if the job is not accepted. A job that has run before under the same name
        may not run again; the Deferred then fires with the earlier ending.
        """
        if job.kind not in self.kinds:
            raise KeyError(f"no kind of work {job.kind!r} was added; known are {list(self.kinds)}")
        if self._queued is not None:
            return self._queued.submit(job)
        return self._here.submit(job).addCallback(self._ended_here, job)

    @property
    def status(self) -> WorkStatus | None:
        """Return the state of the queue and its workers, None if the game runs all jobs itself."""
        return None if self._queued is None else self._queued.status

    def _ended_here(self, ended: tuple[Ending, str], job: Job) -> tuple[Ending, str]:
        ending, reason = ended
        if ending in ("applied", "stale", "failed", "lapsed", "poisoned"):
            self.kinds[job.kind].applies.ended(job, ending, reason)
        return ended
