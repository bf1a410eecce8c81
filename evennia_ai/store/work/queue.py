"""The queue of background jobs: procrastinate's tables in the game's own database.

A job is added inside the open transaction. So the job exists if and only if the change that needs
it was committed. procrastinate is imported only where it is used, because games without workers do
not need it.
"""

import time
from dataclasses import dataclass
from typing import Any, Final

from django.db import transaction
from django.db.models import Count, Min

PREFIX: Final = "evennia_ai"
TASK: Final = "evennia_ai.job"
WAITING: Final = "todo"
TAKEN: Final = "doing"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedJob:
    """A job to add to the queue."""

    kind: str
    version: int
    text: str
    """The job as JSON."""
    lock: str = ""
    queueing_lock: str = ""
    game_id: str = ""
    """The name of the game, which requests carry so that a router can tell games apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStatus:
    """The state of the queue for one kind of job and one version."""

    kind: str
    version: int
    waiting: int = 0
    taken: int = 0
    waits_since: float | None = None
    """When the oldest waiting job was added, in seconds since 1970."""


def queue_name(kind: str, *, version: int) -> str:
    """Return the name of the queue for a kind of job.

    It contains the version, so workers of other versions do not take its jobs.
    """
    return f"{PREFIX}.v{version}.{kind}"


def put_job(job: QueuedJob) -> bool:
    """Add a job to the queue inside the current transaction.

    If the queue's tables are missing, Django's database error is raised.

    Returns:
        False if a job with the same lock is already waiting.
    """
    from procrastinate.contrib.django import app
    from procrastinate.exceptions import AlreadyEnqueued

    task = app.configure_task(
        TASK,
        queue=queue_name(job.kind, version=job.version),
        lock=job.lock or None,
        queueing_lock=job.queueing_lock or None,
    )
    try:
        with transaction.atomic():
            task.defer(job=job.text, game=job.game_id, at=time.time())
    except AlreadyEnqueued:
        return False
    return True


def count_waiting_jobs(kind: str, *, version: int) -> int:
    """Return how many jobs of a kind wait for a worker."""
    name = queue_name(kind, version=version)
    found: int = _rows().filter(queue_name=name, status=WAITING).count()
    return found


def queue_status() -> tuple[QueueStatus, ...]:
    """Return the state of each queue that has jobs, sorted by name."""
    rows = _rows().filter(queue_name__startswith=f"{PREFIX}.v", status__in=(WAITING, TAKEN))
    counted = rows.values("queue_name", "status").annotate(number=Count("pk"), oldest=Min("pk"))
    found: dict[str, dict[str, Any]] = {}
    for row in counted.order_by("queue_name"):
        stands = found.setdefault(row["queue_name"], {})
        if row["status"] == WAITING:
            stands.update(waiting=row["number"], waits_since=_put_at(row["oldest"]))
        else:
            stands.update(taken=row["number"])
    return tuple(QueueStatus(**_named(name), **stands) for name, stands in found.items())


def _named(queue: str) -> dict[str, Any]:
    _, version, kind = queue.split(".", 2)
    return {"kind": kind, "version": int(version.removeprefix("v"))}


def _put_at(number: int) -> float | None:
    args = _rows().filter(pk=number).values_list("args", flat=True).first()
    return None if args is None else args.get("at")


def _rows() -> Any:
    from procrastinate.contrib.django.models import ProcrastinateJob

    return ProcrastinateJob.objects
