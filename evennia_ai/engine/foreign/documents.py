"""Parse the text of a foreign file to plain values, as strict JSON or safe YAML.

Things that other parsers accept silently are refused: NaN and infinity, unlimited nesting, lone
surrogates, and YAML aliases, with which a small file can expand to a huge one. Duplicate keys are
refused in YAML and in files of our own; in JSON of other programs they become notices.
Accepted values are plain JSON values, nested at most `MAX_NESTING` deep, with finite numbers of
ordinary size. Slow parsers report their progress: the current task and how much of it is done.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
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
"""How many entries a lorebook may have at most, in its own file or in a card."""
MAX_LINE: Final = 300
MAX_NOTICES: Final = 20
# The maximum number of duplicate members that notices name. Further ones are only counted.
MAX_DUPLICATES: Final = 10

_Item = TypeVar("_Item")
# A list type for pydantic models that reports only its first wrong item. A million errors would
# take a gigabyte of memory.
ListOf = Annotated[list[_Item], Field(fail_fast=True)]

_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")

_NESTED: Final = (dict, list)


def parse_json(text: str, *, kind: str, where: str) -> tuple[Any, tuple[str, ...]]:
    """Parse strict JSON, and return the value and a notice for each repeated key.

    Args:
        text: The JSON text.
        kind: The kind of the file for errors, such as "card".
        where: The name of the file for errors.

    Raises:
        FormatError: The text is not JSON or exceeds a limit. The message names line and column if
            possible.
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
        raise FormatError(kind, f"{where}: is not valid JSON ({problem} at {at})") from error
    except RecursionError as error:
        raise FormatError(kind, _too_deep(where)) from error
    except ValueError as error:  # NaN, Infinity, or a number with thousands of digits
        raise FormatError(kind, f"{where}: is not valid JSON ({one_line(str(error))})") from error
    # No list or object occurs twice in parsed JSON, so `distinct=list` keeps all of them.
    _check_levels(value, distinct=list, kind=kind, where=where)
    return value, duplicates.notices()


class _Duplicates:
    """The names of members that occur twice in one JSON object.

    The first `MAX_DUPLICATES` names are kept, further ones are only counted.
    """

    def __init__(self) -> None:
        self._names: dict[str, None] = {}
        self._others = 0

    def make_object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """Return a dict of a JSON object's members, and record the names that occur twice.

        The last value of a name counts.
        """
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
        """Return a notice for each kept duplicate name, and one that counts the others."""
        named = [
            f"member '{one_line(name)}' occurs twice; the last one counts" for name in self._names
        ]
        others = f"{self._others} more members occur twice; the last of each counts"
        return tuple(named + [others] * bool(self._others))


def check_plain(value: Any, *, kind: str, where: str) -> None:
    """Raise FormatError if a value does not consist of JSON types within the limits.

    YAML aliases may repeat a list or object thousands of times. At each depth it is checked only
    once, so the check stays fast. A value that contains itself counts as nested too deeply.
    """
    _check_levels(value, distinct=_each_once, kind=kind, where=where)


def _check_levels(
    value: Any, *, distinct: Callable[[list[Any]], list[Any]], kind: str, where: str
) -> None:
    """Raise FormatError if a value contains items that are not JSON values or is nested too deeply.

    The value is checked level by level. `distinct` returns those lists and objects of a level whose
    content is checked.
    """
    nested = _check_items([value], kind=kind, where=where)
    for _ in range(MAX_NESTING):
        items = (_items_of(each, kind=kind, where=where) for each in distinct(nested))
        nested = _check_items(chain.from_iterable(items), kind=kind, where=where)
    if nested:
        raise FormatError(kind, _too_deep(where))


def _check_items(items: Iterable[Any], *, kind: str, where: str) -> list[Any]:
    """Check the items of one level, and return the lists and objects among them.

    Raises: FormatError: An item is not an allowed value.
    """
    nested: list[Any] = []
    for item in items:
        # most items are such plain values, which are always allowed
        if item is None or item is True or item is False:
            continue
        if (type(item) is int and -MAX_NUMBER <= item <= MAX_NUMBER) or (
            isinstance(item, str) and item.isascii()
        ):
            continue
        if isinstance(item, _NESTED):
            nested.append(item)
        elif problem := _problem_with(item):
            raise FormatError(kind, f"{where}: {problem}")
    return nested


