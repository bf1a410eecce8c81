"""The one folder that builders' files come from and go to: cards and lorebooks, as JSON."""

import re
from pathlib import Path
from typing import Final

from evennia_ai.commands.strict import CommandError
from evennia_ai.conf import conf

_MOST_FILES: Final = 40
_MOST_COPIES: Final = 1000
_BYTES_PER_CHARACTER: Final = 4
_UNSAFE: Final = re.compile(r"[^a-z0-9_-]+")


def file_in(folder: Path, name: str, *, command: str) -> bytes:
    """The bytes of the file `name` in `folder`, and of no other file whatever its name says.

    `command` is what lists the files, for whoever names one that is not there.
    """
    path = _path_in(folder, name, command=command)
    limit = conf().max_source_characters * _BYTES_PER_CHARACTER
    if path.stat().st_size > limit:
        raise CommandError(
            f"{name} has {path.stat().st_size} bytes and the limit is {limit}"
            " (EVENNIA_AI_MAX_SOURCE_CHARACTERS); nothing was imported."
        )
    try:
        content = path.read_bytes()
    except OSError as error:
        raise CommandError(
            f"{name} cannot be read: {error.strerror}; nothing was imported."
        ) from error
    characters = len(content.decode("utf-8", "replace"))
    if characters > conf().max_source_characters:  # told before the work of reading it
        raise CommandError(
            f"{name} has {characters} characters and the limit is {conf().max_source_characters}"
            " (EVENNIA_AI_MAX_SOURCE_CHARACTERS); nothing was imported."
        )
    return content


def offered(folder: Path) -> list[str]:
    """The files of the folder."""
    found = sorted(p.name for p in folder.glob("*.json")) if folder.is_dir() else []
    if not found:
        return [f"There are no card files (.json) in {folder} (EVENNIA_AI_CARD_FOLDER)."]
    more = [f"  and {len(found) - _MOST_FILES} more"] if len(found) > _MOST_FILES else []
    return [f"Card files in {folder}:", *(f"  {name}" for name in found[:_MOST_FILES]), *more]


def new_file(folder: Path, name: str, text: str) -> Path:
    """Write `text` into a new file that is named after `name`; no file is ever written over."""
    plain = _UNSAFE.sub("-", name.lower()).strip("-")[:80] or "lorebook"
    for number in range(1, _MOST_COPIES):
        path = folder / (f"{plain}.json" if number == 1 else f"{plain}-{number}.json")
        try:
            with path.open("x", encoding="utf-8", newline="") as file:
                file.write(text)
        except FileExistsError:
            continue
        except OSError as error:
            raise CommandError(
                f"Nothing can be written into {folder} (EVENNIA_AI_CARD_FOLDER): {error.strerror}."
            ) from error
        return path
    raise CommandError(f"There are {_MOST_COPIES} files like {plain}.json in {folder} already.")


def _path_in(folder: Path, name: str, *, command: str) -> Path:
    file_name = name if Path(name).suffix else f"{name}.json"
    plain = Path(file_name).name == file_name and file_name.isprintable()
    path = folder / file_name
    if not plain or "\\" in file_name or not _is_file(path):
        raise CommandError(
            f"There is no card file '{name}' in the card folder; {command} lists those there are."
        )
    if path.resolve().parent != folder.resolve():
        raise CommandError(f"'{name}' leads out of the card folder; nothing was imported.")
    return path


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # no file has so long a name
        return False
