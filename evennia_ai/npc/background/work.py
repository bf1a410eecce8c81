"""The work of one process: which kinds there are, and where a job is done, as the game has set.

`submit` is all that those need who want something done. What comes of it is written by the kind's
`apply`, whoever did it; the Deferred says how it ended, for those who wait for that.
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
    """Has jobs done."""

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
        """Have jobs of a kind done from now on."""
        self.kinds[kind.does.name] = kind

    @property
    def in_workers(self) -> bool:
        """True if workers do what nobody waits for."""
        return self._queued is not None

    def begin(self) -> None:
        """Apply what workers offer from now on; for the start of the server."""
        if self._queued is not None:
            self._queued.begin()

    def close(self) -> None:
        """Apply nothing any more."""
        if self._queued is not None:
            self._queued.close()

    def submit(self, job: Job) -> "Deferred[tuple[Ending, str]]":
        """How the job ended, with the reason; it fires at once where the job is not taken on.

        A job is done once for its name: for one that was applied it says so again.
        """
        if job.kind not in self.kinds:
            raise KeyError(f"no kind of work {job.kind!r} was added; there are {list(self.kinds)}")
        if self._queued is not None:
            return self._queued.submit(job)
        return self._here.submit(job).addCallback(self._ended_here, job)

    @property
    def status(self) -> WorkStatus | None:
        """How the work of workers stands; None: the game does it itself."""
        return None if self._queued is None else self._queued.status

    def _ended_here(self, ended: tuple[Ending, str], job: Job) -> tuple[Ending, str]:
        ending, reason = ended
        if ending in ("applied", "stale", "failed", "lapsed", "poisoned"):
            self.kinds[job.kind].applies.ended(job, ending, reason)
        return ended
