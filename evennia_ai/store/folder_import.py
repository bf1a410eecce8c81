"""Import of a folder: its base and its pages, as a plan first and then in one transaction.

A folder says of its base what differs from a folder without `base.yaml`; everything else stays as
it is. So an import can restrict a base and never lifts a restriction.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from evennia_ai.knowledge.pages.files import PageFolder
from evennia_ai.knowledge.pages.pages import BaseInfo
from evennia_ai.store import page_import
from evennia_ai.store.knowledge_bases import base, check_base, save_base
from evennia_ai.store.page_columns import check_page
from evennia_ai.store.page_import import ImportPlan
from evennia_ai.store.state import KNOWLEDGE, changing

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
"""What a folder may say of its base."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderPlan:
    """What the import of a folder does: to the base, and to its pages.

    `info` is the base as it will be, `fields` what of it changes; `is_new` says that it is made.
    """

    info: BaseInfo
    fields: tuple[str, ...]
    is_new: bool
    pages: ImportPlan

    @property
    def changes(self) -> int:
        """How much would be written."""
        return self.pages.changes + len(self.fields) + self.is_new


def plan_folder(folder: PageFolder, *, folder_name: str) -> FolderPlan:
    """What importing a folder would do; nothing is written.

    `folder_name` is the name its base has where the folder says none. ComponentValueError: a page,
    or what is said of the base, cannot be stored.
    """
    given, was = folder.info, base(folder.info.key)
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
        pages = page_import.plan_pages(info.key, folder.pages)
    return FolderPlan(info=info, fields=fields, is_new=was is None, pages=pages)


def import_folder(
    wanted: FolderPlan,
    *,
    by: str,
    remove: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Do what a plan says, all of it or nothing.

    `remove` removes the pages that the folder has no more. PageConflictError: a page was changed
    since the plan was made.
    """
    with changing(KNOWLEDGE, f"importing knowledge base '{wanted.info.key}'"):
        if wanted.is_new or wanted.fields:
            save_base(wanted.info, by=by)
        page_import.import_pages(wanted.pages, by=by, remove=remove, progress=progress)
