"""The main loop of a worker: it takes jobs from the queue until it is told to stop.

The queue is procrastinate's. It gives out jobs, one at a time for each lock, and wakes the worker
for a new one. This module adds a heartbeat, which the game shows. It gives out jobs again whose
workers have no heartbeat, and it reconnects after a lost connection.
"""

import asyncio
import contextlib
import logging
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Final

from procrastinate import App, JobContext, PsycopgConnector
from procrastinate.contrib.django.utils import connector_params
from procrastinate.exceptions import ConnectorException, UniqueViolation
from procrastinate.jobs import Status

from evennia_ai.npc.jobs.job import MOST_TRIES, VERSION, JobKind
from evennia_ai.npc.jobs.wire import JobError
from evennia_ai.npc.jobs.worker.doing import Doer, names_of
from evennia_ai.npc.jobs.worker.loop_clock import LoopClock
from evennia_ai.npc.jobs.worker.tools import Threads
from evennia_ai.services.endpoints import Models
from evennia_ai.services.net.bridge import AsyncBridge
from evennia_ai.services.settings.conf import conf
from evennia_ai.store.work import proposals, queue, workers
from evennia_ai.store.work.workers import SeenWorker

log: Final = logging.getLogger(__name__)
ANEW_SECONDS: Final = 2.0
"""The pause before the worker tries to reach the database again."""
POLL_SECONDS: Final = 2.0
"""How often the worker looks for jobs, in case it was not woken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """The options of a worker."""

    name: str
    at_once: int = 4
    """The most jobs that the worker does at the same time."""
    ends_when_idle: bool = False
    """True if the worker stops when the queue is empty."""


async def run_worker(kinds: Mapping[str, JobKind], options: WorkerOptions) -> None:
    """Do jobs of these kinds until SIGTERM or SIGINT, then finish the running ones and return."""
    loop = asyncio.get_running_loop()
    threads = Threads(options.at_once + 1)
    models = _Models(loop)
    doer = Doer(options.name, kinds, models_of=models.of, threads=threads, quotas=conf().limits)
    life = _Life(doer, threads, options)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, life.end)
    try:
        await life.live()
    finally:
        models.close()
        threads.close()


class _Models:
    """Creates and keeps the models of this worker, for each game whose jobs it does."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._clock: Final = LoopClock(loop)
        self._made: dict[str, Models] = {}

    def of(self, game_id: str) -> Models:
        if game_id not in self._made:
            bridge = AsyncBridge(self._clock)
            self._made[game_id] = Models(
                conf(), clock=self._clock, bridge=bridge, game_id=lambda: game_id
            )
        return self._made[game_id]

    def close(self) -> None:
        for models in self._made.values():
            models.close()


