"""Standard output: JSON as UTF-8 bytes, text plain to a pipe and coloured to a terminal."""

import json
import re
import sys
from collections.abc import Iterable
from typing import Any, Final

# What JSON may hold as it is, but a terminal obeys or a reader of lines takes for a line's end.
_NOT_PLAIN: Final = re.compile("[\x7f-\x9f\u2028\u2029]")


def write_json(value: object, *, indent: int | None = None) -> None:
    """One JSON value and a line feed, flushed."""
    sys.stdout.flush()
    sys.stdout.buffer.write(json_bytes(value, indent=indent) + b"\n")
    sys.stdout.buffer.flush()


def json_bytes(value: Any, *, indent: int | None = None) -> bytes:
    """Strict JSON in UTF-8; where a text cannot be encoded, all of it with ASCII escapes."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    try:
        return _NOT_PLAIN.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode()
    except UnicodeEncodeError:
        return json.dumps(value, allow_nan=False, indent=indent).encode()


def write_lines(lines: Iterable[str]) -> None:
    """Lines of plain text, flushed."""
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def is_terminal() -> bool:
    """Whether a person is looking at standard output."""
    return sys.stdout.isatty()
