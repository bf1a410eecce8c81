"""The folders for files of builders: the card folder (also for lorebooks) and the preset folder.

A name that a builder types can only mean a file in its folder. No file is overwritten.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from django.conf import settings

from evennia_ai.commands.base import CommandError, and_more
from evennia_ai.engine.text.columns import escape_controls
from evennia_ai.services.private_files import open_private

JSON: Final = (".json",)


class FolderKind(NamedTuple):
    """A folder for files of builders, in the words of its messages."""

    holds: str
    setting: str


CARDS: Final = FolderKind("card", "EVENNIA_AI_CARD_FOLDER")
PRESETS: Final = FolderKind("preset", "EVENNIA_AI_PRESET_FOLDER")
_MOST_FILES: Final = 40
_MOST_COPIES: Final = 1000
_BYTES_PER_CHARACTER: Final = 4
_UNSAFE: Final = re.compile(r"[^a-z0-9_-]+")


def text_file(path: Path, name: str, *, most_characters: int) -> bytes:
    """Return the bytes of a text file; `name` is what the builder typed.

    Any thread may call this.
    """
    limit = most_characters * _BYTES_PER_CHARACTER
    if (size := size_of(path)) > limit:
        raise CommandError(
            f"{name} has {size} bytes and the limit is {limit}"
            " (EVENNIA_AI_MAX_SOURCE_CHARACTERS); nothing was imported."
        )
    content = bytes_of(path, most=limit)
    characters = len(content.decode("utf-8", "replace"))
    # Refuse a long file before the expensive work of parsing it.
    if characters > most_characters:
        raise CommandError(
            f"{name} has {characters} characters and the limit is {most_characters}"
            " (EVENNIA_AI_MAX_SOURCE_CHARACTERS); nothing was imported."
        )
    return content


def path_in(
    folder: Path,
    name: str,
    *,
    command: str,
    suffixes: Sequence[str] = JSON,
    kind: FolderKind = CARDS,
) -> Path:
    """Return the path of the file `name` in `folder`, with or without its suffix.

    `command` is what lists the files. A message names it if the file does not exist.
    """
    file_name = _with_suffix(folder, name, suffixes)
    plain = Path(file_name).name == file_name and file_name.isprintable()
    path = folder / file_name
    if plain and not _is_file(path) and _is_file(folder / name):
        kinds = ", ".join(suffixes)
        raise CommandError(
            f"'{name}' exists, but only files that end in {kinds} are read; rename it. Nothing was"
            " imported."
        )
    if not plain or "\\" in file_name or not _is_file(path):
        raise CommandError(
            f"There is no {kind.holds} file '{name}' in the {kind.holds} folder; {command} lists"
            " them."
        )
    if path.resolve().parent != folder.resolve():
        raise CommandError(f"'{name}' leads out of the {kind.holds} folder; nothing was imported.")
    return path


def bytes_of(path: Path, *, most: int) -> bytes:
    """Return the first `most` bytes of a file, and one byte more if the file is longer."""
    try:
        with path.open("rb") as file:
            return file.read(most + 1)
    except OSError as error:
        raise _unreadable(path, error) from error


def size_of(path: Path) -> int:
    """Return the size of a file in bytes."""
    try:
        return path.stat().st_size
    except OSError as error:
        raise _unreadable(path, error) from error


def offered(folder: Path, *, suffixes: Sequence[str] = JSON, kind: FolderKind = CARDS) -> list[str]:
    """Return lines that list the files of these kinds in the folder."""
    # A folder that does not exist or cannot be read has no files.
    there = folder.glob("*")
    found = sorted(escape_controls(path.name) for path in there if path.suffix.lower() in suffixes)
    if not found:
        kinds = ", ".join(suffixes)
        return [
            f"There are no {kind.holds} files ({kinds}) in {shown_path(folder)} ({kind.setting})."
        ]
    rows = [f"  {name}" for name in found]
    return [
        f"{kind.holds.capitalize()} files in {shown_path(folder)}:",
        *and_more(rows, most=_MOST_FILES),
    ]


def shown_path(path: Path) -> str:
    """Return a path for builders: relative to the game's folder.

    Outside of the game's folder only the last part is shown, so no path of the machine gets out.
    """
    game = Path(settings.GAME_DIR).resolve()
    whole = path if path.is_absolute() else game / path
    inside = whole.resolve().is_relative_to(game)
    return whole.resolve().relative_to(game).as_posix() if inside else whole.name


def new_file(
    folder: Path,
    name: str,
    content: bytes,
    *,
    suffix: str = ".json",
    kind: FolderKind = CARDS,
) -> Path:
    """Write `content` into a new file that is named after `name`. No file is overwritten."""
    where = shown_path(folder)
    plain = _UNSAFE.sub("-", name.lower()).strip("-")[:80] or "unnamed"
    for number in range(1, _MOST_COPIES):
        path = folder / (f"{plain}{suffix}" if number == 1 else f"{plain}-{number}{suffix}")
        try:
            with open(path, "xb", opener=open_private) as file:
                _write(file, path, content)
        except FileExistsError:
            continue
        except OSError as error:
            raise CommandError(
                f"Nothing can be written into {where} ({kind.setting}): {error.strerror}."
            ) from error
        return path
    raise CommandError(f"There are {_MOST_COPIES} files like {plain}{suffix} in {where} already.")


def _unreadable(path: Path, error: OSError) -> CommandError:
    return CommandError(f"{path.name} cannot be read: {error.strerror}; nothing was imported.")


def _write(file: BinaryIO, path: Path, content: bytes) -> None:
    """Write all of the content, or remove the unfinished file."""
    try:
        file.write(content)
        file.flush()
    except OSError:
        path.unlink(missing_ok=True)
        raise


def _with_suffix(folder: Path, name: str, suffixes: Sequence[str]) -> str:
    """Return the file's name, with the first suffix that names an existing file if it has none."""
    if "/" in name or Path(name).suffix.lower() in suffixes:
        return name
    known = [f"{name}{suffix}" for suffix in suffixes]
    found = [file_name for file_name in known if _is_file(folder / file_name)]
    if len(found) > 1:
        raise CommandError(f"'{name}' could be {' or '.join(found)}; write which one.")
    return found[0] if found else known[0]


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    # The system refuses a name that is too long or has a null character.
    except (OSError, ValueError):
        return False
