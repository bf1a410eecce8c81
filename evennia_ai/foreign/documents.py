"""Documents: the text of a file -> plain values, as strict JSON or safe YAML, and YAML for people.

Refused is what would pass in silence otherwise: keys that come twice, numbers that are none,
nesting without end, and YAML's aliases, which a small file can multiply into a huge one. Whoever
reads for long tells its progress: what is done now, and how much of it.
"""

import re
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

from evennia_ai.errors import FormatError
from evennia_ai.foreign.strict_json import check_plain, parse_json

# Line ends that YAML folds into blanks unless they are written as escapes.
_ODD_LINE_ENDS: Final = re.compile("[\r\x85\u2028\u2029]")
_BOOLEAN: Final = re.compile(r"(?:true|True|TRUE|false|False|FALSE)$")


def yaml_values(text: str, *, kind: str, where: str) -> Any:
    """The values of one safe YAML document."""
    import yaml

    try:
        values = yaml.load(text, Loader=_strict_loader())  # noqa: S506  (a SafeLoader)
    except yaml.YAMLError as error:
        raise FormatError(kind, f"{where}: is no YAML: {_in_one_line(error)}") from error
    except RecursionError as error:
        raise FormatError(kind, f"{where}: is nested too deeply; make it flatter") from error
    except (ValueError, ArithmeticError) as error:  # a number that Python does not make
        raise FormatError(kind, f"{where}: is no YAML: {error}") from error
    check_plain(values, kind=kind, where=where)
    return values


def yaml_text(values: dict[str, Any]) -> str:
    """Plain values as YAML for people, which `yaml_values` reads as the same values."""
    import yaml

    return str(
        yaml.dump(values, Dumper=_dumper(), allow_unicode=True, sort_keys=False, width=10**6)
    )


@cache
def _dumper() -> Any:
    """SafeDumper that keeps every line end as it is."""
    import yaml

    class Dumper(yaml.SafeDumper):
        pass

    def represent(dumper: Any, text: str) -> Any:
        style = '"' if _ODD_LINE_ENDS.search(text) else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    Dumper.add_representer(str, represent)
    return Dumper


@cache
def _strict_loader() -> Any:
    """SafeLoader that refuses aliases and keys that come twice.

    Dates stay text, and so do `no`, `off` and the like: only `true` and `false` are booleans.
    """
    import yaml

    class StrictLoader(yaml.SafeLoader):
        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                event = self.get_event()  # type: ignore[no-untyped-call]
                raise yaml.YAMLError(f"alias '*{event.anchor}' is not allowed: write it out")
            return super().compose_node(parent, index)

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            made = super().construct_mapping(node, deep=deep)
            if len(made) < len(node.value):
                keys = [getattr(key, "value", None) for key, _ in node.value]
                times = Counter(str(key) for key in keys)
                twice = next((key for key in keys if times[str(key)] > 1), keys[0])
                line = node.start_mark.line + 1
                raise yaml.YAMLError(f"key '{twice}' is there twice in the block of line {line}")
            return made

    StrictLoader.yaml_implicit_resolvers = {
        first: [
            (tag, _BOOLEAN if tag.endswith(":bool") else pattern)
            for tag, pattern in resolvers
            if not tag.endswith(":timestamp")
        ]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    return StrictLoader


def _in_one_line(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return str(error)
    problem = getattr(error, "problem", None) or "bad syntax"
    return f"{problem} at line {mark.line + 1}; a text with signs of YAML in it wants quotes"


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


# What is done ("assets"), how many of them are done, how many there are.
Progress = Callable[[str, int, int], None]


def silent(what: str, done: int, total: int) -> None:
    """Show nothing."""
