"""Entries of the library: what games published, as files, read and written in its own database.

Nothing here waits without end, and nothing here is for a turn: whoever asks is a thread that nobody
waits for, or the command line. The tables are made by the first game that publishes. A game that
may only read the library needs no more than the right to read two tables.
"""

import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from django.db import DatabaseError, connections, transaction
from django.db.models.functions import Length

from evennia_ai.engine.actors import Actor
from evennia_ai.engine.errors import EvenniaAIError
from evennia_ai.engine.knowledge.pages.files import MAX_BYTES, MAX_FILES
from evennia_ai.models import LibraryEntry, LibraryFile
from evennia_ai.services.settings.database import LIBRARY
from evennia_ai.store.core.copies import Kind, typed
from evennia_ai.store.core.reading import ReadingTooLongError, limited
from evennia_ai.store.core.snapshots import value_of

FORMAT: Final = 1
"""How entries are written here; one of another format is left alone."""
READING_SECONDS: Final = 60.0
_LOCK_MILLISECONDS: Final = 5_000
_AT_ONCE: Final = 200
MOST_ENTRIES: Final = 1_000


class LibraryError(EvenniaAIError):
    """The library did not give, or take, what was asked; the text says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A base or a card that a game published."""

    kind: Kind
    name: str
    format: int
    sha256: str
    """That of the list of its files."""
    game: str
    """The random name of the game that published it."""
    game_name: str
    published_by: str
    published_at: float
    """In epoch seconds."""

    @property
    def typed(self) -> str:
        """How commands name it."""
        return typed(self.kind, self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A file as it is published."""

    sha256: str
    """That of the page in it, with its lock, or of its bytes where it holds none."""
    content: bytes


def is_named() -> bool:
    """Whether the settings name a library."""
    return LIBRARY in connections.settings


@contextmanager
def reading(*, seconds: float = READING_SECONDS) -> Iterator[None]:
    """Read the library as it is at one moment, for so long; LibraryError: it cannot be read."""
    database = _database()
    _refuse_missing_file(database)
    try:
        with limited(database, seconds=seconds):
            yield
    except ReadingTooLongError as error:
        raise LibraryError(
            f"the library took longer than {seconds:g} s and was given up"
        ) from error
    except DatabaseError as error:
        raise LibraryError(f"the library cannot be read: {_one_line(error)}") from error


def entries() -> tuple[Entry, ...]:
    """All entries, bases first, by their names; while the library is read."""
    if not _has_tables(_database()):
        return ()
    rows = LibraryEntry.objects.using(LIBRARY).order_by("kind", "name")[: MOST_ENTRIES + 1]
    found = tuple(value_of(Entry, row) for row in rows)
    if len(found) > MOST_ENTRIES:
        raise LibraryError(f"the library has more than {MOST_ENTRIES} entries; make another one")
    return found


def entry(kind: Kind, name: str) -> Entry:
    """The entry of this name, while the library is read; LibraryError names those there are."""
    found = entries()
    for one in found:
        if (one.kind, one.name) == (kind, name):
            return one
    there = ", ".join(one.typed for one in found[:20]) or "nothing"
    raise LibraryError(f"the library has no {typed(kind, name)}; it has {there}")


def hashes_of(one: Entry) -> Mapping[str, str]:
    """The files of an entry by their places, with their hashes; while the library is read.

    LibraryError: it was written by another version, is too large, or was published meanwhile.
    """
    if one.format != FORMAT:
        raise LibraryError(
            f"{one.typed} is in the library as another version of evennia_ai writes it (format"
            f" {one.format}, here {FORMAT}); let games of one version share"
        )
    rows = _files_of(one).values_list("path", "sha256")[: MAX_FILES + 1]
    found = dict(rows.iterator())
    if len(found) > MAX_FILES:
        raise LibraryError(f"{one.typed} has more than {MAX_FILES} files in the library; split it")
    if list_hash(found) != one.sha256:
        raise LibraryError(f"{one.typed} is being published just now; ask again")
    return found


def contents_of(
    one: Entry, paths: Collection[str], *, most_bytes: int = MAX_BYTES
) -> dict[str, bytes]:
    """The files at these places, while the library is read; LibraryError: one is too large."""
    rows = _files_of(one)
    large = rows.annotate(length=Length("content")).filter(length__gt=most_bytes)
    if path := large.values_list("path", flat=True).first():
        raise LibraryError(f"{path} of {one.typed} in the library has more than {most_bytes} bytes")
    found: dict[str, bytes] = {}
    wanted = sorted(paths)
    for start in range(0, len(wanted), _AT_ONCE):
        some = rows.filter(path__in=wanted[start : start + _AT_ONCE])
        found.update(
            (path, bytes(content)) for path, content in some.values_list("path", "content")
        )
    return found


def put(
    kind: Kind,
    name: str,
    files: Mapping[str, Published],
    *,
    game: str,
    game_name: str,
    by: Actor,
) -> bool:
    """Publish an entry, in place of what this game published; whether anything is new in it.

    LibraryError: another game published it, or the library cannot be written.
    NotPermittedError: `by` may not publish anything any more.
    """
    by.check(f"publishing {typed(kind, name)}")
    listed = list_hash({path: file.sha256 for path, file in files.items()})
    with _writing():
        rows = LibraryEntry.objects.using(LIBRARY)
        row = rows.select_for_update().filter(kind=kind, name=name).first()
        if row is not None and row.game != game:
            raise LibraryError(
                f"{typed(kind, name)} is in the library already, and the game {row.game_name}"
                " published it. Give yours another name, or take that one out first:"
                f" evennia-ai library remove {typed(kind, name)}"
            )
        if row is not None and (row.sha256, row.format) == (listed, FORMAT):
            return False
        row = row or LibraryEntry(kind=kind, name=name, game=game)
        row.format, row.sha256, row.game_name = FORMAT, listed, game_name
        row.published_by, row.published_at = by.name, time.time()
        row.save(using=LIBRARY)
        _put_files(row, files)
    return True


def remove(kind: Kind, name: str, *, by: Actor) -> None:
    """Take an entry out of the library; games that took it keep it.

    LibraryError: it is not there, or the library cannot be written. NotPermittedError: `by` may
    not take it out.
    """
    by.check(f"taking {typed(kind, name)} out of the library")
    with _writing():
        _, gone = LibraryEntry.objects.using(LIBRARY).filter(kind=kind, name=name).delete()
        if not gone:
            entry(kind, name)


def list_hash(hashes: Mapping[str, str]) -> str:
    """The hash of a list of files."""
    lines = (f"{path}\0{hashes[path]}\n" for path in sorted(hashes))
    return sha256("".join(lines).encode("utf-8", "surrogatepass")).hexdigest()


def _put_files(row: LibraryEntry, files: Mapping[str, Published]) -> None:
    """Write the files that changed, and take out those that are gone."""
    known = LibraryFile.objects.using(LIBRARY).filter(entry=row)
    same = {
        path
        for path, known_sha256 in known.values_list("path", "sha256")
        if path in files and files[path].sha256 == known_sha256
    }
    old = [pk for pk, path in known.values_list("pk", "path") if path not in same]
    for start in range(0, len(old), _AT_ONCE):
        known.filter(pk__in=old[start : start + _AT_ONCE]).delete()
    new = (
        LibraryFile(entry=row, path=path, sha256=file.sha256, content=file.content)
        for path, file in files.items()
        if path not in same
    )
    LibraryFile.objects.using(LIBRARY).bulk_create(new, batch_size=_AT_ONCE)


@contextmanager
def _writing() -> Iterator[None]:
    """A transaction in the library, which has its tables; LibraryError: it cannot be written."""
    database = _database()
    try:
        if not _has_tables(database):
            with database.schema_editor() as editor:
                editor.create_model(LibraryEntry)
                editor.create_model(LibraryFile)
        with transaction.atomic(using=LIBRARY):
            if database.vendor == "postgresql":
                with database.cursor() as cursor:
                    cursor.execute(f"SET LOCAL lock_timeout = {_LOCK_MILLISECONDS}")
            yield
    except DatabaseError as error:
        raise LibraryError(
            f"the library cannot be written, nothing was changed: {_one_line(error)}"
        ) from error


def _database() -> Any:
    if not is_named():
        raise LibraryError(
            "this game has no library; docs/build/library.md tells how games share one, by"
            " a line of the settings"
        )
    return connections[LIBRARY]


def _refuse_missing_file(database: Any) -> None:
    """Reading makes no file where there is none, as on a disk that is not there just now."""
    name = str(database.settings_dict["NAME"])
    if database.vendor == "sqlite" and not Path(name).is_file():
        raise LibraryError("the library is not there: its file is missing, which publishing makes")


def _has_tables(database: Any) -> bool:
    return LibraryEntry._meta.db_table in database.introspection.table_names()


def _files_of(one: Entry) -> Any:
    files = LibraryFile.objects.using(LIBRARY)
    return files.filter(entry__kind=one.kind, entry__name=one.name)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
