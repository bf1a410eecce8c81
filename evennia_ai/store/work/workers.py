"""Store which workers are alive, and their current jobs."""

from dataclasses import asdict, dataclass

from evennia_ai import models


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenWorker:
    """A worker as it was when it last reported."""

    name: str
    version: int
    kinds: str
    """The kinds of jobs that the worker does, with spaces between them."""
    begun_at: float
    seen_at: float
    doing: str = ""
    """The name of the job that it was doing, or ""."""


def store_worker(worker: SeenWorker) -> None:
    """Store that a worker is alive."""
    values = asdict(worker)
    models.Worker.objects.update_or_create(name=values.pop("name"), defaults=values)


def remove_worker(name: str) -> None:
    """Store that a worker has ended normally."""
    models.Worker.objects.filter(name=name).delete()


def list_workers() -> tuple[SeenWorker, ...]:
    """Return the workers that have reported and did not end normally, sorted by name."""
    names = SeenWorker.__dataclass_fields__
    return tuple(SeenWorker(**row) for row in models.Worker.objects.order_by("name").values(*names))


def forget_old_workers(before: float) -> int:
    """Delete workers that have not reported since a time, and return their number."""
    return int(models.Worker.objects.filter(seen_at__lt=before).delete()[0])
