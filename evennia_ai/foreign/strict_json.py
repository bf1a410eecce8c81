"""Foreign data at the door: strict JSON, limits that a hostile file meets first, one-line errors.

Whatever passed here is made of plain JSON values, nests at most `MAX_NESTING` deep, has finite
numbers of an ordinary size and texts that can be written as UTF-8. Cards and books both come in
this way.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Annotated, Any, Final, TypeVar

from pydantic import Field, ValidationError

from evennia_ai.errors import FormatError

MAX_NESTING: Final = 64
MAX_NUMBER: Final = 2**63
MAX_TEXT: Final = 20_000_000
MAX_ENTRIES: Final = 100_000
"""Entries of a lorebook, in a file of its own or in a card's."""
MAX_LINE: Final = 300
MAX_NOTICES: Final = 20
# Members written twice that are named; of the others there is a count.
MAX_TWICE: Final = 10

_Item = TypeVar("_Item")
# A list of which one wrong item is told: a million errors would take a gigabyte.
ListOf = Annotated[list[_Item], Field(fail_fast=True)]

_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")

_NESTED: Final = (dict, list)

# pydantic's error type -> what was wanted, in our words.
_WANTED: Final = {
    "bool_type": "must be true or false",
    "dict_type": "must be an object",
    "finite_number": "must be a finite number",
    "float_type": "must be a number",
    "int_type": "must be a whole number",
    "list_type": "must be a list",
    "missing": "is missing",
    "model_type": "must be an object",
    "string_type": "must be text",
}


def parse_json(text: str, *, kind: str, where: str) -> tuple[Any, tuple[str, ...]]:
    """The value that `text` holds as strict JSON, and notices of the members written twice.

    FormatError: the text is no JSON, or is over a limit; it names line and column where it can.
    """
    if len(text) > MAX_TEXT:
        raise FormatError(kind, f"{where}: more than {MAX_TEXT} characters; make it smaller")
    twice = _Twice()
    try:
        value = json.loads(
            text.removeprefix("\ufeff"),
            object_pairs_hook=twice.members,
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
    _check_levels(value, distinct=list, kind=kind, where=where)  # JSON shares nothing
    return value, twice.notices()


class _Twice:
    """Members that are there twice in one object: a few names, and how many others."""

    def __init__(self) -> None:
        self._names: dict[str, None] = {}
        self._others = 0

    def members(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """The object of these members; the last of a name counts."""
        made = dict(pairs)
        if len(made) != len(pairs):
            times = Counter(name for name, _ in pairs)
            self._note(name for name in made if times[name] > 1)
        return made

    def _note(self, names: Iterable[str]) -> None:
        for name in names:
            if name in self._names:
                continue
            if len(self._names) < MAX_TWICE:
                self._names[name] = None
            else:
                self._others += 1

    def notices(self) -> tuple[str, ...]:
        """What to say of them."""
        named = [
            f"member '{one_line(name)}' is there twice; the last counts" for name in self._names
        ]
        others = f"{self._others} more members are there twice; the last of each counts"
        return tuple(named + [others] * bool(self._others))


def check_plain(value: Any, *, kind: str, where: str) -> None:
    """FormatError where `value` is not made of JSON's own types within the limits.

    Lists and objects that are shared are looked at once for each depth they stand at, so that a
    file of aliases costs no more than it is long; one that holds itself is too deep.
    """
    _check_levels(value, distinct=_each_once, kind=kind, where=where)


def _check_levels(
    value: Any, *, distinct: Callable[[list[Any]], list[Any]], kind: str, where: str
) -> None:
    """Check a value level by level; `distinct` says which lists and objects of one to look into."""
    nested = _checked([value], kind=kind, where=where)
    for _ in range(MAX_NESTING):
        items = (_inside(each, kind=kind, where=where) for each in distinct(nested))
        nested = _checked(chain.from_iterable(items), kind=kind, where=where)
    if nested:
        raise FormatError(kind, _too_deep(where))


def _checked(items: Iterable[Any], *, kind: str, where: str) -> list[Any]:
    """The lists and objects among the items; FormatError for what is no value of JSON."""
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


def as_format_error(error: ValidationError, *, kind: str, where: str) -> FormatError:
    """The first of pydantic's findings as one line that names the path."""
    found = error.errors(include_url=False, include_input=False)[0]
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in found["loc"])
    wanted = _WANTED.get(found["type"], found["msg"])
    message = f"{where}{one_line(path)}: {wanted}"
    return FormatError(kind, message, path=found["loc"], problem=wanted)


def one_line(text: str) -> str:
    """`text` for a message: no control characters, at most `MAX_LINE` characters."""
    shown = _CONTROL.sub(" ", _LONE_SURROGATE.sub("?", text))
    return shown if len(shown) <= MAX_LINE else shown[: MAX_LINE - 3] + "..."


def few(notices: Iterable[str]) -> tuple[str, ...]:
    """The notices, each once, at most `MAX_NOTICES` of them and how many more there were."""
    once = list(dict.fromkeys(notices))
    more = len(once) - MAX_NOTICES
    return tuple(once[:MAX_NOTICES]) + ((f"and {more} more like these",) if more > 0 else ())


def _inside(nested: dict[Any, Any] | list[Any], *, kind: str, where: str) -> Iterable[Any]:
    """What stands in a list or an object, names of members too."""
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
