"""Text of a file -> plain values: strict JSON and safe YAML.

Both refuse what would pass in silence otherwise: keys that come twice, numbers that are none,
nesting without end. YAML also refuses aliases, which a small file can multiply into a huge one.
"""

from pathlib import Path
from typing import Any, Final

from evennia_ai.errors import FormatError
from evennia_ai.foreign.strict_json import parse_json
from evennia_ai.foreign.strict_yaml import yaml_values

MAX_BYTES: Final = 32 * 1024 * 1024


def read_document(path: Path, *, kind: str) -> Any:
    """The values of a `.json` file, or of any other file as YAML; FormatError where it is neither.

    `kind` says what the file was taken for: "scenario", "card", "book".
    """
    text = read_text(path, kind=kind)
    if path.suffix.lower() == ".json":
        return json_values(text, kind=kind, where=str(path))
    return yaml_values(text, kind=kind, where=str(path))


def read_bytes(path: Path, *, kind: str) -> bytes:
    """The bytes of a file; FormatError for one that cannot be read or is too large."""
    try:
        with path.open("rb") as file:  # a device has no size and may have no end
            content = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise FormatError(kind, f"{path}: cannot be read: {reason}") from error
    if len(content) > MAX_BYTES:
        raise FormatError(kind, f"{path}: the file is larger than {MAX_BYTES} bytes")
    return content


def read_text(path: Path, *, kind: str) -> str:
    """The text of a UTF-8 file, without its byte order mark."""
    return decoded(read_bytes(path, kind=kind), kind=kind, where=str(path))


def decoded(data: bytes, *, kind: str, where: str) -> str:
    """`data` as UTF-8 text."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(kind, f"{where}: is no UTF-8 text (byte {error.start})") from error


def json_values(text: str, *, kind: str, where: str) -> Any:
    """The values of strict JSON."""
    values, twice = parse_json(text, kind=kind, where=where)
    if twice:
        raise FormatError(kind, f"{where}: {twice[0].partition(';')[0]}; leave one out")
    return values