class _Life:
    """Runs procrastinate's worker, with heartbeats and reconnection."""

    def __init__(self, doer: Doer, threads: Threads, options: WorkerOptions) -> None:
        self._doer: Final = doer
        self._threads: Final = threads
        self._options: Final = options
        self._begun_at: Final = time.time()
        self._stalled_seconds: Final = conf().workers.stalled_seconds
        self._queues: Final = [queue.queue_name(kind, version=VERSION) for kind in doer.kinds]
        self._working: asyncio.Task[None] | None = None
        self._is_ending = False
        self._showing: Final = Lock()
        self._is_gone = False
        self._told: set[str] = set()

    def end(self) -> None:
        """Take no more jobs. `run_worker` returns once the running jobs have ended."""
        if not self._is_ending:
            log.info(
                "%s stops once its %d running jobs have ended",
                self._doer.name,
                len(self._doer.doing),
            )
        self._is_ending = True
        if self._working is not None:
            self._working.cancel()

    async def live(self) -> None:
        log.info("%s does %s", self._doer.name, ", ".join(self._doer.kinds))
        while not self._is_ending:
            try:
                async with self._app().open_async() as app:
                    await self._run_until_disconnected(app)
            except (ConnectorException, OSError) as error:
                log.warning("the database cannot be reached; trying again: %s", error)
            if self._options.ends_when_idle:
                break
            if not self._is_ending:
                await asyncio.sleep(ANEW_SECONDS)
        with contextlib.suppress(Exception):  # the database may be unreachable
            await self._threads.run(self._remove_heartbeat)

    def _app(self) -> App:
        app = App(connector=PsycopgConnector(kwargs=connector_params(), min_size=1, max_size=4))

        @app.task(name=queue.TASK, pass_context=True)
        async def do(context: JobContext, *, job: str, game: str, at: float) -> None:
            await self._do(context, job, game)

        return app

    async def _do(self, context: JobContext, text: str, game_id: str) -> None:
        try:
            await self._doer.do(text, game_id=game_id, failures=context.job.attempts)
        except JobError as error:
            await self._doer.refused(text, str(error))

    async def _run_until_disconnected(self, app: App) -> None:
        """Do jobs until the worker is told to stop or loses the connection."""
        self._working = asyncio.create_task(
            app.run_worker_async(
                queues=self._queues,
                name=self._doer.name,
                concurrency=self._options.at_once,
                wait=not self._options.ends_when_idle,
                delete_jobs="always",
                fetch_job_polling_interval=POLL_SECONDS,
                update_heartbeat_interval=self._stalled_seconds / 3,
                stalled_worker_timeout=self._stalled_seconds,
                install_signal_handlers=False,
            )
        )
        beating = asyncio.create_task(self._send_heartbeats(app))
        try:
            await self._working
        except asyncio.CancelledError:
            if not self._is_ending:
                raise
        finally:
            self._working = None
            beating.cancel()
            await asyncio.gather(beating, return_exceptions=True)

    async def _send_heartbeats(self, app: App) -> None:
        """Send heartbeats and give out the jobs of dead workers again, while the worker runs.

        The loop also ends by itself. Cancelling it is only faster, and not reliable: before Python
        3.12, `asyncio.wait_for` in the connection pool may lose a cancellation that arrives as its
        wait ends.
        """
        while self._working is not None:
            try:
                await self._threads.run(self._store_heartbeat, self._heartbeat_row())
                await self._tell_of_other_versions()
                await self._finish_offered_jobs(app)
                await self._hand_out_again(app)
            except Exception as error:  # the next heartbeat tries again
                log.warning("the heartbeat failed: %s", error)
            await asyncio.sleep(self._stalled_seconds / 6)

    def _store_heartbeat(self, worker: SeenWorker) -> None:
        """Write the heartbeat. The lock prevents writing one after `_remove_heartbeat`."""
        with self._showing:
            if not self._is_gone:
                workers.store_worker(worker)

    def _remove_heartbeat(self) -> None:
        with self._showing:
            self._is_gone = True
            workers.remove_worker(self._doer.name)

    def _heartbeat_row(self) -> SeenWorker:
        return SeenWorker(
            name=self._doer.name,
            version=VERSION,
            kinds=" ".join(self._doer.kinds),
            begun_at=self._begun_at,
            seen_at=time.time(),
            doing=", ".join(sorted(self._doer.doing))[:255],
        )

    async def _tell_of_other_versions(self) -> None:
        """Log, once for each kind, that jobs wait for workers of another version."""
        for stands in await self._threads.run(queue.queue_status):
            if stands.version != VERSION and stands.kind not in self._told:
                self._told.add(stands.kind)
                log.error(
                    "%s has version %d and skips jobs of kind %s and version %d: update %s",
                    self._doer.name,
                    VERSION,
                    stands.kind,
                    stands.version,
                    "this worker" if stands.version > VERSION else "the game",
                )

    async def _finish_offered_jobs(self, app: App) -> None:
        """Mark jobs as done whose worker lost its connection after it offered the result.

        That worker still has a heartbeat but no longer works on them. Without this, they would keep
        their locks for ever.
        """
        jobs = app.job_manager
        taken = await jobs.list_jobs_async(task=queue.TASK, status=Status.DOING.value)
        texts = {one.id: str(one.task_kwargs["job"]) for one in taken}
        held = {number: names_of(text).get("idempotency", "") for number, text in texts.items()}
        names = set(held.values()) - self._doer.doing
        if not names:
            return
        before = time.time() - self._stalled_seconds
        ended = await self._threads.run(proposals.offered_before, before, names)
        for job in taken:
            if held[job.id] not in ended:
                continue
            log.warning(
                "the result of job %s is stored, but the job was not marked as done; marking it",
                held[job.id],
            )
            try:
                await jobs.finish_job(job, status=Status.SUCCEEDED, delete_job=True)
            except ConnectorException as error:  # another worker was faster
                log.info("job %s was already marked as done: %s", held[job.id], error)

    async def _hand_out_again(self, app: App) -> None:
        jobs = app.job_manager
        for job in await jobs.get_stalled_jobs(seconds_since_heartbeat=self._stalled_seconds):
            if job.queue not in self._queues or job.id is None:
                continue
            name = job.lock or job.id
            text = str(job.task_kwargs["job"])
            try:
                if job.attempts + 1 < MOST_TRIES:
                    log.warning(
                        "the worker of job %s has no heartbeat; the job goes back to the queue",
                        name,
                    )
                    await jobs.retry_job(job)
                    continue
                await self._doer.set_aside(text, f"{MOST_TRIES} workers died while doing it")
                await jobs.finish_job(job, status=Status.FAILED, delete_job=True)
            except UniqueViolation:
                # A newer job with the same queueing lock is in the queue, so this one cannot go
                # back. The newer one waits for this job's lock.
                log.warning("job %s lapses, because a newer one waits for its lock", name)
                await self._doer.lapsed(text, "its worker has no heartbeat, and a newer job waits")
                await jobs.finish_job(job, status=Status.FAILED, delete_job=True)
            except ConnectorException as error:  # another worker was faster
                log.info("another worker already took care of job %s: %s", name, error)