def _each_once(nested: list[Any]) -> list[Any]:
    return list({id(each): each for each in nested}.values())


def one_line(text: str) -> str:
    """Return a text on one line, without control characters and at most `MAX_LINE` long."""
    # most texts are short printable ASCII, which needs no change
    if len(text) <= MAX_LINE and text.isascii() and text.isprintable():
        return text
    shown = _CONTROL.sub(" ", _LONE_SURROGATE.sub("?", text))
    return shown if len(shown) <= MAX_LINE else shown[: MAX_LINE - 3] + "..."


class Finding(NamedTuple):
    """A problem that a lint reports about a file.

    `is_error` is True if some content of the file is lost or can never work.
    """

    text: str
    is_error: bool = False

    def __str__(self) -> str:
        return self.text


# Phrases that occur only in notices about parts of a file that are lost.
_LOSSES: Final = (
    "it is ignored",
    "left out",
    "never active",
    "cannot be read",
    "occurs twice",
    "occur twice",
)


def is_loss(notice: str) -> bool:
    """True if a notice about reading a file says that some of its content is lost.

    Unknown decorators are not a loss, because they are meant for other programs (Card V3).
    """
    return "@@" not in notice and any(words in notice for words in _LOSSES)


def limit_notices(notices: Iterable[str]) -> tuple[str, ...]:
    """Return at most `MAX_NOTICES` different notices, and a notice that counts the others."""
    once = list(dict.fromkeys(notices))
    more = len(once) - MAX_NOTICES
    return tuple(once[:MAX_NOTICES]) + ((f"and {more} more like these",) if more > 0 else ())


def _items_of(nested: dict[Any, Any] | list[Any], *, kind: str, where: str) -> Iterable[Any]:
    """Return the items of a list, or the member names and the values of a JSON object.

    Names of ASCII characters are left out, because they are always allowed.
    """
    if isinstance(nested, list):
        return nested
    try:
        is_ascii = "".join(nested).isascii()
    except TypeError as error:
        problem = f"{where}: a member's name is not text; put it in quotes"
        raise FormatError(kind, problem) from error
    return nested.values() if is_ascii else chain(nested.keys(), nested.values())


def _problem_with(item: Any) -> str:
    if isinstance(item, str):
        broken = _LONE_SURROGATE.search(item)
        return f"a text has half a character ({one_line(item)[:40]!r})" if broken else ""
    if isinstance(item, int):
        return "" if abs(item) <= MAX_NUMBER else "a number is too large"
    if isinstance(item, float):
        return "" if math.isfinite(item) else "a number is not finite"
    return f"a value of type {type(item).__name__} is not a JSON value"


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _too_deep(where: str) -> str:
    return f"{where}: nested more than {MAX_NESTING} deep; make it flatter"


# Matches line ends that YAML turns into blanks unless they are escaped
_ODD_LINE_ENDS: Final = re.compile("[\r\x85\u2028\u2029]")
_BOOLEAN: Final = re.compile(r"(?:true|True|TRUE|false|False|FALSE)$")


def read_yaml(text: str, *, kind: str, where: str) -> Any:
    """Parse the text of one document of safe YAML.

    Raises:
        FormatError: The text is not YAML, or a value is not allowed.
    """
    import yaml

    try:
        values = _load_plain_yaml(text)
        if values is _NOT_PLAIN:
            values = yaml.load(text, Loader=_strict_loader())  # noqa: S506  (a SafeLoader)
    except yaml.YAMLError as error:
        raise FormatError(kind, f"{where}: is not YAML: {_in_one_line(error)}") from error
    except RecursionError as error:
        raise FormatError(kind, f"{where}: is nested too deeply; make it flatter") from error
    # Python cannot convert the number, for example one with thousands of digits
    except (ValueError, ArithmeticError) as error:
        raise FormatError(kind, f"{where}: is not YAML: {error}") from error
    check_plain(values, kind=kind, where=where)
    return values


_NOT_PLAIN: Final = object()
# In texts with these characters the two parsers of PyYAML differ.
_PARSED_DIFFERENTLY: Final = re.compile("[\t\r\x85\u2028\u2029\ufeff]|[|>][0-9+-]*#")


