"""What the command line writes: JSON as UTF-8, plain text to a pipe, colours to a terminal.

Bad input is reported in one short line, without control characters. A file is overwritten only with
`force`.
"""

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final

from evennia_ai.engine.errors import (
    BudgetError,
    ComponentValueError,
    DuplicateComponentError,
    EvenniaAIError,
    FormatError,
    StaticComponentError,
    TemplateError,
)
from evennia_ai.engine.text.columns import escape_controls
from evennia_ai.services.private_files import open_private

# Characters that JSON allows as they are, but that control a terminal or end a line for some
# readers.
_NOT_PLAIN: Final = re.compile("[\x7f-\x9f\u2028\u2029]")


def write_json(value: object, *, indent: int | None = None) -> None:
    """Write one JSON value and a line feed, and flush."""
    sys.stdout.flush()
    sys.stdout.buffer.write(json_bytes(value, indent=indent) + b"\n")
    sys.stdout.buffer.flush()


def json_bytes(value: Any, *, indent: int | None = None) -> bytes:
    """Return strict JSON in UTF-8, or in escaped ASCII if a text cannot be encoded."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    try:
        return _NOT_PLAIN.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode()
    except UnicodeEncodeError:
        return json.dumps(value, allow_nan=False, indent=indent).encode()


def write_lines(lines: Iterable[str]) -> None:
    """Write lines of plain text, and flush."""
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def is_terminal() -> bool:
    """True if a person is looking at standard output."""
    return sys.stdout.isatty()


MAX_LINE: Final = 600
BAD_INPUT: Final = 2
FINDING: Final = 1
_KINDS: Final[Mapping[type[Exception], str]] = {
    BudgetError: "budget",
    ComponentValueError: "component",
    DuplicateComponentError: "component",
    StaticComponentError: "component",
    TemplateError: "template",
    RecursionError: "nesting",
}


def refuse(error: Exception | str) -> int:
    """Write on standard error what is wrong. Return the exit status for it."""
    sys.stderr.write(f"{one_line(f'evennia-ai: {message_of(error)}')}\n")
    return BAD_INPUT


def refusal(error: EvenniaAIError | RecursionError) -> Mapping[str, Mapping[str, str]]:
    """Return the error as the object that `--jsonl` prints."""
    return {"error": {"kind": kind_of(error), "message": one_line(message_of(error))}}


def kind_of(error: Exception) -> str:
    """Return one word for the kind of error."""
    if isinstance(error, FormatError):
        return error.kind
    return _KINDS.get(type(error), "input")


def message_of(error: Exception | str) -> str:
    """Return what is wrong, in words."""
    return "is nested too deeply" if isinstance(error, RecursionError) else str(error)


def one_line(text: str) -> str:
    """Return `text` on one line, cut to `MAX_LINE` characters, with control characters escaped."""
    line = escape_controls(" ".join(text[: 4 * MAX_LINE].split()))
    return line if len(line) <= MAX_LINE else line[: MAX_LINE - 3] + "..."


@contextmanager
def said_of(path: Path) -> Iterator[None]:
    """Let format errors raised inside name this file."""
    try:
        yield
    except FormatError as error:
        raise FormatError(error.kind, f"{path}: {error.message}") from error


def write_file(path: Path, content: bytes, *, kind: str, force: bool) -> None:
    """Write a file. `kind` is what it holds: "card", "book".

    Raises:
        FormatError: It exists already and `force` is False, or it cannot be written.
    """
    write_pieces(path, [content], kind=kind, force=force)


def write_pieces(path: Path, pieces: Iterable[bytes], *, kind: str, force: bool) -> None:
    """Write a file from pieces, as `write_file`. An unfinished file is removed."""
    try:
        with open(path, "wb" if force else "xb", opener=open_private) as file:
            _write(file, path, pieces)
    except FileExistsError as error:
        raise FormatError(kind, f"{path}: exists already; --force overwrites it") from error
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
