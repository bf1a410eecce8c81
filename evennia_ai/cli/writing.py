"""Files that the command line makes: never over one that is there, unless that is wanted."""

from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from evennia_ai.errors import FormatError
from evennia_ai.private_files import private


def write_file(path: Path, content: bytes, *, kind: str, force: bool) -> None:
    """Write the file; FormatError where it is there already without `force`, or cannot be written.

    `kind` is what it holds: "card", "book".
    """
    write_pieces(path, [content], kind=kind, force=force)


def write_pieces(path: Path, pieces: Iterable[bytes], *, kind: str, force: bool) -> None:
    """Write a file piece by piece, as `write_file`; one that is not finished is taken away."""
    try:
        with open(path, "wb" if force else "xb", opener=private) as file:
            _write(file, path, pieces)
    except FileExistsError as error:
        raise FormatError(kind, f"{path}: is there already; --force writes over it") from error
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise FormatError(kind, f"{path}: cannot be written: {reason}") from error


def _write(file: BinaryIO, path: Path, pieces: Iterable[bytes]) -> None:
    try:
        file.writelines(pieces)
        file.flush()
    except BaseException:
        path.unlink(missing_ok=True)
        raise
