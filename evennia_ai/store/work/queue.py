"""The queue of jobs: procrastinate's tables in the game's own database.

Its Django app brings them and puts a job in with the transaction that is open, so that there is a
job if and only if there is what needs it. It is imported where it is used: a game without workers
needs no such package.
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
    """A job as it is put into the queue."""

    kind: str
    version: int
    text: str
    """The job as JSON."""
    lock: str = ""
    queueing_lock: str = ""
    game_id: str = ""
    """By which a router of models tells this game from others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStatus:
    """How the queue of one kind and version stands."""

    kind: str
    version: int
    waiting: int = 0
    taken: int = 0
    waits_since: float | None = None
    """Since when the oldest waits, in epoch seconds."""


def queue_name(kind: str, *, version: int) -> str:
    """The queue of a kind's jobs; a worker of another version looks into others."""
    return f"{PREFIX}.v{version}.{kind}"


def put(job: QueuedJob) -> bool:
    """Put a job into the queue in the current transaction; False: one with its lock waits already.

    A database error is raised: there is no queue.
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


def waiting(kind: str, *, version: int) -> int:
    """How many jobs of a kind wait for a worker."""
    name = queue_name(kind, version=version)
    found: int = _rows().filter(queue_name=name, status=WAITING).count()
    return found


def status() -> tuple[QueueStatus, ...]:
    """How the queues stand in which there is something, by name."""
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
