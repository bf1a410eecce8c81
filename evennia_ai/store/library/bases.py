"""Knowledge bases between a game and the library: published as a folder of pages, taken as one.

What is taken goes through the bounds of a folder's import, and nothing of it is written where any
of it is refused. A page is read anew where its hash is another one; the others stay where they are.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from evennia_ai.engine.actors import Actor
from evennia_ai.engine.knowledge.pages.files import (
    PageFolder,
    file_of_page,
    page_of_file,
    read_files,
    write_base_file,
)
from evennia_ai.engine.knowledge.pages.markup import write_page
from evennia_ai.engine.knowledge.pages.page import BaseInfo, PageName, TitleError
from evennia_ai.engine.knowledge.pages.shared_locks import (
    is_shareable,
    shareable_base,
    shareable_page,
)
from evennia_ai.store.core.copies import Copy, copy_of, keep, refuse_copy
from evennia_ai.store.core.snapshots import KNOWLEDGE, changing
from evennia_ai.store.knowledge.copied_bases import as_published, said_of
from evennia_ai.store.knowledge.knowledge_bases import base, get_base, write_base
from evennia_ai.store.knowledge.page_imports import (
    ImportPlan,
    import_pages,
    plan_pages,
    written_hashes,
)
from evennia_ai.store.knowledge.page_rows import named
from evennia_ai.store.knowledge.pages import all_pages, own_base
from evennia_ai.store.library.entries import (
    Entry,
    LibraryError,
    Published,
    contents_of,
    hashes_of,
    put,
    reading,
)

MOST_WRITTEN: Final = 2_000
"""Pages that a game which is played takes at once; more are for the command line."""
_BASE: Final = "base.yaml"
_ALL: Final = 10**15


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedBase:
    """What became of a base that was published."""

    is_new: bool
    """Whether anything in the library is another than before."""
    pages: int
    kept: tuple[PageName, ...]
    """Pages that stayed at home, because of their locks."""


def publish_base(key: str, *, game: str, game_name: str, by: Actor) -> PublishedBase:
    """Put a base into the library as it is now.

    LibraryError: its lock means something else in another game, or the library cannot be written.
    CopyError: it comes from the library itself. TitleError: a page's title can be no file's name.
    """
    refuse_copy("base", key)
    info = get_base(key)
    own_base(key)
    shared = shareable_base(info)
    if shared is None:
        raise LibraryError(
            f"knowledge base '{key}' stays at home: its lock {info.locks} asks for more than"
            " permissions, and that means something else in another game; let view and search ask"
            " perm() alone"
        )
    pages = all_pages(key, most_characters=_ALL) or ()
    found = {page.name: shareable_page(page) for page in pages}
    files = {
        file_of_page(name).as_posix(): write_page(page).encode()
        for name, page in found.items()
        if page
    }
    hashes = _hashes(read_files(files, key=key, where=f"knowledge base {key}"))
    said = write_base_file(shared).encode()
    published = {
        _BASE: Published(sha256=sha256(said).hexdigest(), content=said),
        **{
            path: Published(sha256=hashes[named(page_of_file(path))], content=content)
            for path, content in files.items()
        },
    }
    return PublishedBase(
        is_new=put("base", key, published, game=game, game_name=game_name, by=by),
        pages=len(files),
        kept=tuple(name for name, page in found.items() if page is None),
    )


def take_base(entry: Entry, *, by: Actor, most: int | None = None) -> ImportPlan:
    """Take a base, or what changed of it, in one transaction; what became of its pages.

    `most` pages may change. LibraryError: the game has a base of this key of its own, or what the
    library holds is refused. ImportProblems: its files cannot be read as pages.
    """
    key = entry.name
    folder, unchanged = _read(entry, _known(key) if _here(key) else {})
    with changing(KNOWLEDGE, f"taking knowledge base '{key}' from the library", by=by):
        write_base(as_published(folder.info, _here(key)), by=by)
        plan = plan_pages(key, folder.pages, unchanged=unchanged)
        _refuse_many(entry, plan, most)
        import_pages(plan, by=by, note=f"from the library, by {entry.game_name}", remove=True)
        keep(copy_from(entry, by=by, said=said_of(folder.info)))
    return plan


def _here(key: str) -> BaseInfo | None:
    """What this game has taken before; LibraryError: it is its own."""
    here = base(key)
    if here is not None and copy_of("base", key) is None:
        raise LibraryError(
            f"this game has a knowledge base '{key}' of its own; remove it first (kb/remove {key})"
        )
    return here


def copy_from(entry: Entry, *, by: Actor, said: frozenset[str] = frozenset()) -> Copy:
    """What this game has taken, once it has taken this."""
    return Copy(
        kind=entry.kind,
        name=entry.name,
        sha256=entry.sha256,
        said=said,
        game_name=entry.game_name,
        is_gone=False,
        taken_by=by.name,
        taken_at=0.0,
    )


Named = tuple[str, str]


def _read(entry: Entry, known: Mapping[Named, str]) -> tuple[PageFolder, list[PageName]]:
    """The base and its changed pages as the library has them, and the names of the others."""
    with reading():
        hashes = hashes_of(entry)
        names = _names(entry, hashes)
        changed = {path for path, name in names.items() if known.get(named(name)) != hashes[path]}
        contents = contents_of(entry, [_BASE, *changed])
    unlike = LibraryError(f"{entry.typed} in the library is not what its list of files says")
    if sha256(contents.get(_BASE, b"")).hexdigest() != hashes[_BASE]:
        raise unlike
    folder = read_files(contents, key=entry.name, where=f"{entry.typed} in the library")
    if _hashes(folder) != {named(names[path]): hashes[path] for path in changed}:
        raise unlike
    _refuse_locks(entry, folder)
    return folder, [name for path, name in names.items() if path not in changed]


def _names(entry: Entry, hashes: Mapping[str, str]) -> dict[str, PageName]:
    """The pages that the files hold, by the places of the files."""
    try:
        names = {path: page_of_file(path) for path in hashes if path != _BASE}
        places = {path: file_of_page(name).as_posix() for path, name in names.items()}
    except TitleError as error:
        raise LibraryError(f"{entry.typed} in the library is refused: {error}") from error
    wrong = next((path for path, place in places.items() if path != place), None)
    if wrong is not None or _BASE not in hashes:
        raise LibraryError(f"{entry.typed} in the library is no folder of pages: {wrong or _BASE}")
    return names


def _refuse_locks(entry: Entry, folder: PageFolder) -> None:
    """LibraryError where a lock asks for what is another thing in another game."""
    locks = {"the base": folder.info.locks}
    locks |= {f"page '{page.name}'": page.locks for page in folder.pages}
    for whose, said in locks.items():
        if not is_shareable(said):
            raise LibraryError(
                f"{entry.typed} in the library is refused: the lock {said} of {whose} asks for"
                " more than permissions"
            )


def _refuse_many(entry: Entry, plan: ImportPlan, most: int | None) -> None:
    count = plan.changes + len(plan.gone)
    if most is not None and count > most:
        raise LibraryError(
            f"{entry.typed} has {count} pages that are new, changed or gone, and the game would be"
            f" slow while they are written: type evennia-ai library use {entry.typed} where the"
            f" game is. At most {most} are taken here"
        )


def _known(key: str) -> dict[Named, str]:
    return {name: _hash(*said) for name, said in written_hashes(key).items()}


def _hashes(folder: PageFolder) -> dict[Named, str]:
    return {named(page.name): _hash(page.sha256, page.locks) for page in folder.pages}


def _hash(written: str, locks: str) -> str:
    return sha256(f"{written}\0{locks}".encode()).hexdigest() if locks else written
