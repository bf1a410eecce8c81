"""Revisions of lorebooks: who changed a book, when, and the text it had then."""

import time
from dataclasses import dataclass
from typing import Any

from django.db.models import Max

from evennia_ai import models
from evennia_ai.store.errors import NotStoredError


@dataclass(frozen=True, slots=True, kw_only=True)
class BookChange:
    """One change of a lorebook, without its text.

    `action` is created, updated, removed or reverted; `changed_at` is in epoch seconds; `locks`
    are those of the book at that time.
    """

    name: str
    number: int
    action: str
    changed_by: str
    changed_at: float
    locks: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BookRevision(BookChange):
    """One change of a lorebook with the text it left, None where it removed the book."""

    source: str | None


def record_book_revision(row: models.Lorebook, *, action: str, by: str) -> None:
    """Write down what `row` is now, in the transaction that changes it."""
    models.LorebookRevision.objects.create(
        name=row.name,
        number=row.revision,
        action=action,
        changed_by=by,
        changed_at=time.time(),
        source="" if action == "removed" else row.source,
        locks=row.locks,
        entry_locks=row.entry_locks,
    )


def newest_number(name: str) -> int:
    """The newest revision number of this name, removals counted; 0 where there never was one."""
    return _rows(name).aggregate(newest=Max("number"))["newest"] or 0


def removal_after(name: str, number: int) -> models.LorebookRevision | None:
    """The change that removed the book this revision is of; for the store alone."""
    return _rows(name).filter(action="removed", number__gt=number).order_by("number").first()


def changes(name: str) -> tuple[BookChange, ...]:
    """All changes of a lorebook, oldest first; also of one that was removed."""
    rows = _rows(name).defer("source", "entry_locks").order_by("number")
    return tuple(BookChange(**_fields(row)) for row in rows)


def revision(name: str, number: int) -> BookRevision:
    """One change with its text; NotStoredError: there is no such number."""
    row = _rows(name).filter(number=number).first()
    if row is None:
        known = [str(n) for n in _rows(name).order_by("number").values_list("number", flat=True)]
        raise NotStoredError(f"revision of lorebook '{name}' with number", number, known)
    source = None if row.action == "removed" else row.source
    return BookRevision(**_fields(row), source=source)


def last_changed_by(name: str) -> str:
    """Who made the newest change of this name."""
    row = _rows(name).defer("source").order_by("-number").first()
    return row.changed_by if row else "somebody"


def _rows(name: str) -> Any:
    return models.LorebookRevision.objects.filter(name=name)


def _fields(row: models.LorebookRevision) -> dict[str, Any]:
    return {
        "name": row.name,
        "number": row.number,
        "action": row.action,
        "changed_by": row.changed_by,
        "changed_at": row.changed_at,
        "locks": row.locks,
    }
