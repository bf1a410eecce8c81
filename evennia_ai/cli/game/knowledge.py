"""`evennia-ai knowledge`: import, search and export the knowledge bases of a game."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

from evennia_ai.cli.game import machine_owner
from evennia_ai.cli.output import BAD_INPUT, refuse, write_json, write_lines
from evennia_ai.cli.terminal import shown_progress
from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.foreign.documents import Progress
from evennia_ai.engine.knowledge.pages.files import (
    ImportProblems,
    file_of_page,
    read_folder,
    write_base_file,
)
from evennia_ai.engine.knowledge.pages.markup import write_page
from evennia_ai.engine.knowledge.pages.page import BaseInfo, Hit, Page
from evennia_ai.engine.text.columns import WIDTH, clip_text, escape_controls, wrap_text
from evennia_ai.services.private_files import FOLDER_OF_OWNER
from evennia_ai.store.knowledge import page_imports
from evennia_ai.store.knowledge import pages as store
from evennia_ai.store.knowledge.backend import DatabaseBackend
from evennia_ai.store.knowledge.knowledge_bases import get_base

_PASSAGE_LINES: Final = 3
_MOST_NAMES: Final = 20
_ALL = 10**15


@dataclass(frozen=True, slots=True, kw_only=True)
class _TakenIn:
    """The result of an import: the titles that changed, by kind, and how many did not."""

    base: str
    names: Mapping[str, Sequence[str]]
    same: int


def take_in(
    path: Path, source: Path, *, key: str | None, dry_run: bool, remove: bool, as_json: bool
) -> int:
    """Store the pages of a folder in the game, all of them or none.

    The same folder imported again changes nothing. A dry run only prints what would change.
    """
    try:
        with shown_progress() as progress:
            done = _taken_in(path, key, dry_run=dry_run, remove=remove, progress=progress)
    except ImportProblems as error:
        for problem in error.problems:
            refuse(f"{source}/{problem}")
        return BAD_INPUT
    if as_json:
        write_json(_object(done, dry_run=dry_run), indent=2)
    else:
        write_lines(_lines(done, source, dry_run=dry_run))
    return 0


def search(key: str, words: str, *, most: int, as_json: bool) -> int:
    """Print the pages of a knowledge base that contain these words, the best first."""
    hits = DatabaseBackend(_in_database(key).key).search(words, limit=most)
    if as_json:
        write_json({"hits": [_hit_object(hit) for hit in hits]}, indent=2)
    else:
        write_lines(line for hit in hits for line in _hit_lines(hit))
    return 0


def export(key: str, path: Path, target: Path) -> int:
    """Write the pages of a knowledge base into a new folder, which can be imported again."""
    with shown_progress() as progress:
        count = _written_out(key, path, progress=progress)
    pages = "1 page" if count == 1 else f"{count} pages"
    write_lines([escape_controls(f"{target}: knowledge base {key}, {pages}")])
    return 0


def _lines(done: _TakenIn, source: Path, *, dry_run: bool) -> Iterator[str]:
    """Yield lines that say what an import did, or would do."""
    for kind, names in done.names.items():
        for name in names[:_MOST_NAMES]:
            yield clip_text(escape_controls(f"{kind:8} {name}"), WIDTH)
        if len(names) > _MOST_NAMES:
            yield f"{kind:8} and {len(names) - _MOST_NAMES} more"
    counts = ", ".join(f"{len(names)} {kind}" for kind, names in done.names.items())
    end = "; nothing was written (--dry-run)" if dry_run else ""
    yield escape_controls(
        f"{source}: knowledge base {done.base}: {counts}, {done.same} unchanged{end}"
    )


def _object(done: _TakenIn, *, dry_run: bool) -> dict[str, Any]:
    names = {kind: list(names) for kind, names in done.names.items()}
    return {"base": done.base, "dry_run": dry_run, **names, "same": done.same}


def _hit_lines(hit: Hit) -> Iterator[str]:
    yield clip_text(escape_controls(hit.page.name.full), WIDTH)
    for line in wrap_text(" ".join(hit.passage.split()), WIDTH - 4)[:_PASSAGE_LINES]:
        yield f"    {line}"


def _hit_object(hit: Hit) -> dict[str, Any]:
    page = hit.page
    return {
        "page": page.name.full,
        "revision": page.revision,
        "score": round(hit.score, 4),
        "passage": hit.passage,
    }


def _taken_in(
    path: Path, key: str | None, *, dry_run: bool, remove: bool, progress: Progress
) -> _TakenIn:
    """Import a folder, whole or not at all. ImportProblems names every wrong file."""
    progress("files", 0, 1)
    folder = read_folder(path, key=key or "")
    plan = page_imports.plan_folder(folder, folder_name=path.resolve().name)
    if not dry_run:
        page_imports.import_folder(
            plan,
            by=machine_owner(),
            remove=remove,
            progress=lambda done, total: progress("pages", done, total),
        )
    pages = plan.pages
    return _TakenIn(
        base=plan.info.key,
        names={
            "new": [page.name.full for page in pages.new],
            "changed": [page.name.full for page in pages.changed],
            "gone": [name.full for name in pages.gone],
            "fields": list(plan.fields),
        },
        same=len(pages.same),
    )


def _written_out(key: str, target: Path, *, progress: Progress) -> int:
    """Write a knowledge base into a new folder, whole or not at all. Return its number of pages.

    Raises:
        FormatError: The folder exists already, or cannot be written.
        TitleError: The title of a page cannot be a file name.
    """
    info = _in_database(key)
    pages = store.all_pages(info.key, most_characters=_ALL) or ()
    files = {file_of_page(page.name): page for page in pages}
    try:
        target.mkdir(mode=FOLDER_OF_OWNER)
        _write(target, info, files, progress)
    except FileExistsError as error:
        raise FormatError("knowledge", f"{target}: exists already; name a new folder") from error
    except OSError as error:
        shutil.rmtree(target, ignore_errors=True)
        problem = f"{target}: cannot be written: {error.strerror or error}"
        raise FormatError("knowledge", problem) from error
    return len(pages)


def _write(
    target: Path, info: BaseInfo, files: Mapping[PurePosixPath, Page], progress: Progress
) -> None:
    (target / "base.yaml").write_text(write_base_file(info), encoding="utf-8")
    for done, (file, page) in enumerate(files.items()):
        path = target / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(write_page(page).encode())
        progress("pages", done, len(files))


def _in_database(key: str) -> BaseInfo:
    info = get_base(key)
    if info.backend != "database":
        raise FormatError(
            "knowledge",
            f"the pages of '{key}' are not in the game's database but in {info.backend}",
        )
    return info
