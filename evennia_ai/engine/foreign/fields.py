"""Checks for data that people or other programs wrote, declared on the fields of dataclasses.

The type and the bounds of a field define its allowed values (`Annotated[int, Field(ge=1)]`). `Must`
adds a requirement, or a description in words. `read_fields` builds a dataclass from a mapping that
a person wrote. Values that the package itself creates or changes are not checked again.
"""

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from difflib import get_close_matches
from functools import cache
from operator import attrgetter
from types import GenericAlias, NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from annotated_types import Ge, Le, MaxLen
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    TypeAdapter,
    ValidationError,
    create_model,
)
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, ErrorDetails, PydanticCustomError
from pydantic_core.core_schema import (
    no_info_after_validator_function,
    plain_serializer_function_ser_schema,
)

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.foreign.documents import one_line

UNBOUNDED: Final = 10**9
"""The bound of a number that has no real bound; messages do not mention it."""

Count = Annotated[int, Field(ge=0, le=2**31 - 1)]
"""A number of things, small enough for every database to store it."""

_STRICT: Final = ConfigDict(strict=True, allow_inf_nan=False, arbitrary_types_allowed=True)
_REFUSED: Final = "refused"
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_Form = TypeVar("_Form")
_Model = TypeVar("_Model", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Must:
    """An annotation that adds a requirement to a field, or puts its type and bounds into words."""

    wanted: str
    """The text after "it must be" in a message."""
    holds: Callable[[Any], bool] | None = None
    """A function that is true for allowed values; None if the type and bounds are enough."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        inner = handler(source)
        return no_info_after_validator_function(self._checked, inner) if self.holds else inner

    def _checked(self, value: Any) -> Any:
        if self.holds is not None and not self.holds(value):
            raise custom_error(f"must be {self.wanted}")
        return value


def plain_form(
    form: Callable[[], Any], *, written: Callable[[Any], Any], made: Callable[[Any], Any]
) -> Any:
    """Return a hook by which pydantic reads and writes a class that is not a plain dataclass.

    Assign the hook to `__get_pydantic_core_schema__` in the body of the class.

    Args:
        form: A function that returns the type of the value in files. It is called after the class
            is defined.
        written: A function that converts an instance to the value in files.
        made: A function that converts the value in files to an instance.
    """

    def schema(cls: type, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        inner = handler.generate_schema(form())
        serialization = plain_serializer_function_ser_schema(written, return_schema=inner)
        return no_info_after_validator_function(made, inner, serialization=serialization)

    return classmethod(schema)


def custom_error(problem: str) -> PydanticCustomError:
    """Return an error with which a pydantic validator reports a problem in its own words."""
    return PydanticCustomError(_REFUSED, "{problem}", {"problem": problem})


def error_words(error: ErrorDetails, *, shows_value: bool = False) -> str:
    """Return the message of a pydantic error, with "must be" for "Input should be".

    The wrong value is appended if `shows_value` is True and pydantic wrote the message.
    """
    words = error["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    is_ours = error["type"] in (_REFUSED, "value_error")
    return f"{words}, not {error['input']!r}" if shows_value and not is_ours else words


def list_problems(error: ValidationError) -> list[tuple[str, str]]:
    """Return the path of the wrong value and pydantic's message for each error.

    The path is dotted, such as "tags.0"; it is "" for the whole value.
    """
    return [
        (".".join(str(step)[:80] for step in one["loc"]), one["msg"].removeprefix("Value error, "))
        for one in error.errors(include_url=False, include_input=False, include_context=False)
    ]


# Maps types of pydantic errors to messages for people.
_WANTED: Final = {
    "bool_type": "must be true or false",
    "dataclass_type": "must be an object",
    "dict_type": "must be an object",
    "finite_number": "must be a finite number",
    "float_type": "must be a number",
    "int_type": "must be a whole number",
    "list_type": "must be a list",
    "missing": "is missing",
    "missing_argument": "is missing",
    "missing_keyword_only_argument": "is missing",
    "model_type": "must be an object",
    "string_type": "must be text",
    "tuple_type": "must be a list",
    "unexpected_keyword_argument": "there is no such field; leave it out",
}


def to_format_error(error: ValidationError, *, kind: str, where: str) -> FormatError:
    """Return a FormatError for pydantic's first error; its message names the path of the value."""
    found = error.errors(include_url=False, include_input=False)[0]
    path, wanted = place_and_problem(found)
    return FormatError(kind, f"{where}{path}: {wanted}", path=found["loc"], problem=wanted)


def place_and_problem(found: ErrorDetails) -> tuple[str, str]:
    """Return the path in a pydantic error (`.tags[0]`) and what is wrong there ("must be text")."""
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in found["loc"])
    words = found["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    words = words.replace("String should", "must")
    return one_line(path), _WANTED.get(found["type"], words)


def read_leniently(form: type[_Model], given: Mapping[str, Any]) -> tuple[_Model, dict[str, str]]:
    """Read a JSON object into a pydantic model, leaving out members that cannot be read.

    Every field of `form` must have a default.

    Returns:
        The model, and a sentence for each member that was left out, by the member's name ("comment
        must be text: it is ignored").
    """
    try:
        return form.model_validate(given), {}
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
    problems: dict[str, str] = {}
    for one in found:
        name = str(one["loc"][0])
        path, wanted = place_and_problem(one)
        problems.setdefault(name, f"{path.lstrip('.')} {wanted}: it is ignored")
    rest = {name: value for name, value in given.items() if name not in problems}
    # a field can have several spellings: without the wrong member, another one may be read
    read, more = read_leniently(form, rest)
    return read, {**problems, **more}


def suggest_name(wanted: object, known: Iterable[str]) -> str:
    """Return '; did you mean x?' if a known name is similar to the wanted one, or ""."""
    found = get_close_matches(str(wanted), list(known), n=1)
    return f"; did you mean {found[0]}?" if found else ""


def strict_model(form: type) -> type[BaseModel]:
    """Return a strict pydantic model that checks a mapping before it becomes a dataclass.

    A field that is itself a dataclass is flattened: its fields are read from the same mapping.
    """
    return _model(form, "forbid")


@cache
def _model(form: Hashable, extra: Literal["forbid", "ignore"]) -> type[BaseModel]:
    fields_of: dict[str, Any] = dict(_flat_fields(form))
    return create_model(
        getattr(form, "__name__", ""),
        __config__=ConfigDict(**_STRICT, extra=extra, protected_namespaces=()),
        **fields_of,
    )


def _flat_fields(form: Any) -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Yield the name, the type and the default of each field of a dataclass.

    A field that is itself a dataclass is replaced by its fields.
    """
    hints = get_type_hints(form, include_extras=True)
    for one in fields(form):
        hint = hints[one.name]
        if is_dataclass(hint):
            yield from _flat_fields(hint)
            continue
        default = ... if one.default is MISSING else one.default
        if one.default_factory is not MISSING:
            default = one.default_factory()
        # BaseModel already has attributes such as `schema`, so a field of that name gets `_` and an
        # alias
        if hasattr(BaseModel, one.name):
            yield f"{one.name}_", (Annotated[hint, Field(alias=one.name)], default)
        else:
            yield one.name, (hint, default)


def build_dataclass(form: type[_Form], values: Mapping[str, Any]) -> _Form:
    """Build a dataclass, and the dataclasses in its fields, from checked values."""
    inner = _inner_dataclasses(cast(Hashable, form))
    if not inner:
        return form(**values)
    parts: dict[str, Any] = {
        name: build_dataclass(kind, _named_in(kind, values)) for name, kind in inner.items()
    }
    return form(**_named_in(form, values), **parts)


def _named_in(form: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    return {one.name: values[one.name] for one in fields(form) if one.name in values}


@cache
def _inner_dataclasses(form: Hashable) -> dict[str, type]:
    """Return the fields of a dataclass that are dataclasses: a dict of types by field name."""
    hints = get_type_hints(form, include_extras=True)
    kinds = {name: kind for name, kind in hints.items() if isinstance(kind, type)}
    return {name: kind for name, kind in kinds.items() if is_dataclass(kind)}


def describe_field(field: FieldInfo) -> str:
    """Return what a field's value must be, as the end of the sentence "it must be ..."."""
    for rule in reversed(field.metadata):
        if isinstance(rule, Must):
            return rule.wanted
    kind = field.annotation
    if get_origin(kind) is Literal:
        *others, last = (f'"{choice}"' for choice in get_args(kind))
        return f"{', '.join(others)} or {last}" if others else last
    if kind is bool:
        return "True or False"
    return "text" if kind is str else _number(field.metadata)


def describe_in_data(field: FieldInfo, value: object) -> str:
    """Return what a field's value must be, in the notation of data files: `true`, not True."""
    for rule in reversed(field.metadata):
        if isinstance(rule, Must):
            return rule.wanted
    kind = _without_none(field.annotation)
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(map(str, get_args(kind)))
    if kind is bool:
        return "true or false"
    if kind is str:
        if isinstance(value, str) and _SURROGATE.search(value):
            return "text without null characters or lone surrogates"
        most = next((one.max_length for one in field.metadata if isinstance(one, MaxLen)), None)
        return "text" if most is None else f"text of at most {most} characters"
    over = any(isinstance(one, Le) and _is_over(value, one.le) for one in field.metadata)
    words = _number(field.metadata)
    return f"{words}, at most {UNBOUNDED}" if over and " to " not in words else words


Values = tuple[object, ...]


def field_checker(form: type) -> tuple[Callable[[Any], Values], Callable[[Values], bool]]:
    """Return two functions for a dataclass: one gets an object's field values, one checks them.

    The check runs for every new object. It validates all values as one tuple, because pydantic
    takes twice as long field by field.
    """
    hints = get_type_hints(form, include_extras=True)
    names = [one.name for one in fields(form)]
    kinds: Any = GenericAlias(tuple, tuple(hints[name] for name in names))
    holds = TypeAdapter(kinds, config=_STRICT).validator.isinstance_python
    return attrgetter(*names), holds


def find_wrong_field(value: object) -> tuple[str, str] | None:
    """Return the name of the first field with a wrong value and its requirement, or None."""
    made = _model(cast(Hashable, type(value)), "ignore")
    try:
        made.model_validate(value, from_attributes=True)
    except ValidationError as error:
        name = str(error.errors(include_url=False)[0]["loc"][0])
        return name, describe_in_data(made.model_fields[name], getattr(value, name))
    return None


def list_names(_: object, known: Iterable[str]) -> str:
    """Return the end of a message that lists all known names: "; there are x, y"."""
    return f"; there are {', '.join(known)}"


def suggest_or_list(wanted: object, known: Iterable[str]) -> str:
    """Return the end of a message that suggests a similar known name, or lists all known names."""
    return suggest_name(wanted, known) or list_names(wanted, known)


def read_fields(
    form: type[_Form],
    given: Any,
    *,
    where: str,
    what: str = "rule ",
    hint: Callable[[object, Iterable[str]], str] = suggest_name,
) -> _Form:
    """Build a dataclass from a mapping that a person wrote. Missing keys keep the defaults.

    Args:
        form: The dataclass.
        given: The mapping.
        where: The name of the mapping for errors.
        what: The word for a field in errors.
        hint: Returns the end of the error about an unknown field.

    Raises:
        FormatError: A field is wrong. The message names the first one in the mapping.
    """
    if not isinstance(given, Mapping):
        raise FormatError("setting", f"{where}: must be a dictionary")
    known = strict_model(form).model_fields
    wrong: dict[str, ErrorDetails] = {}
    values: dict[str, Any] = {}
    try:
        read = strict_model(form).model_validate({one: given[one] for one in given if one in known})
        values = {name: getattr(read, name) for name in read.model_fields_set}
    except ValidationError as error:
        wrong = {str(one["loc"][0]): one for one in error.errors()}
    for name in given:
        if name not in known:
            problem = f"there is no {what}{name!r}{hint(name, known)}"
            raise FormatError("setting", f"{where}: {problem}", problem=problem)
        if name in wrong:
            problem = f"must be {describe_field(known[name])}, not {wrong[name]['input']!r}"
            raise FormatError(
                "setting", f"{where}.{name}: {problem}", path=(name,), problem=problem
            )
    return build_dataclass(form, values)


def check_settings(
    form: type, data: object, *, kind: str, where: str, but: Iterable[str] = ()
) -> dict[str, Any]:
    """Check a mapping of settings against the fields of a dataclass; return it unchanged.

    Args:
        form: The dataclass that declares the settings.
        data: The mapping.
        kind: The kind of the file for errors.
        where: The name of the mapping for errors.
        but: Fields of `form` that the mapping may not set.

    Raises:
        FormatError: A setting is unknown or has a wrong value.
    """
    if not isinstance(data, Mapping):
        raise FormatError(kind, f"{where}: must be an object")
    made = strict_model(form)
    known = {name: one for name, one in made.model_fields.items() if name not in set(but)}
    unknown = [str(name) for name in data if name not in known]
    if unknown:
        names = one_line(", ".join(unknown))
        raise FormatError(kind, f"{where}: unknown setting {names}; known are {', '.join(known)}")
    try:
        made.model_validate(dict(data))
    except ValidationError as error:
        wrong = {one["loc"][0] for one in error.errors(include_url=False)}
        name = next(name for name in data if name in wrong)
        wanted, shown = describe_in_data(known[name], data[name]), one_line(repr(data[name]))[:60]
        raise FormatError(kind, f"{where}.{name}: must be {wanted}, not {shown}") from error
    return dict(data)


def _number(bounds: Iterable[Any]) -> str:
    low: Any = next((one.ge for one in bounds if isinstance(one, Ge)), -UNBOUNDED)
    high: Any = next((one.le for one in bounds if isinstance(one, Le)), UNBOUNDED)
    if low == -UNBOUNDED:
        return "a whole number"
    if high < UNBOUNDED:
        return f"a whole number from {low} to {high}"
    return f"a whole number from {low} on" if low else "a whole number, 0 or more"


def _without_none(kind: Any) -> Any:
    """Return `X` for the type `X | None`, and any other type unchanged."""
    kinds = [one for one in get_args(kind) if one is not NoneType]
    return kinds[0] if get_origin(kind) in (Union, UnionType) and len(kinds) == 1 else kind


def _is_over(value: object, high: Any) -> bool:
    return isinstance(value, int) and value is not True and value > high
