"""One job in a worker: read, judged, done, and offered; or why not.

Nothing of the game's is written. What comes of a job is one row, unique by the job's name, so
whoever does it a second time, because the first one was taken for dead, offers nothing more.
"""

import asyncio
import json
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from django.db import DatabaseError
from twisted.internet.defer import Deferred

from evennia_ai.endpoints import Models
from evennia_ai.errors import EvenniaAIError
from evennia_ai.llm.quotas import Quota
from evennia_ai.models.work import FAILED, LAPSED, OFFERED, POISONED
from evennia_ai.store.work import proposals
from evennia_ai.store.work.proposals import Offer
from evennia_ai.work.job import Job, JobKind
from evennia_ai.work.wire import JobError, job_of
from evennia_ai.work.worker.tools import Threads, WorkerTools

log: Final = logging.getLogger(__name__)
MOST_TRIES: Final = 3
"""So often a job is tried that fails in a way its function did not foresee, or ends its worker."""
OFFER_SECONDS: Final = 60.0
"""How long a worker tries to offer what it made while the database is away."""
AGAIN_SECONDS: Final = 1.0


class Doer:
    """Does the jobs of one worker."""

    def __init__(
        self,
        name: str,
        kinds: Mapping[str, JobKind],
        *,
        models_of: Callable[[str], Models],
        threads: Threads,
        quota: Quota,
    ) -> None:
        """`models_of` gives the models for the game of this name."""
        self.name: Final = name
        self.kinds: Final = kinds
        self.doing: set[str] = set()
        """The names of the jobs under way."""
        self._models_of: Final = models_of
        self._threads: Final = threads
        self._quota: Final = quota

    async def do(self, text: str, *, game_id: str, failures: int) -> None:
        """Do a job, written as JSON, that failed so often before, and offer what comes of it.

        Whatever its function did not foresee is raised, for the queue to try it again; the third
        time it is offered as poisoned. JobError: it is no job for this worker.
        """
        job = job_of(text)
        kind = self.kinds.get(job.kind)
        if kind is None:
            known = ", ".join(self.kinds)
            raise JobError(f"job {job.idempotency!r}: {self.name} does {known}, not {job.kind}")
        self.doing.add(job.idempotency)
        try:
            await self._done(kind, job, text, game_id=game_id, failures=failures)
        finally:
            self.doing.discard(job.idempotency)

    async def set_aside(self, text: str, reason: str) -> None:
        """Offer a job as one that no worker is to try again."""
        await self._offered(text, begun_at=time.time(), state=POISONED, reason=reason)

    async def lapsed(self, text: str, reason: str) -> None:
        """Offer a job as one that nobody does any more."""
        await self._offered(text, begun_at=time.time(), state=LAPSED, reason=reason)

    async def refused(self, text: str, reason: str) -> None:
        """Offer a job as one that cannot be done here; the game may ask anew."""
        await self._offered(text, begun_at=time.time(), state=FAILED, reason=reason)

    async def _done(
        self, kind: JobKind, job: Job, text: str, *, game_id: str, failures: int
    ) -> None:
        begun_at = time.time()
        if job.deadline and begun_at > job.deadline:
            reason = "nobody began it in time"
            await self._offered(text, begun_at=begun_at, state=LAPSED, reason=reason)
            return
        tools = WorkerTools(self._models_of(game_id), self._threads, self._quota)
        said: dict[str, Any] = {}
        try:
            body = await _run(kind, job, tools)
            said["body"] = json.dumps(body, separators=(",", ":"))
        except EvenniaAIError as error:
            said.update(state=FAILED, reason=str(error))
        except Exception as error:  # whatever a kind did not foresee ends this job alone
            reason = f"{type(error).__name__}: {error}"
            if failures + 1 < MOST_TRIES:
                log.warning("job %s failed, try %d: %s", job.idempotency, failures + 1, reason)
                raise
            log.exception("job %s is set aside", job.idempotency)
            said.update(state=POISONED, reason=reason)
        await self._offered(text, begun_at=begun_at, calls=tuple(tools.calls), **said)

    async def _offered(self, text: str, *, begun_at: float, **said: Any) -> None:
        """Write down what came of it, and again as long as the database is away."""
        job = _names(text)
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
                is_first = await self._threads.run(proposals.offer, offer)
                break
            except DatabaseError as error:
                if time.monotonic() > until:
                    raise
                log.warning("job %s cannot be offered yet: %s", offer.idempotency, error)
                await asyncio.sleep(AGAIN_SECONDS)
        told = said.get("state", OFFERED) if is_first else "was offered before"
        log.info("job %s: %s %s", offer.idempotency, told, said.get("reason", ""))


async def _run(kind: JobKind, job: Job, tools: WorkerTools) -> Mapping[str, Any]:
    """Drive a function that waits for Deferreds by the loop."""

    async def run() -> Mapping[str, Any]:
        return await kind.run(job, tools)

    loop = asyncio.get_running_loop()
    body: Mapping[str, Any] = await Deferred.fromCoroutine(run()).asFuture(loop)
    return body


def _names(text: str) -> dict[str, Any]:
    """What a job says of itself, also where it is of another version."""
    try:
        said = json.loads(text)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}