def _load_plain_yaml(text: str) -> Any:
    """Return the value of a document without tags and anchors, parsed ten times as fast.

    The parser is that of libyaml, if PyYAML has it. It may crash with deep nesting and does not
    refuse aliases, so the values are built here. Return `_NOT_PLAIN` for every text that is refused
    or that the parser in Python may read in another way. That parser then reads it, and its errors
    are the ones that people see.
    """
    import yaml

    if not yaml.__with_libyaml__ or _PARSED_DIFFERENTLY.search(text):
        return _NOT_PLAIN
    try:
        loader = _libyaml_loader()(text)
        try:
            return _plain_value(loader)
        finally:
            loader.dispose()
    except (yaml.YAMLError, ValueError, ArithmeticError):
        return _NOT_PLAIN


def _plain_value(loader: Any) -> Any:
    """Return the value of the only document of a loader.

    The value is built from the parser's events. Nodes and constructors would take twice as long.

    Raises:
        yaml.YAMLError: The document is not plain.
    """
    import yaml

    starts = {yaml.SequenceStartEvent: list, yaml.MappingStartEvent: dict}
    ends = (yaml.SequenceEndEvent, yaml.MappingEndEvent)
    begins = [type(loader.get_event()), type(loader.get_event())]
    if begins != [yaml.StreamStartEvent, yaml.DocumentStartEvent]:
        raise yaml.YAMLError(_NOT_PLAIN_HERE)
    built = _Built()
    while not built.is_whole:
        event = loader.get_event()
        kind = type(event)
        if kind in ends:
            built.close()
        elif (kind is not yaml.ScalarEvent and kind not in starts) or event.tag or event.anchor:
            raise yaml.YAMLError(_NOT_PLAIN_HERE)
        elif kind is yaml.ScalarEvent:
            built.add(_scalar(loader, event))
        # The parsers differ inside brackets and braces, but not in an empty list or mapping.
        elif event.flow_style and type(loader.peek_event()) not in ends:
            raise yaml.YAMLError(_NOT_PLAIN_HERE)
        else:
            built.open(starts[kind]())
    rest = [type(loader.get_event()), type(loader.get_event())]
    if rest != [yaml.DocumentEndEvent, yaml.StreamEndEvent]:
        raise yaml.YAMLError(_NOT_PLAIN_HERE)
    return built.root


def _scalar(loader: Any, event: Any) -> Any:
    """Return the value of a text, a number, a flag or null."""
    import yaml

    text, resolvers = event.value, loader.yaml_implicit_resolvers
    if not event.implicit[0] or (text[:1] not in resolvers and None not in resolvers):
        return text
    tag = loader.resolve(yaml.ScalarNode, text, event.implicit)
    if tag == _STRING:
        return text
    if tag not in _SCALARS:
        raise yaml.YAMLError(_NOT_PLAIN_HERE)
    return loader.construct_object(yaml.ScalarNode(tag, text))


class _Built:
    """A value that is built while the parser reports its parts."""

    __slots__ = ("_around", "_holder", "_key", "root")

    def __init__(self) -> None:
        self.root: Any = _NOTHING
        self._holder: Any = _NOTHING
        self._key: Any = _NOTHING
        self._around: list[tuple[Any, Any]] = []
        """The lists and mappings around the open one, each with its open key."""

    @property
    def is_whole(self) -> bool:
        """True if the value is complete: it and everything inside it is closed."""
        return self.root is not _NOTHING and self._holder is _NOTHING

    def add(self, item: Any) -> None:
        """Add an item to the open list; to a mapping, a key and then its value."""
        if self._holder is _NOTHING:
            self.root = item
        elif type(self._holder) is list:
            self._holder.append(item)
        elif self._key is not _NOTHING:
            self._holder[self._key], self._key = item, _NOTHING
        elif isinstance(item, (list, dict)) or item in self._holder:
            raise ValueError("a key is a list, or occurs twice")
        else:
            self._key = item

    def open(self, made: Any) -> None:
        """Add an empty list or mapping. The next items are added to it until it is closed."""
        self.add(made)
        self._around.append((self._holder, self._key))
        self._holder, self._key = made, _NOTHING
        if len(self._around) > MAX_NESTING:
            raise ValueError("nested too deeply")

    def close(self) -> None:
        """Close the open list or mapping."""
        self._holder, self._key = self._around.pop()


