"""Import pages, or a folder with its base: first make a plan, then carry it out in one transaction.

Pages that already have the imported text are not touched, so a second import changes nothing. Pages
of the base that the import lacks are listed; only `remove` removes them. A folder sets those fields
of its base that differ from the defaults, and leaves the others. So an import can restrict a base,
but it can never lift a restriction.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from evennia_ai import models
from evennia_ai.engine.actors import Actor
from evennia_ai.engine.errors import ComponentValueError
from evennia_ai.engine.knowledge.pages.files import PageFolder
from evennia_ai.engine.knowledge.pages.page import BaseInfo, Page, PageName
from evennia_ai.store.core.snapshots import KNOWLEDGE, changing
from evennia_ai.store.knowledge.knowledge_bases import base_id, base_or_none, check_base, save_base
from evennia_ai.store.knowledge.page_rows import Named, Row, check_page, named, title_rows
from evennia_ai.store.knowledge.pages import (
    PageWrite,
    is_same,
    own_base,
    refuse_stale,
    remove_all,
    write_all,
)

Progress = Callable[[int, int], None]
"""A function that is called with the number of finished pages and the number of all pages."""

# The columns that a plan compares. Texts of pages are not loaded.
_COMPARED: Final = ("namespace", "title", "folded", "sha256", "locks", "revision", "characters")

TOLD: Final = (
    "name",
    "summary",
    "topics",
    "hint",
    "keywords",
    "restricted",
    "keeps_chunks",
    "direct_characters",
    "mediation",
    "locks",
)
"""The fields of a base that a folder may set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportPlan:
    """What an import of pages would do to a knowledge base."""

    base: str
    new: tuple[Page, ...] = ()
    changed: tuple[Page, ...] = ()
    """The pages that would be changed, each with the revision that it would replace."""
    same: tuple[PageName, ...] = ()
    gone: tuple[PageName, ...] = ()
    """The pages of the base that are not in the import."""
    gone_revisions: tuple[str, ...] = ()
    """The revisions of the pages in `gone`."""

    @property
    def changes(self) -> int:
        """The number of pages that would be written."""
        return len(self.new) + len(self.changed)


def plan_pages(base: str, pages: Sequence[Page]) -> ImportPlan:
    """Return what an import of these pages would do, without writing.

    Raises:
        NotStoredError: there is no such base.
        ComponentValueError: a page occurs twice or cannot be stored.
    """
    _refuse_twice(pages)
    rows = _rows(base)
    new: list[Page] = []
    changed: list[Page] = []
    same: list[PageName] = []
    for page in pages:
        check_page(page)
        row = rows.pop(named(page.name), None)
        if row is None:
            new.append(replace(page, revision=""))
        elif is_same(row, page):
            same.append(page.name)
        else:
            changed.append(replace(page, revision=str(row.revision)))
    gone = sorted((_name(row), str(row.revision)) for row in rows.values())
    return ImportPlan(
        base=base,
        new=tuple(new),
        changed=tuple(changed),
        same=tuple(same),
        gone=tuple(name for name, _ in gone),
        gone_revisions=tuple(revision for _, revision in gone),
    )


def import_pages(
    plan: ImportPlan,
    *,
    by: Actor,
    note: str = "imported",
    remove: bool = False,
    progress: Progress | None = None,
) -> ImportPlan:
    """Carry out a plan, completely or not at all, and return it.

    Args:
        remove: True if the pages in `gone` are removed.

    Raises:
        PageConflictError: a page was changed after the plan was made.
    """
    total = plan.changes + (len(plan.gone) if remove else 0)
    tell = progress or _nobody
    with changing(KNOWLEDGE, f"importing pages into knowledge base '{plan.base}'", by=by):
        known = own_base(plan.base)
        if plan.changes:
            changes = _changes(known, plan)
            write_all(known, changes, by=by, note=note, done=lambda done: tell(done, total))
        if remove and plan.gone:
            remove_all(known, _gone_rows(known, plan), by=by)
            tell(total, total)
    return plan


def _changes(known: models.KnowledgeBase, plan: ImportPlan) -> list[PageWrite]:
    pages = (*plan.new, *plan.changed)
    rows = title_rows(known.pk, (page.name for page in pages))
    for page in pages:
        refuse_stale(known.key, page.name, rows.get(named(page.name)), page.revision)
    return [PageWrite(page=page, row=rows.get(named(page.name))) for page in pages]


def _gone_rows(known: models.KnowledgeBase, plan: ImportPlan) -> list[Row]:
    rows = title_rows(known.pk, plan.gone, *_COMPARED)
    for name, revision in zip(plan.gone, plan.gone_revisions, strict=True):
        refuse_stale(known.key, name, rows.get(named(name)), revision)
    return [rows[named(name)] for name in plan.gone]


def _rows(base: str) -> dict[Named, Row]:
    rows = Row.objects.filter(base_id=base_id(base)).only(*_COMPARED)
    return {(row.namespace, row.folded): row for row in rows.iterator()}


def _refuse_twice(pages: Sequence[Page]) -> None:
    seen: set[Named] = set()
    for page in pages:
        if named(page.name) in seen:
            raise ComponentValueError("page", page.name.full, "only once in an import")
        seen.add(named(page.name))


def _name(row: Row) -> PageName:
    return PageName(namespace=row.namespace, title=row.title)


def _nobody(done: int, total: int) -> None:
    """Do nothing with a report of progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderPlan:
    """What an import of a folder would do to a knowledge base and its pages."""

    info: BaseInfo
    """The base after the import."""
    fields: tuple[str, ...]
    """The names of the base's fields that would change."""
    is_new: bool
    """True if the import would create the base."""
    pages: ImportPlan

    @property
    def changes(self) -> int:
        """The number of pages and fields that would be written."""
        return self.pages.changes + len(self.fields) + self.is_new


def plan_folder(folder: PageFolder, *, folder_name: str) -> FolderPlan:
    """Return what an import of a folder would do, without writing.

    Args:
        folder_name: The name of the knowledge base if the folder does not contain one.

    Raises:
        ComponentValueError: a page or the base cannot be stored.
    """
    given, was = folder.info, base_or_none(folder.info.key)
    unsaid = BaseInfo(key=given.key, name=folder_name)
    said = [field for field in TOLD if getattr(given, field) != getattr(unsaid, field)]
    now = was or unsaid
    info = replace(now, **{field: getattr(given, field) for field in said})
    fields = tuple(field for field in said if getattr(info, field) != getattr(now, field))
    check_base(info)
    if was is None:
        for page in folder.pages:
            check_page(page)
        pages = ImportPlan(base=info.key, new=tuple(replace(p, revision="") for p in folder.pages))
    else:
        pages = plan_pages(info.key, folder.pages)
    return FolderPlan(info=info, fields=fields, is_new=was is None, pages=pages)


def import_folder(
    wanted: FolderPlan,
    *,
    by: Actor,
    remove: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Carry out a plan completely or not at all.

    Args:
        remove: True if pages that the folder lacks are removed.

    Raises:
        PageConflictError: a page was changed after the plan was made.
    """
    with changing(KNOWLEDGE, f"importing knowledge base '{wanted.info.key}'", by=by):
        if wanted.is_new or wanted.fields:
            save_base(wanted.info, by=by)
        import_pages(wanted.pages, by=by, remove=remove, progress=progress)
