"""Files that the command line makes: never over one that is there, unless that is wanted."""

from pathlib import Path

from evennia_ai.prompt.errors import FormatError


def write_file(path: Path, content: bytes, *, kind: str, force: bool) -> None:
    """Write the file; FormatError where it is there already without `force`, or cannot be written.

    `kind` is what it holds: "card", "book".
    """
    try:
        with path.open("wb" if force else "xb") as file:
            file.write(content)
    except FileExistsError as error:
        raise FormatError(kind, f"{path}: is there already; --force writes over it") from error
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise FormatError(kind, f"{path}: cannot be written: {reason}") from error
