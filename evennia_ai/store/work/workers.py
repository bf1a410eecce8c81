"""The workers that were seen, and their current jobs."""

from dataclasses import asdict, dataclass

from evennia_ai import models


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenWorker:
    """A worker when it was last seen."""

    name: str
    version: int
    kinds: str
    """The names of the kinds of jobs that it does, with spaces between them."""
    begun_at: float
    seen_at: float
    doing: str = ""
    """The name of its job at that time, or ""."""


def store_worker(worker: SeenWorker) -> None:
    """Store that a worker is alive."""
    values = asdict(worker)
    models.Worker.objects.update_or_create(name=values.pop("name"), defaults=values)


def remove_worker(name: str) -> None:
    """Store that a worker ended normally."""
    models.Worker.objects.filter(name=name).delete()


def list_workers() -> tuple[SeenWorker, ...]:
    """Return the workers that were seen and did not end normally, sorted by name."""
    names = SeenWorker.__dataclass_fields__
    return tuple(SeenWorker(**row) for row in models.Worker.objects.order_by("name").values(*names))


def forget_old_workers(before: float) -> int:
    """Delete workers that were not seen since a time, and return how many there were."""
    return int(models.Worker.objects.filter(seen_at__lt=before).delete()[0])
