"""Foreign documents: the text of a file becomes plain values, read as strict JSON or safe YAML.

Everything that other readers accept silently is refused: duplicate keys, NaN and infinity, endless
nesting, lone surrogates, and YAML aliases, with which a small file can become a huge one. Accepted
values are plain JSON values, nested at most `MAX_NESTING` deep, with finite numbers of ordinary
size. A long reading reports its progress: its current task and how much of it is done.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple, TypeVar

from pydantic import Field

from evennia_ai.engine.errors import FormatError

MAX_NESTING: Final = 64
MAX_NUMBER: Final = 2**63
MAX_TEXT: Final = 20_000_000
MAX_ENTRIES: Final = 100_000
"""Entries of a lorebook, in its own file or in a card."""
MAX_LINE: Final = 300
MAX_NOTICES: Final = 20
# Duplicate members that are named. Further ones are only counted.
MAX_DUPLICATES: Final = 10

_Item = TypeVar("_Item")
# Only the first wrong item of a list is reported: a million errors would take a gigabyte.
ListOf = Annotated[list[_Item], Field(fail_fast=True)]

_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")

_NESTED: Final = (dict, list)


def parse_json(text: str, *, kind: str, where: str) -> tuple[Any, tuple[str, ...]]:
    """Parse strict JSON. Returns the value and a notice for each duplicate member.

    Args:
        text: The JSON text.
        kind: The kind of the file for errors, such as "card".
        where: The name of the file for errors.

    Raises:
        FormatError: It is not JSON or exceeds a limit. Names line and column where possible.
    """
    if len(text) > MAX_TEXT:
        raise FormatError(kind, f"{where}: more than {MAX_TEXT} characters; make it smaller")
    duplicates = _Duplicates()
    try:
        value = json.loads(
            text.removeprefix("\ufeff"),
            object_pairs_hook=duplicates.make_object,
            parse_constant=_refuse_constant,
        )
    except json.JSONDecodeError as error:
        at = f"line {error.lineno}, column {error.colno}"
        problem = error.msg.removesuffix(" at")
        raise FormatError(kind, f"{where}: no valid JSON ({problem} at {at})") from error
    except RecursionError as error:
        raise FormatError(kind, _too_deep(where)) from error
    except ValueError as error:  # NaN, Infinity, or a number with thousands of digits
        raise FormatError(kind, f"{where}: no valid JSON ({one_line(str(error))})") from error
    _check_levels(value, distinct=list, kind=kind, where=where)  # JSON has no shared values
    return value, duplicates.notices()


class _Duplicates:
    """Members that are there twice in one object: some names, and the number of the others."""

    def __init__(self) -> None:
        self._names: dict[str, None] = {}
        self._others = 0

    def make_object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """Return the object of these members, with the last value of each name."""
        made = dict(pairs)
        if len(made) != len(pairs):
            times = Counter(name for name, _ in pairs)
            for name in made:
                if times[name] == 1 or name in self._names:
                    continue
                if len(self._names) < MAX_DUPLICATES:
                    self._names[name] = None
                else:
                    self._others += 1
        return made

    def notices(self) -> tuple[str, ...]:
        """Return a notice for each name, and one for the others."""
        named = [
            f"member '{one_line(name)}' is there twice; the last counts" for name in self._names
        ]
        others = f"{self._others} more members are there twice; the last of each counts"
        return tuple(named + [others] * bool(self._others))


def check_plain(value: Any, *, kind: str, where: str) -> None:
    """Raise FormatError if a value is not made of JSON types within the limits.

    Shared lists and objects are checked once per depth, so a file of aliases costs no more than its
    length. A value that contains itself is too deep.
    """
    _check_levels(value, distinct=_each_once, kind=kind, where=where)


def _check_levels(
    value: Any, *, distinct: Callable[[list[Any]], list[Any]], kind: str, where: str
) -> None:
    """Check a value level by level. `distinct` picks the lists and objects to look into."""
    nested = _checked([value], kind=kind, where=where)
    for _ in range(MAX_NESTING):
        items = (_inside(each, kind=kind, where=where) for each in distinct(nested))
        nested = _checked(chain.from_iterable(items), kind=kind, where=where)
    if nested:
        raise FormatError(kind, _too_deep(where))


def _checked(items: Iterable[Any], *, kind: str, where: str) -> list[Any]:
    """Return the lists and objects among the items. Raises FormatError for a wrong item."""
    nested: list[Any] = []
    for item in items:
        if isinstance(item, str) and item.isascii():  # most are
            continue
        if isinstance(item, _NESTED):
            nested.append(item)
        elif problem := _problem(item):
            raise FormatError(kind, f"{where}: {problem}")
    return nested


def _each_once(nested: list[Any]) -> list[Any]:
    return list({id(each): each for each in nested}.values())


def one_line(text: str) -> str:
    """Return a text for a message: without control characters, at most `MAX_LINE` characters."""
    if len(text) <= MAX_LINE and text.isascii() and text.isprintable():  # most are
        return text
    shown = _CONTROL.sub(" ", _LONE_SURROGATE.sub("?", text))
    return shown if len(shown) <= MAX_LINE else shown[: MAX_LINE - 3] + "..."


class Finding(NamedTuple):
    """A finding of a lint. It is an error if content of the file is lost or can never work."""

    text: str
    is_error: bool = False

    def __str__(self) -> str:
        return self.text


# Phrases in notices of readers that mean that content of a file is lost.
_LOSSES: Final = ("it is ignored", "left out", "never active", "cannot be read", "there twice")


def is_loss(notice: str) -> bool:
    """True if a reader's notice says that content of the file is lost.

    Unknown decorators are no loss: they are for other programs (Card V3).
    """
    return "@@" not in notice and any(words in notice for words in _LOSSES)


def limit_notices(notices: Iterable[str]) -> tuple[str, ...]:
    """Return at most `MAX_NOTICES` different notices and a count of the others."""
    once = list(dict.fromkeys(notices))
    more = len(once) - MAX_NOTICES
    return tuple(once[:MAX_NOTICES]) + ((f"and {more} more like these",) if more > 0 else ())


def _inside(nested: dict[Any, Any] | list[Any], *, kind: str, where: str) -> Iterable[Any]:
    """Return the items of a list, or the names and values of an object."""
    if isinstance(nested, list):
        return nested
    if not all(isinstance(name, str) for name in nested):
        raise FormatError(kind, f"{where}: a member's name is not text; put it in quotes")
    return chain(nested.keys(), nested.values())


def _problem(item: Any) -> str:
    if item is None or isinstance(item, bool):
        return ""
    if isinstance(item, str):
        broken = _LONE_SURROGATE.search(item)
        return f"a text has half a character ({one_line(item)[:40]!r})" if broken else ""
    if isinstance(item, int):
        return "" if abs(item) <= MAX_NUMBER else "a number is too large"
    if isinstance(item, float):
        return "" if math.isfinite(item) else "a number is not finite"
    return f"a value of type {type(item).__name__} is no JSON"


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _too_deep(where: str) -> str:
    return f"{where}: nested more than {MAX_NESTING} deep; make it flatter"


# Line ends that YAML folds into blanks unless they are written as escapes.
_ODD_LINE_ENDS: Final = re.compile("[\r\x85\u2028\u2029]")
_BOOLEAN: Final = re.compile(r"(?:true|True|TRUE|false|False|FALSE)$")


def read_yaml(text: str, *, kind: str, where: str) -> Any:
    """Return the value of one safe YAML document.

    Raises:
        FormatError: It is not YAML, or a value is not allowed.
    """
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


def write_yaml(values: dict[str, Any]) -> str:
    """Return plain values as YAML for people, from which `read_yaml` reads the same values."""
    import yaml

    return str(
        yaml.dump(values, Dumper=_dumper(), allow_unicode=True, sort_keys=False, width=10**6)
    )


@cache
def _dumper() -> Any:
    """Return a SafeDumper that keeps every line end."""
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
    """Return a SafeLoader that refuses aliases and duplicate keys.

    Dates stay text, and so do `no`, `off` and similar words. Only `true` and `false` are booleans.
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
    """Read a `.json` file, or any other file as YAML.

    `kind` is the expected kind of the file for errors: "scenario", "card", "book".

    Raises:
        FormatError: The file cannot be read or is neither.
    """
    text = read_text(path, kind=kind)
    if path.suffix.lower() == ".json":
        return read_json(text, kind=kind, where=str(path))
    return read_yaml(text, kind=kind, where=str(path))


def read_bytes(path: Path, *, kind: str) -> bytes:
    """Read the bytes of a file. Raises FormatError if it is too large or cannot be read."""
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
    """Read a UTF-8 file without its byte order mark."""
    return decode_text(read_bytes(path, kind=kind), kind=kind, where=str(path))


def decode_text(data: bytes, *, kind: str, where: str) -> str:
    """Decode bytes as UTF-8. Raises FormatError if they are not."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(kind, f"{where}: is no UTF-8 text (byte {error.start})") from error


def read_json(text: str, *, kind: str, where: str) -> Any:
    """Return the value of strict JSON. Raises FormatError also for a duplicate member."""
    values, duplicates = parse_json(text, kind=kind, where=where)
    if duplicates:
        raise FormatError(kind, f"{where}: {duplicates[0].partition(';')[0]}; leave one out")
    return values


# Called with the current task ("assets"), the number done, and the total.
Progress = Callable[[str, int, int], None]


def ignore_progress(what: str, done: int, total: int) -> None:
    """Do nothing: a progress function for callers without a display."""
