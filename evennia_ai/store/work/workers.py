"""The workers that showed themselves, and what they do."""

from dataclasses import asdict, dataclass

from evennia_ai import models


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenWorker:
    """A worker as it last showed itself."""

    name: str
    version: int
    kinds: str
    """The names of the kinds it does, with blanks between."""
    begun_at: float
    seen_at: float
    doing: str = ""
    """The name of the job it did then, "" for none."""


def seen(worker: SeenWorker) -> None:
    """Have others know that a worker is there."""
    values = asdict(worker)
    models.Worker.objects.update_or_create(name=values.pop("name"), defaults=values)


def gone(name: str) -> None:
    """A worker ended as it should."""
    models.Worker.objects.filter(name=name).delete()


def workers() -> tuple[SeenWorker, ...]:
    """The workers that were ever seen and did not end as they should, by name."""
    names = SeenWorker.__dataclass_fields__
    return tuple(SeenWorker(**row) for row in models.Worker.objects.order_by("name").values(*names))


def forget_old(before: float) -> int:
    """Forget workers that gave no sign since a moment; how many."""
    return int(models.Worker.objects.filter(seen_at__lt=before).delete()[0])
