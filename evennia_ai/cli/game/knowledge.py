"""Knowledge bases of a game, for the command line: folders in and out, and a search.

Imported after `evennia_ai.cli.game.folder.opened_game` alone, because the store needs Django.
"""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from evennia_ai.errors import FormatError
from evennia_ai.foreign.documents import Progress
from evennia_ai.knowledge.backends import Hit
from evennia_ai.knowledge.pages.files import file_of, read_folder
from evennia_ai.knowledge.pages.markup import write_page
from evennia_ai.knowledge.pages.page import BaseInfo, Page
from evennia_ai.private_files import FOLDER_OF_OWNER
from evennia_ai.store.knowledge import page_imports
from evennia_ai.store.knowledge import pages as store
from evennia_ai.store.knowledge.backend import DatabaseBackend
from evennia_ai.store.knowledge.knowledge_bases import get_base
from evennia_ai.store.knowledge.page_imports import TOLD, FolderPlan

_ALL = 10**15


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenIn:
    """What became of an import: titles by what happens to them, and how many stay as they are."""

    base: str
    names: Mapping[str, Sequence[str]]
    same: int


def taken_in(
    path: Path, *, key: str | None, dry_run: bool, remove: bool, by: str, progress: Progress
) -> TakenIn:
    """Import a folder, all of it or nothing; ImportProblems names every wrong file."""
    progress("files", 0, 1)
    folder = read_folder(path, key=key or "")
    plan = page_imports.plan_folder(folder, folder_name=path.resolve().name)
    if not dry_run:
        page_imports.import_folder(
            plan,
            by=by,
            remove=remove,
            progress=lambda done, total: progress("pages", done, total),
        )
    return _taken_in(plan)


def found(key: str, words: str, *, most: int) -> Sequence[Hit]:
    """The pages of a base that have these words; NotStoredError: there is no such base."""
    return DatabaseBackend(_in_database(key).key).search(words, limit=most)


def written_out(key: str, target: Path, *, progress: Progress) -> int:
    """Write a base into a folder that was not there, whole or not at all; how many pages.

    FormatError: the folder is there, or cannot be written. TitleError: the title of a page can be
    no file's name.
    """
    info = _in_database(key)
    pages = store.all_pages(info.key, most_characters=_ALL) or ()
    files = {file_of(page.name): page for page in pages}
    try:
        target.mkdir(mode=FOLDER_OF_OWNER)
        _write(target, info, files, progress)
    except FileExistsError as error:
        raise FormatError("knowledge", f"{target}: is there already; name a new folder") from error
    except OSError as error:
        shutil.rmtree(target, ignore_errors=True)
        problem = f"{target}: cannot be written: {error.strerror or error}"
        raise FormatError("knowledge", problem) from error
    return len(pages)


def _write(
    target: Path, info: BaseInfo, files: Mapping[PurePosixPath, Page], progress: Progress
) -> None:
    (target / "base.yaml").write_text(_base_text(info), encoding="utf-8")
    for done, (file, page) in enumerate(files.items()):
        path = target / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(write_page(page).encode())
        progress("pages", done, len(files))


def _base_text(info: BaseInfo) -> str:
    unsaid = BaseInfo(key="", name="")
    said: dict[str, Any] = {"key": info.key}
    for field in TOLD:
        value = getattr(info, field)
        if value != getattr(unsaid, field):
            said[field] = list(value) if isinstance(value, tuple) else value
    return yaml.safe_dump(said, allow_unicode=True, sort_keys=False)


def _taken_in(plan: FolderPlan) -> TakenIn:
    pages = plan.pages
    return TakenIn(
        base=plan.info.key,
        names={
            "new": [page.name.full for page in pages.new],
            "changed": [page.name.full for page in pages.changed],
            "gone": [name.full for name in pages.gone],
            "fields": list(plan.fields),
        },
        same=len(pages.same),
    )


def _in_database(key: str) -> BaseInfo:
    info = get_base(key)
    if info.backend != "database":
        raise FormatError(
            "knowledge",
            f"the pages of '{key}' are not in the game's database but in {info.backend}",
        )
    return info
