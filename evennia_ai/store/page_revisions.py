"""Revisions of pages: who changed one, when and why, and what it was then.

They stay when a page or its base is removed; a page that is made again goes on counting.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from django.db.models import Max

from evennia_ai import models
from evennia_ai.knowledge.pages.pages import Page, PageName
from evennia_ai.store.page_columns import WRITTEN, page_value
from evennia_ai.store.revision_tables import Change, Revisions

Named = tuple[str, str]
"""A namespace and a folded title: what a page is found by."""

# Names that one query asks for: a database bears only so many parameters.
MOST_NAMES: Final = 500

_CHANGE: Final = ("number", "action", "changed_by", "changed_at", "note", "sha256", "locks")

_revisions: Final = Revisions(models.KnowledgePageRevision)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRevision(Change):
    """One change of a page, without its text: created, updated, removed or renamed."""

    name: PageName
    note: str
    sha256: str
    """That of the page after it, "" for a removal."""
    locks: str = ""
    """Those of the page, or, where it was removed with its base, those of the base."""


def named(name: PageName) -> Named:
    """What the page of this name is found by."""
    return name.namespace, name.folded


def revisions(base: str, name: PageName) -> tuple[PageRevision, ...]:
    """All changes of a page, oldest first; also of one that was removed."""
    rows = _revisions.of(**_key(base, name)).values("namespace", "title", *_CHANGE)
    return tuple(
        PageRevision(
            name=PageName(namespace=row["namespace"], title=row["title"]),
            **{column: row[column] for column in _CHANGE},
        )
        for row in rows
    )


def at_revision(base: str, name: PageName, number: int) -> Page | None:
    """The page as it was after a change, None where it removed the page or never was."""
    rows = _revisions.of(**_key(base, name)).filter(number=number)
    row = rows.exclude(action="removed").first()
    return page_value(row, base=base, revision=number) if row else None


def newest_numbers(base: str, names: Iterable[Named]) -> dict[Named, int]:
    """The newest revision of each of these names that ever had one."""
    found: dict[Named, int] = {}
    for namespace, titles in batches(names):
        rows = models.KnowledgePageRevision.objects.filter(
            base_key=base, namespace=namespace, folded__in=titles
        )
        newest = rows.values_list("folded").annotate(Max("number")).order_by()
        found.update({(namespace, title): number for title, number in newest})
    return found


def batches(names: Iterable[Named]) -> Iterator[tuple[str, list[str]]]:
    """The names by their namespaces, as many at once as a query may ask for.

    The indexes of pages begin with base and namespace: a query without them reads a whole base.
    """
    for namespace, group in groupby(sorted(set(names)), key=itemgetter(0)):
        titles = [folded for _, folded in group]
        for start in range(0, len(titles), MOST_NAMES):
            yield namespace, titles[start : start + MOST_NAMES]


def removed_with_locks() -> bool:
    """Whether any page, or its base, had a lock when it was removed."""
    rows = models.KnowledgePageRevision.objects.filter(action="removed")
    return bool(rows.exclude(locks="").exists())


def last_changed_by(base: str, name: PageName) -> str:
    """Who made the newest change of a page."""
    return _revisions.last_changed_by(**_key(base, name))


def record(
    base: str,
    changed: Iterable[tuple[models.KnowledgePage, str]],
    *,
    by: str,
    note: str,
) -> None:
    """Write down what pages are now, each with the action that made it so.

    In the transaction that changes them. For a removal the row's revision is that of the removal.
    """
    _revisions.write_all(
        (
            {
                "base_key": base,
                "folded": row.folded,
                "number": row.revision,
                "action": action,
                "note": note,
                **(_ends(row) if action == "removed" else _stays(row)),
            }
            for row, action in changed
        ),
        by=by,
    )


def record_removal_of_all(base: models.KnowledgeBase, *, by: str) -> None:
    """Write down that every page of a base is removed, in the transaction that does it."""
    rows = models.KnowledgePage.objects.filter(base=base)
    gone = []
    for row in rows.only("namespace", "title", "folded", "revision").iterator():
        row.revision += 1
        row.locks = base.locks  # who makes a base of this key again does not get what it hid
        gone.append((row, "removed"))
    record(base.key, gone, by=by, note="")


def _stays(row: models.KnowledgePage) -> dict[str, Any]:
    return {column: getattr(row, column) for column in (*WRITTEN, "sha256")}


def _ends(row: models.KnowledgePage) -> dict[str, Any]:
    return {"namespace": row.namespace, "title": row.title, "locks": row.locks}


def _key(base: str, name: PageName) -> dict[str, str]:
    return {"base_key": base, "namespace": name.namespace, "folded": name.folded}
