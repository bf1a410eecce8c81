"""Gives jobs to workers: puts them into the queue, and applies the results that workers offer.

Everything is in the tables, so after a reload it is known what waits. While jobs are queued or
running, one indexed query per second in the writer's thread looks for results. If a job cannot be
queued because the database is unreachable, it is queued later.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from django.db import DatabaseError
from evennia.utils import logger
from twisted.internet.defer import Deferred
from twisted.internet.task import LoopingCall
from twisted.python.failure import Failure

from evennia_ai.engine.errors import HistoryConflictError, StoreError
from evennia_ai.models.work import OFFERED
from evennia_ai.npc.background import proposed
from evennia_ai.npc.background.applying import Ending, GameKind
from evennia_ai.npc.background.proposed import Handled
from evennia_ai.npc.jobs.job import MOST_TRIES, VERSION, Job
from evennia_ai.npc.jobs.wire import text_of
from evennia_ai.npc.model_calls.calls import ModelCalls
from evennia_ai.services.llm.quotas import QuotaUse
from evennia_ai.services.settings.workers import WorkerSettings
from evennia_ai.store.model_calls import GAME_REF
from evennia_ai.store.work import proposals, queue, taking, workers
from evennia_ai.store.work.queue import QueuedJob, QueueStatus
from evennia_ai.store.work.taking import Taken
from evennia_ai.store.work.workers import SeenWorker

LOOK_SECONDS: Final = 1.0
STATUS_LOOKS: Final = 5
"""Every fifth look for results also reads the status of the queue."""
SELDOM_LOOKS: Final = 15
"""While no job is queued or running, only every fifteenth look for results is made."""
SILENT_SECONDS: Final = 60.0
"""A worker whose last heartbeat is older is reported. Workers send one every few seconds."""
MOST_UNSENT: Final = 100
"""The most jobs that are kept while the queue is unreachable. Others are dropped."""

_AWAY: Final = (DatabaseError, StoreError, ConnectionError)
End = tuple[Ending, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkStatus:
    """The state of the queue and its workers."""

    queues: tuple[QueueStatus, ...] = ()
    workers: tuple[SeenWorker, ...] = ()
    poisoned: tuple[tuple[str, str], ...] = ()
    """The jobs that were set aside, each with the reason."""
    unsent: int = 0
    """How many jobs wait until the queue can be reached again."""
    is_away: bool = False
    over: Mapping[str, int] = field(default_factory=dict)
    """How many jobs were dropped because too many waited, by kind."""

    def silent(self, now: float) -> tuple[SeenWorker, ...]:
        """Return the workers without a recent heartbeat, which have probably died."""
        return tuple(one for one in self.workers if now - one.seen_at > SILENT_SECONDS)

    def lag_seconds(self, now: float) -> float:
        """Return how long the oldest waiting job has waited."""
        since = [one.waits_since for one in self.queues if one.waits_since is not None]
        return max(0.0, now - min(since)) if since else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """What one look at the tables found."""

    numbers: tuple[int, ...]
    taken: Mapping[str, Taken]
    queues: tuple[QueueStatus, ...] | None = None
    workers: tuple[SeenWorker, ...] = ()
    poisoned: tuple[tuple[str, str], ...] = ()


class Queued:
    """Puts jobs into the queue, and applies the results that workers offer."""

    def __init__(
        self,
        settings: WorkerSettings,
        calls: ModelCalls,
        kinds: Mapping[str, GameKind],
        *,
        game_id: Callable[[], str],
    ) -> None:
        self._settings: Final = settings
        self._calls: Final = calls
        self._kinds: Final = kinds
        self._game_id: Final = game_id
        # By name of the job: the Deferred of its caller in this process.
        self._asked: dict[str, Deferred[End]] = {}
        self._unsent: dict[str, Job] = {}
        self._failures: dict[int, int] = {}
        self._is_looking = False
        self._looks = 0
        # The NPCs for which workers have used tokens in this minute.
        self._served: frozenset[str] = frozenset()
        self._timer: LoopingCall | None = None
        self._over: dict[str, int] = {}
        self.status = WorkStatus()

    def begin(self) -> None:
        """Start to look for results every second."""
        self._timer = LoopingCall(self.look)
        self._timer.clock = self._calls.clock
        self._timer.start(LOOK_SECONDS, now=True)

    def close(self) -> None:
        """Stop looking for results. The jobs and results stay in the tables."""
        if self._timer is not None and self._timer.running:
            self._timer.stop()
        self._timer = None

    def submit(self, job: Job) -> "Deferred[End]":
        """Queue a job.

        The Deferred fires with how it ended, unless the server stops before that.
        """
        if job.idempotency in self._asked:
            return _ended_at_once("waiting", f"{job.idempotency} was requested already")
        done = self._asked[job.idempotency] = Deferred()
        self._put(job)
        return done

    def _put(self, job: Job) -> None:
        put = self._calls.writer.write(partial(self._put_in, job, self._game_id()))
        put.addCallbacks(
            self._job_queued, self._job_not_queued, callbackArgs=(job,), errbackArgs=(job,)
        )

    def _put_in(self, job: Job, game_id: str) -> End | None:
        """Put a job into the queue. Return None if a worker will do it, else how it ended.

        Runs in the writer's thread.
        """
        known = proposals.state_of_job(job.idempotency)
        if known:
            return None if known == OFFERED else (proposed.ENDINGS[known], "it is done already")
        cap = self._settings.cap_of(job.kind)
        if queue.count_waiting_jobs(job.kind, version=VERSION) >= cap:
            return "over", f"{cap} of {job.kind} wait already"
        new = QueuedJob(
            kind=job.kind,
            version=VERSION,
            text=text_of(job),
            lock=job.lock,
            queueing_lock=job.queueing_lock,
            game_id=game_id,
        )
        if queue.put_job(new):
            return None
        return "waiting", f"another job with the lock {job.queueing_lock} is waiting"

    def _job_queued(self, ended: End | None, job: Job) -> None:
        self._unsent.pop(job.idempotency, None)
        if ended is None:
            self._looks = 0  # a job is queued, so look every second
            return
        if ended[0] == "over":
            self._over[job.kind] = self._over.get(job.kind, 0) + 1
            if self._over[job.kind] == 1:
                logger.log_warn(
                    f"evennia_ai: {ended[1]}; new jobs are dropped until workers have caught up"
                )
        self._end(job.idempotency, ended)

    def _job_not_queued(self, failure: Failure, job: Job) -> None:
        name = job.idempotency
        if not failure.check(*_AWAY):
            logger.log_err(f"evennia_ai: job {name} was not queued: {failure.getTraceback()}")
            self._unsent.pop(name, None)
            self._end(name, ("failed", failure.getErrorMessage()))
            return
        self._log_reachability(failure)
        if name in self._unsent or len(self._unsent) < MOST_UNSENT:
            self._unsent[name] = job
        else:
            self._end(name, ("unavailable", failure.getErrorMessage()))

    def _log_reachability(self, failure: Failure | None) -> None:
        """Log once that the queue is unreachable, and once that it is reachable again."""
        if failure is not None and not self.status.is_away:
            told = failure.getErrorMessage().strip()
            logger.log_err(f"evennia_ai: the queue of workers is unreachable: {told}")
        if failure is None and self.status.is_away:
            logger.log_err("evennia_ai: the queue of workers is reachable again")
        self._tell(is_away=failure is not None)

    def _tell(self, **changed: Any) -> None:
        self.status = replace(
            self.status, unsent=len(self._unsent), over=dict(self._over), **changed
        )

    # Looks for results

    @property
    def is_something_out(self) -> bool:
        """True if jobs are queued or running, as far as this process knows."""
        return bool(self._asked or self._unsent or any(self.status.queues))

    def look(self) -> "Deferred[None] | None":
        """Look for results and apply them. Return None if this look is skipped."""
        looks, self._looks = self._looks, self._looks + 1
        if self._is_looking or (not self.is_something_out and looks % SELDOM_LOOKS):
            return None
        self._is_looking = True
        minute = int(self._calls.clock.seconds() // 60)
        used = {ref: self._used_of(ref) for ref in {GAME_REF, *self._served}}
        with_status = looks % STATUS_LOOKS == 0

        found = self._calls.writer.write(partial(_look, minute, used, with_status=with_status))
        return (
            found.addCallback(self._take_results).addErrback(self._is_away).addBoth(self._end_look)
        )

    def _used_of(self, ref: str) -> Taken:
        """Return what this process has used in this minute for an NPC, or for the whole game."""
        limits = self._calls.limits
        read = limits.reading("game") if ref == GAME_REF else limits.reading("npc", ref)
        return Taken(tokens=read.tokens_per_minute, calls=read.calls_per_minute)

    def _end_look(self, _: object) -> None:
        self._is_looking = False

    def _is_away(self, failure: Failure) -> None:
        if failure.check(*_AWAY):
            self._log_reachability(failure)
        else:
            logger.log_err(f"evennia_ai: looking for proposals failed: {failure.getTraceback()}")

    def _take_results(self, look: _Look) -> None:
        self._log_reachability(None)
        self._served = frozenset(look.taken)
        self._calls.limits.set_worker_use(
            {
                ref: QuotaUse(tokens_per_minute=one.tokens or 0, calls_per_minute=one.calls or 0)
                for ref, one in look.taken.items()
            }
        )
        if look.queues is not None:
            self._tell(queues=look.queues, workers=look.workers, poisoned=look.poisoned)
            for kind in tuple(self._over):
                if all(one.kind != kind or not one.waiting for one in look.queues):
                    del self._over[kind]
        for job in tuple(self._unsent.values()):
            self._put(job)
        for number in look.numbers:
            handled = Deferred.fromCoroutine(self._apply_proposal(number))
            handled.addCallbacks(
                self._report_handled, self._handle_apply_error, errbackArgs=(number,)
            )

    async def _apply_proposal(self, number: int) -> Handled | None:
        """Apply a proposal. Before that, its kind may prepare the body with objects of the game."""
        prepared: Mapping[str, Any] | None = None
        offered = await self._calls.writer.read(partial(proposed.read_offer, number))
        if offered is not None:
            job, body = offered
            kind = self._kinds.get(job.kind)
            if kind is not None and kind.prepares is not None:
                prepared = kind.prepares(job, body)
        apply = partial(proposed.apply_proposal, number, self._kinds, prepared)
        return await self._calls.writer.write(apply)

    def _report_handled(self, handled: Handled | None) -> None:
        if handled is None:
            return
        for call in handled.calls:
            self._calls.limits.count_worker_call(call)
        if handled.ending in ("failed", "poisoned"):
            logger.log_warn(
                f"evennia_ai: job {handled.name} {handled.ending} ({handled.worker or 'here'}):"
                f" {handled.reason}"
            )
        if handled.job is not None and (kind := self._kinds.get(handled.job.kind)) is not None:
            kind.applies.ended(handled.job, handled.ending, handled.reason)
        self._end(handled.name, (handled.ending, handled.reason))

    def _handle_apply_error(self, failure: Failure, number: int) -> None:
        """Handle an error of applying a proposal, which the next look tries again.

        After three unexpected errors the proposal is set aside.
        """
        if failure.check(HistoryConflictError):
            return  # another process wrote to the conversation; the next look tries again
        if failure.check(*_AWAY):
            self._log_reachability(failure)
            return
        failures = self._failures[number] = self._failures.get(number, 0) + 1
        logger.log_err(f"evennia_ai: applying proposal {number} failed\n{failure.getTraceback()}")
        if failures >= MOST_TRIES:
            del self._failures[number]
            reason = f"{failure.type.__name__}: {failure.getErrorMessage()}"
            aside = self._calls.writer.write(partial(proposed.set_aside, number, reason))
            aside.addCallbacks(self._report_handled, self._is_away)

    def _end(self, name: str, ended: End) -> None:
        done = self._asked.pop(name, None)
        if done is not None:
            done.callback(ended)


def _look(minute: int, used: Mapping[str, Taken], *, with_status: bool) -> _Look:
    """Read the tables. Runs in the writer's thread."""
    taken = taking.report_game_use(minute, used)
    numbers = proposals.unhandled_proposals()
    if not with_status:
        return _Look(numbers=numbers, taken=taken)
    return _Look(
        numbers=numbers,
        taken=taken,
        queues=queue.queue_status(),
        workers=workers.list_workers(),
        poisoned=proposals.poisoned_jobs(),
    )


def _ended_at_once(ending: Ending, reason: str) -> "Deferred[End]":
    done: Deferred[End] = Deferred()
    done.callback((ending, reason))
    return done
