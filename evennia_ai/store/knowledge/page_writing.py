"""Writing pages: their rows, aliases, links and revisions, many at once.

For the store alone, inside a transaction that has begun with `changing(KNOWLEDGE, ...)`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db import connection

from evennia_ai import models
from evennia_ai.errors import PageConflictError, StoreError
from evennia_ai.knowledge.pages.markup import links_of
from evennia_ai.knowledge.pages.metadata import alias_names
from evennia_ai.knowledge.pages.page import Page, PageName
from evennia_ai.store.knowledge.knowledge_bases import base_row, pages_changed
from evennia_ai.store.knowledge.page_rows import (
    Row,
    check_page,
    last_changed_by,
    named,
    newest_numbers,
    page_columns,
    record,
)
from evennia_ai.store.knowledge.page_search import index

BATCH: Final = 200

_LINK_COLUMNS: Final = ("base_id", "page_id", "kind", "place", "namespace", "title", "folded")


@dataclass(frozen=True, slots=True, kw_only=True)
class PageWrite:
    """A page to be written, in place of `row` or as a new one."""

    page: Page
    row: Row | None
    action: str = ""

    @property
    def told(self) -> str:
        """What its revision says was done."""
        return self.action or ("updated" if self.row else "created")


def own_base(base: str) -> models.KnowledgeBase:
    """The base whose pages are here; StoreError: they are somewhere else."""
    row = base_row(base)
    if row.backend != "database":
        raise StoreError(
            f"the pages of knowledge base '{base}' are not in the game's database ({row.backend});"
            " change them there"
        )
    return row


def refuse_stale(base: str, name: PageName, row: Row | None, was: str) -> None:
    """PageConflictError where the page has another revision than `was`, "" for no page."""
    if was != (str(row.revision) if row else ""):
        newest = newest_numbers(base, [named(name)]).get(named(name), 0)
        seen = int(was) if was.isdecimal() else 0
        what = f"page '{name}' of knowledge base '{base}'"
        raise PageConflictError(what, seen, newest, last_changed_by(base, name))


def is_same(row: Row | None, page: Page) -> bool:
    """Whether a row says just what this page says."""
    return row is not None and (row.sha256, row.locks) == (page.sha256, page.locks)


def write_all(
    base: models.KnowledgeBase,
    changes: Sequence[PageWrite],
    *,
    by: str,
    note: str = "",
    done: Callable[[int], None] = lambda _: None,
) -> list[Row]:
    """Write pages with their revisions; their rows as they are now.

    `done` is told after each batch how many are written. ComponentValueError: a page cannot be
    stored.
    """
    written: list[Row] = []
    for start in range(0, len(changes), BATCH):
        batch = changes[start : start + BATCH]
        written += _write(base, batch, by=by, note=note)
        done(len(written))
    return written


def remove_all(base: models.KnowledgeBase, rows: Sequence[Row], *, by: str) -> None:
    """Remove pages; their revisions stay."""
    for row in rows:
        row.revision += 1
    record(base.key, [(row, "removed") for row in rows], by=by, note="")
    for start in range(0, len(rows), BATCH):
        ids = [row.pk for row in rows[start : start + BATCH]]
        Row.objects.filter(pk__in=ids).delete()
    pages_changed(base, pages=-len(rows), characters=-sum(row.characters for row in rows))


def _write(
    base: models.KnowledgeBase, changes: Sequence[PageWrite], *, by: str, note: str
) -> list[Row]:
    characters = -sum(change.row.characters for change in changes if change.row)
    numbers = newest_numbers(base.key, (named(change.page.name) for change in changes))
    rows = [_filled(base, change, numbers) for change in changes]
    new = [row for row in rows if row.pk is None]
    Row.objects.bulk_create(new, batch_size=BATCH)
    old = [change.row for change in changes if change.row]
    for row in old:
        row.save()
    ids = [row.pk for row in old]
    models.KnowledgeAlias.objects.filter(page_id__in=ids).delete()
    models.KnowledgeLink.objects.filter(page_id__in=ids).delete()
    _name_and_link(base, changes, rows)
    index((row.pk, change.page) for row, change in zip(rows, changes, strict=True))
    told = zip(rows, (change.told for change in changes), strict=True)
    record(base.key, told, by=by, note=note)
    characters += sum(row.characters for row in rows)
    pages_changed(base, pages=len(new), characters=characters)
    return rows


def _filled(
    base: models.KnowledgeBase, change: PageWrite, numbers: dict[tuple[str, str], int]
) -> Row:
    check_page(change.page)
    row = change.row or Row(base=base)
    for column, value in page_columns(change.page).items():
        setattr(row, column, value)
    row.revision = 1 + numbers.get(named(change.page.name), 0)
    return row


def _name_and_link(
    base: models.KnowledgeBase, changes: Sequence[PageWrite], rows: Sequence[Row]
) -> None:
    aliases: list[tuple[Any, ...]] = []
    links: list[tuple[Any, ...]] = []
    for change, row in zip(changes, rows, strict=True):
        page, ids = change.page, (base.pk, row.pk)
        aliases += [(*ids, *named(alias)) for alias in alias_names(page.meta, page.name)]
        for kind, targets in (("link", links_of(page.body)), ("requires", page.meta.requires)):
            links += [
                (*ids, kind, place, target.namespace, target.title, target.folded)
                for place, target in enumerate(targets)
            ]
    _insert(models.KnowledgeAlias, ("base_id", "page_id", "namespace", "folded"), aliases)
    _insert(models.KnowledgeLink, _LINK_COLUMNS, links)


def _insert(model: Any, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert rows past the ORM, which takes ten times as long; an import has a million links."""
    quote = connection.ops.quote_name
    names = ", ".join(map(quote, columns))
    marks = ", ".join(["%s"] * len(columns))
    into = f"INSERT INTO {quote(model._meta.db_table)} ({names})"
    with connection.cursor() as cursor:
        cursor.executemany(f"{into} VALUES ({marks})", rows)
