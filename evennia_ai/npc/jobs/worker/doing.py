"""Does one job in a worker: parses it, runs its function, and offers the result.

A worker writes no data of the game. The result of a job is one row, and the job's name is unique in
that table. A job may be done twice, if its first worker was wrongly taken for dead. Then only the
first result is stored.
"""

import asyncio
import json
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from django.db import DatabaseError
from twisted.internet.defer import Deferred

from evennia_ai.engine.errors import EvenniaAIError
from evennia_ai.models.work import FAILED, LAPSED, OFFERED, POISONED
from evennia_ai.npc.jobs.job import MOST_TRIES, Job, JobKind
from evennia_ai.npc.jobs.wire import JobError, job_of
from evennia_ai.npc.jobs.worker.tools import Threads, WorkerTools
from evennia_ai.services.endpoints import Models
from evennia_ai.services.llm.quotas import Quotas
from evennia_ai.store.core.reading import is_of_database
from evennia_ai.store.work import proposals
from evennia_ai.store.work.proposals import Offer

log: Final = logging.getLogger(__name__)
OFFER_SECONDS: Final = 60.0
"""How long a worker tries to store a result while the database is unreachable."""
AGAIN_SECONDS: Final = 1.0


class Doer:
    """Does the jobs that one worker gets from the queue."""

    def __init__(
        self,
        name: str,
        kinds: Mapping[str, JobKind],
        *,
        models_of: Callable[[str], Models],
        threads: Threads,
        quotas: Quotas,
    ) -> None:
        """Start without jobs. `models_of` returns the models for the id of a game."""
        self.name: Final = name
        self.kinds: Final = kinds
        self.doing: set[str] = set()
        """The names of the running jobs."""
        self._models_of: Final = models_of
        self._threads: Final = threads
        self._quotas: Final = quotas

    async def do(self, text: str, *, game_id: str, failures: int) -> None:
        """Do a job, given as JSON, and offer its result.

        After an unexpected error the job is tried again a little later, while the worker keeps its
        lock. It does not go back to the queue: a newer job with the same lock could wait there, and
        then neither could run. After the last attempt it is offered as poisoned.

        Args:
            failures: How many workers have died while doing this job.

        Raises:
            JobError: The text is not a job, or this worker cannot do it.
        """
        job = job_of(text)
        kind = self.kinds.get(job.kind)
        if kind is None:
            known = ", ".join(self.kinds)
            raise JobError(
                f"job {job.idempotency!r} is of kind {job.kind}, and worker {self.name} does only"
                f" {known}"
            )
        self.doing.add(job.idempotency)
        try:
            await self._attempt_until_done(kind, job, text, game_id=game_id, failures=failures)
        finally:
            self.doing.discard(job.idempotency)

    async def set_aside(self, text: str, reason: str) -> None:
        """Offer a job as poisoned, so that no worker tries it again."""
        await self._store_offer(text, begun_at=time.time(), state=POISONED, reason=reason)

    async def lapsed(self, text: str, reason: str) -> None:
        """Offer a job as lapsed, because nobody will do it."""
        await self._store_offer(text, begun_at=time.time(), state=LAPSED, reason=reason)

    async def refused(self, text: str, reason: str) -> None:
        """Offer a job as failed, because this worker cannot do it.

        The game may request it again.
        """
        await self._store_offer(text, begun_at=time.time(), state=FAILED, reason=reason)

    async def _attempt_until_done(
        self, kind: JobKind, job: Job, text: str, *, game_id: str, failures: int
    ) -> None:
        begun_at = time.time()
        if job.deadline and begun_at > job.deadline:
            reason = "nobody started it in time"
            await self._store_offer(text, begun_at=begun_at, state=LAPSED, reason=reason)
            return
        tools = WorkerTools(self._models_of(game_id), self._threads, self._quotas_of(job))
        while (
            said := await _attempt_job(kind, job, tools, is_last=failures + 1 >= MOST_TRIES)
        ) is None:
            await asyncio.sleep(2.0**failures)
            failures += 1
        refuse_stale = partial(kind.refuse_stale, job) if "body" in said else None
        await self._store_offer(
            text,
            begun_at=begun_at,
            refuse_stale=refuse_stale,
            calls=tuple(tools.calls),
            **said,
        )

    def _quotas_of(self, job: Job) -> Quotas:
        return replace(self._quotas, npc=self._quotas.npc.narrowed(job.limits))

    async def _store_offer(
        self,
        text: str,
        *,
        begun_at: float,
        refuse_stale: Callable[[], None] | None = None,
        **said: Any,
    ) -> None:
        """Store the result as a proposal. Try again while the database is unreachable."""
        job = names_of(text)
        offer = Offer(
            idempotency=job.get("idempotency", ""),
            kind=job.get("kind", ""),
            head_sha256=str(job.get("given", {}).get("head", {}).get("sha256", "")),
            job=text,
            worker=self.name,
            begun_at=begun_at,
            offered_at=time.time(),
            **said,
        )
        until = time.monotonic() + OFFER_SECONDS
        while True:
            try:
                offering = partial(proposals.store_offer, offer, refuse_stale=refuse_stale)
                is_first = await self._threads.run(offering)
                break
            except DatabaseError as error:
                if time.monotonic() > until:
                    raise
                log.warning(
                    "the result of job %s cannot be stored yet: %s", offer.idempotency, error
                )
                await asyncio.sleep(AGAIN_SECONDS)
        told = said.get("state", OFFERED) if is_first else "was offered before"
        log.info("job %s: %s %s", offer.idempotency, told, said.get("reason", ""))


async def _attempt_job(
    kind: JobKind, job: Job, tools: WorkerTools, *, is_last: bool
) -> dict[str, Any] | None:
    """Try a job once. Return the fields of its offer, or None to try again."""
    try:
        body = await _run(kind, job, tools)
    except Exception as error:
        if isinstance(error, EvenniaAIError) and not is_of_database(error):
            return {"state": FAILED, "reason": str(error)}
        # An unexpected error ends only this job; a database may come back.
        reason = f"{type(error).__name__}: {error}"
        if not is_last:
            log.warning("job %s failed and is tried again: %s", job.idempotency, reason)
            return None
        log.exception("job %s is set aside after its last attempt", job.idempotency)
        return {"state": POISONED, "reason": reason}
    return {"body": json.dumps(body, separators=(",", ":"))}


async def _run(kind: JobKind, job: Job, tools: WorkerTools) -> Mapping[str, Any]:
    """Run a job's function, which waits for Deferreds, in the asyncio loop."""

    async def run() -> Mapping[str, Any]:
        return await kind.run(job, tools)

    loop = asyncio.get_running_loop()
    body: Mapping[str, Any] = await Deferred.fromCoroutine(run()).asFuture(loop)
    return body


def names_of(text: str) -> dict[str, Any]:
    """Return the fields of a job as a dictionary, also of a job of another version."""
    try:
        said = json.loads(text)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}
