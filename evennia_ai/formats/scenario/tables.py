"""Read mappings of a scenario into dataclasses that declare the allowed keys.

An undeclared key is an error; otherwise a mistyped setting would silently have no effect. Values of
a wrong type are never converted.
"""

import reprlib
from collections.abc import Collection, Hashable, Sequence
from difflib import get_close_matches
from functools import cache
from types import GenericAlias
from typing import Annotated, Any, Final, Literal, TypeVar, cast

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.foreign.fields import Must, build_dataclass, describe_in_data, strict_model
from evennia_ai.engine.prompt.components import MAX_DEPTH

KIND: Final = "scenario"
MAX_NUMBER: Final = 10**9

# Pydantic's error types for a value that is not one of the allowed words. A value that is not text
# gets the simpler message "text".
_NO_CHOICE: Final = ("literal_error", "string_type")
_Choice = TypeVar("_Choice", bound=str)
_Row = TypeVar("_Row")


def whole_from(low: int) -> Any:
    """Return an `int` annotation that only accepts whole numbers of at least `low`."""
    return Field(ge=low, le=MAX_NUMBER)


Whole = Annotated[int, whole_from(0), Must(f"a whole number from 0 to {MAX_NUMBER}")]
# Depths over the limit are clamped, because both mean the top of the history.
Depth = Annotated[
    int,
    Field(ge=0),
    AfterValidator(lambda value: min(value, MAX_DEPTH)),
    Must("a whole number, 0 or more"),
]
Rows = Annotated[list[Any] | None, Must("a list")]
TextRole = Literal["system", "user", "assistant"]


def read_row(form: type[_Row], row: object, *, path: str) -> _Row:
    """Read a mapping of a scenario into a dataclass.

    Args:
        form: the dataclass.
        path: the path of the mapping, "" for the whole file.

    Raises:
        FormatError: a key or value is invalid; the message names its path.
    """
    made = strict_model(form)
    try:
        read = made.model_validate(known_keys(row, path=path, known=made.model_fields))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][0])
        if first["type"] == "missing":
            raise FormatError(KIND, f"{path}: the key '{name}' is missing") from error
        wanted = describe_in_data(made.model_fields[name], first["input"])
        if first["type"] in _NO_CHOICE and not isinstance(first["input"], str):
            wanted = "text"
        raise wrong_value_error(
            f"{path}.{name}" if path else name, first["input"], wanted
        ) from error
    return build_dataclass(form, vars(read))


def read_rows(form: type[_Row], rows: list[Any] | None, *, path: str) -> list[_Row]:
    """Read a list of mappings into dataclasses; FormatError names the first invalid mapping.

    The whole list is validated at once, which is much faster than one mapping at a time.
    """
    try:
        read = _all_of(cast(Hashable, form)).validate_python(rows or [])
    except ValidationError:
        return [read_row(form, row, path=at) for at, row in list_items(rows, path=path)]
    return [build_dataclass(form, vars(one)) for one in read]


@cache
def _all_of(form: Hashable) -> TypeAdapter[list[Any]]:
    kind: Any = GenericAlias(list, (strict_model(cast(type, form)),))
    return TypeAdapter(kind)


def known_keys(row: object, *, path: str, known: Collection[str]) -> dict[str, Any]:
    """Return a mapping unchanged, or raise FormatError if it has keys that are not in `known`."""
    if not isinstance(row, dict):
        raise wrong_value_error(path, row, "a mapping of " + ", ".join(known))
    unknown = [key for key in row if key not in known]
    if unknown:
        raise FormatError(KIND, _unknown_keys(unknown, path=path, known=known))
    return row


def list_items(items: list[Any] | None, *, path: str) -> list[tuple[str, Any]]:
    """Return the items of a list with their paths; None counts as an empty list."""
    return [(f"{path}[{index}]", item) for index, item in enumerate(items or ())]


def one_of(path: str, value: str, choices: Sequence[_Choice]) -> _Choice:
    """Return the allowed word that equals a scenario's value, or raise FormatError."""
    for choice in choices:
        if value == choice:
            return choice
    raise wrong_value_error(path, value, "one of " + ", ".join(choices))


def text_at(path: str, value: object) -> str:
    """Return a scenario's value if it is a string, or raise FormatError."""
    if not isinstance(value, str):
        raise wrong_value_error(path, value, "text")
    return value


def wrong_value_error(path: str, value: object, wanted: str) -> FormatError:
    """Return a FormatError that names the path of a scenario's value and the allowed values."""
    where = path or "the scenario"
    return FormatError(
        KIND, f"{where}: {render_briefly(value)} is not allowed: it must be {wanted}"
    )


def render_briefly(value: object) -> str:
    """Render a value for an error message in at most 60 characters."""
    shown = reprlib.repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."


def _unknown_keys(unknown: Sequence[object], *, path: str, known: Collection[str]) -> str:
    named = ", ".join(f"'{str(key)[:60]}'" for key in unknown[:5])
    near = get_close_matches(str(unknown[0])[:60], known, n=1)
    meant = f"; did you mean '{near[0]}'?" if near else ""
    word = "unknown key" if len(unknown) == 1 else "unknown keys"
    where = f"{path}: " if path else ""
    return f"{where}{word} {named}{meant}; known keys are {', '.join(known)}"
