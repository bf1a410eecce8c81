"""Revisions: every change of an authored thing stays, numbered from 1, in a table of its kind.

What all kinds have in common is here: who did what and when, which number is next, one change by
its number. Whose changes are meant is told by columns of the table; what a change says of its
thing is for the module of the kind. They stay when the thing is removed, so that a number means
one text for ever.
"""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Max, Model, QuerySet

from evennia_ai.errors import NotStoredError


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change of an authored thing."""

    number: int
    action: str
    """What was done; which words there are is for each kind."""
    changed_by: str
    changed_at: float
    """In epoch seconds."""


class Revisions:
    """The changes of one kind of authored thing, in the table that keeps them."""

    def __init__(self, table: type[Model]) -> None:
        self._table: Final[Any] = table

    def of(self, **key: Any) -> QuerySet:
        """The rows of one thing, oldest first; also of one that was removed."""
        return self._table.objects.filter(**key).order_by("number")

    def newest_number(self, **key: Any) -> int:
        """The newest number of a thing, removals counted; 0 where there never was one."""
        return self.of(**key).aggregate(newest=Max("number"))["newest"] or 0

    def next_number(self, *, least: int = 0, **key: Any) -> int:
        """The number of the change that comes next, above `least` in any case."""
        return 1 + max(self.newest_number(**key), least)

    def last_changed_by(self, **key: Any) -> str:
        """Who made the newest change of a thing."""
        newest = self.of(**key).order_by("-number").values_list("changed_by", flat=True).first()
        return "somebody" if newest is None else newest

    def numbered(self, rows: QuerySet, number: int, *, what: str) -> Any:
        """The row of this number among `rows`; NotStoredError names the numbers there are."""
        row = rows.filter(number=number).first()
        if row is None:
            known = [str(one) for one in rows.values_list("number", flat=True)]
            raise NotStoredError(f"revision of {what} with number", number, known)
        return row

    def write(self, number: int, *, action: str, by: str, **columns: Any) -> int:
        """Write down one change, in the transaction that makes it; its number."""
        self.write_all([{"number": number, "action": action, **columns}], by=by)
        return number

    def write_all(self, changes: Iterable[Mapping[str, Any]], *, by: str) -> None:
        """Write down changes of several things, each as its columns, with its number and action."""
        now = time.time()
        self._table.objects.bulk_create(
            [self._table(changed_by=by, changed_at=now, **columns) for columns in changes],
            batch_size=100,
        )