_NOTHING: Final = object()
_NOT_PLAIN_HERE: Final = "is not plain"
_STRING: Final = "tag:yaml.org,2002:str"
_SCALARS: Final = {f"tag:yaml.org,2002:{kind}" for kind in ("str", "int", "float", "bool", "null")}


@cache
def _libyaml_loader() -> Any:
    """Return a subclass of yaml.CSafeLoader that makes the same values as the strict loader."""
    import yaml

    class LibyamlLoader(yaml.CSafeLoader):
        pass

    LibyamlLoader.yaml_implicit_resolvers = _strict_loader().yaml_implicit_resolvers
    return LibyamlLoader


def write_yaml(values: dict[str, Any]) -> str:
    """Write plain values as YAML that people can read.

    `read_yaml` reads the same values from the text.
    """
    import yaml

    return str(
        yaml.dump(values, Dumper=_dumper(), allow_unicode=True, sort_keys=False, width=10**6)
    )


def line_in_yaml(text: str, path: Sequence[str | int]) -> int:
    """Return the line number of a value in a YAML text.

    `read_yaml` must have read this text.

    Args:
        text: The text of the document.
        path: The keys and indexes that lead to the value. If it does not exist, the line is that of
            the value around it.
    """
    import yaml

    node = yaml.compose(text, Loader=_strict_loader())
    for step in path:
        if isinstance(node, yaml.MappingNode):
            inner = next((value for key, value in node.value if key.value == step), None)
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int):
            inner = node.value[step] if step < len(node.value) else None
        else:
            inner = None
        if inner is None:
            break
        node = inner
    return 1 if node is None else int(node.start_mark.line) + 1


@cache
def _dumper() -> Any:
    """Return a subclass of yaml.SafeDumper that preserves every line end."""
    import yaml

    class Dumper(yaml.SafeDumper):
        pass

    def represent(dumper: Any, text: str) -> Any:
        # A text of several lines gets one line of the file for each of its own.
        style = '"' if _ODD_LINE_ENDS.search(text) else "|" if "\n" in text else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    Dumper.add_representer(str, represent)
    return Dumper


@cache
def _strict_loader() -> Any:
    """Return a subclass of yaml.SafeLoader that refuses aliases and duplicate keys.

    Dates are loaded as text, and so are `no`, `off` and similar words. Only `true` and `false` are
    booleans.
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
                raise yaml.YAMLError(f"key '{twice}' occurs twice in the block of line {line}")
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
    return f"{problem} at line {mark.line + 1}; put a text with YAML signs in quotes"


MAX_BYTES: Final = 32 * 1024 * 1024


def read_document(path: Path, *, kind: str) -> Any:
    """Read a `.json` file as JSON, or any other file as YAML.

    `kind` is the expected kind of the file for errors: "scenario", "card", "book".

    Raises:
        FormatError: The file cannot be read, or has the wrong format.
    """
    text = read_text(path, kind=kind)
    if path.suffix.lower() == ".json":
        return read_json(text, kind=kind, where=str(path))
    return read_yaml(text, kind=kind, where=str(path))


def read_bytes(path: Path, *, kind: str) -> bytes:
    """Read the bytes of a file.

    Raises:
        FormatError: The file is too large or cannot be read.
    """
    try:
        # Read only up to the limit, because a device reports no size and may never end.
        with path.open("rb") as file:
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
    """Decode bytes as UTF-8.

    Raises:
        FormatError: The bytes are not UTF-8.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(kind, f"{where}: is not UTF-8 text (byte {error.start})") from error


def read_json(text: str, *, kind: str, where: str) -> Any:
    """Parse strict JSON in which a repeated key is an error.

    Raises:
        FormatError: The text is not JSON, or has a repeated key.
    """
    values, duplicates = parse_json(text, kind=kind, where=where)
    if duplicates:
        twice = duplicates[0].partition(";")[0]
        raise FormatError(kind, f"{where}: {twice}; remove one of the two")
    return values


# A function that displays progress. Its arguments are the current task ("assets"), the number of
# steps done, and the total number of steps.
Progress = Callable[[str, int, int], None]


def ignore_progress(what: str, done: int, total: int) -> None:
    """Ignore reports of progress. Callers without a display of progress pass this function."""
