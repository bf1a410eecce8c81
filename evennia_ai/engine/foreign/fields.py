"""Fields of foreign values: declared once, on the dataclass that they become.

A field's type and bounds say what it may be (`Annotated[int, Field(ge=1)]`), and where they do not
say it in words `Must` does. `read_fields` makes a value of a mapping that somebody wrote; what is
made and changed inside the package is not looked at again.
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
"""A number that nobody reaches: as a bound it is not told."""

Count = Annotated[int, Field(ge=0, le=2**31 - 1)]
"""A number of things, which every database stores."""

_STRICT: Final = ConfigDict(strict=True, allow_inf_nan=False, arbitrary_types_allowed=True)
_REFUSED: Final = "refused"
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_Form = TypeVar("_Form")
_Model = TypeVar("_Model", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Must:
    """What a field must be beyond its type, or where type and bounds do not say it in words."""

    wanted: str
    """Ends the sentence "it must be ..."."""
    holds: Callable[[Any], bool] | None = None
    """What is true of a value that is allowed; None where type and bounds say it."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        inner = handler(source)
        return no_info_after_validator_function(self._checked, inner) if self.holds else inner

    def _checked(self, value: Any) -> Any:
        if self.holds is not None and not self.holds(value):
            raise refusal(f"must be {self.wanted}")
        return value


def plain_form(
    form: Callable[[], Any], *, written: Callable[[Any], Any], made: Callable[[Any], Any]
) -> Any:
    """Return the hook with which pydantic writes and reads a class that is no plain dataclass.

    Assign it to `__get_pydantic_core_schema__` in the body of the class.

    Args:
        form: Returns the type of what is written instead; asked when the class exists.
        written: Makes such a value of an instance.
        made: Makes the instance again.
    """

    def schema(cls: type, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        inner = handler.generate_schema(form())
        serialization = plain_serializer_function_ser_schema(written, return_schema=inner)
        return no_info_after_validator_function(made, inner, serialization=serialization)

    return classmethod(schema)


def refusal(problem: str) -> PydanticCustomError:
    """The error with which a validator says in our own words what is wrong."""
    return PydanticCustomError(_REFUSED, "{problem}", {"problem": problem})


def own_words(error: ErrorDetails, *, shows_value: bool = False) -> str:
    """What is wrong in our words, with "must be", and the value unless a validator said all."""
    words = error["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    is_ours = error["type"] in (_REFUSED, "value_error")
    return f"{words}, not {error['input']!r}" if shows_value and not is_ours else words


def problems_in(error: ValidationError) -> list[tuple[str, str]]:
    """The places that are wrong, "" for the whole, and what is wrong there in pydantic's words."""
    return [
        (".".join(str(step)[:80] for step in one["loc"]), one["msg"].removeprefix("Value error, "))
        for one in error.errors(include_url=False, include_input=False, include_context=False)
    ]


# pydantic's error type -> what was wanted, in our words.
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


def as_format_error(error: ValidationError, *, kind: str, where: str) -> FormatError:
    """The first of pydantic's findings as one line that names the path."""
    found = error.errors(include_url=False, include_input=False)[0]
    path, wanted = place_and_problem(found)
    return FormatError(kind, f"{where}{path}: {wanted}", path=found["loc"], problem=wanted)


def place_and_problem(found: ErrorDetails) -> tuple[str, str]:
    """Return where pydantic found something wrong (`.tags[0]`), and what was wanted there."""
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in found["loc"])
    words = found["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    words = words.replace("String should", "must")
    return one_line(path), _WANTED.get(found["type"], words)


def read_leniently(form: type[_Model], given: Mapping[str, Any]) -> tuple[_Model, dict[str, str]]:
    """Read an object field by field: one that cannot be read is as if it were missing.

    Every field of `form` must have a default. Returns the value, and for each member that was left
    out a sentence about it ("comment must be text: it is ignored") by the member's name.
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
    read, more = read_leniently(form, rest)  # a field may be there in another spelling too
    return read, {**problems, **more}


def near(wanted: object, known: Iterable[str]) -> str:
    """'; did you mean x?' where one of the known names is like the wanted one, else ""."""
    found = get_close_matches(str(wanted), list(known), n=1)
    return f"; did you mean {found[0]}?" if found else ""


def door(form: type) -> type[BaseModel]:
    """The strict model that checks a mapping before it becomes a dataclass of this form.

    A field that is a dataclass itself stands flat: its fields are written beside the others.
    """
    return _model(form, "forbid")


@cache
def _model(form: Hashable, extra: Literal["forbid", "ignore"]) -> type[BaseModel]:
    fields_of: dict[str, Any] = dict(_flat(form))
    return create_model(
        getattr(form, "__name__", ""),
        __config__=ConfigDict(**_STRICT, extra=extra, protected_namespaces=()),
        **fields_of,
    )


def _flat(form: Any) -> Iterator[tuple[str, tuple[Any, Any]]]:
    """The type and the default of each field, by its name."""
    hints = get_type_hints(form, include_extras=True)
    for one in fields(form):
        hint = hints[one.name]
        if is_dataclass(hint):
            yield from _flat(hint)
            continue
        default = ... if one.default is MISSING else one.default
        if one.default_factory is not MISSING:
            default = one.default_factory()
        if hasattr(BaseModel, one.name):  # such as `schema`: it has the name as an alias
            yield f"{one.name}_", (Annotated[hint, Field(alias=one.name)], default)
        else:
            yield one.name, (hint, default)


def made_of(form: type[_Form], values: Mapping[str, Any]) -> _Form:
    """The dataclass of checked values, those that stand flat in dataclasses of their own."""
    inner = _inner(cast(Hashable, form))
    if not inner:
        return form(**values)
    parts: dict[str, Any] = {
        name: made_of(kind, _named_in(kind, values)) for name, kind in inner.items()
    }
    return form(**_named_in(form, values), **parts)


def _named_in(form: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    return {one.name: values[one.name] for one in fields(form) if one.name in values}


@cache
def _inner(form: Hashable) -> dict[str, type]:
    """The fields that stand flat, by their names."""
    hints = get_type_hints(form, include_extras=True)
    kinds = {name: kind for name, kind in hints.items() if isinstance(kind, type)}
    return {name: kind for name, kind in kinds.items() if is_dataclass(kind)}


def wanted_of(field: FieldInfo) -> str:
    """What a field must be, as it ends the sentence "it must be ..."."""
    for said in reversed(field.metadata):
        if isinstance(said, Must):
            return said.wanted
    kind = field.annotation
    if get_origin(kind) is Literal:
        *others, last = (f'"{choice}"' for choice in get_args(kind))
        return f"{', '.join(others)} or {last}" if others else last
    if kind is bool:
        return "True or False"
    return "text" if kind is str else _number(field.metadata)


def wanted_in_data(field: FieldInfo, value: object) -> str:
    """What a field must be instead of this value, as data of authors have it: `true`, not True."""
    for said in reversed(field.metadata):
        if isinstance(said, Must):
            return said.wanted
    kind = _without_none(field.annotation)
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(map(str, get_args(kind)))
    if kind is bool:
        return "true or false"
    if kind is str:
        if isinstance(value, str) and _SURROGATE.search(value):
            return "text without null characters or half pairs"
        most = next((one.max_length for one in field.metadata if isinstance(one, MaxLen)), None)
        return "text" if most is None else f"text of at most {most} characters"
    over = any(isinstance(one, Le) and _is_over(value, one.le) for one in field.metadata)
    words = _number(field.metadata)
    return f"{words}, at most {UNBOUNDED}" if over and " to " not in words else words


Values = tuple[object, ...]


def checker(form: type) -> tuple[Callable[[Any], Values], Callable[[Values], bool]]:
    """The values of a dataclass of this form, and whether it can have them.

    Asked for every one made, so as one tuple: pydantic takes twice as long to ask for each field.
    """
    hints = get_type_hints(form, include_extras=True)
    names = [one.name for one in fields(form)]
    kinds: Any = GenericAlias(tuple, tuple(hints[name] for name in names))
    holds = TypeAdapter(kinds, config=_STRICT).validator.isinstance_python
    return attrgetter(*names), holds


def wrong_in(value: object) -> tuple[str, str] | None:
    """The first field of a dataclass with a value it cannot have, and what it must be."""
    made = _model(cast(Hashable, type(value)), "ignore")
    try:
        made.model_validate(value, from_attributes=True)
    except ValidationError as error:
        name = str(error.errors(include_url=False)[0]["loc"][0])
        return name, wanted_in_data(made.model_fields[name], getattr(value, name))
    return None


def listed(_: object, known: Iterable[str]) -> str:
    """What names there are."""
    return f"; there are {', '.join(known)}"


def near_or_listed(wanted: object, known: Iterable[str]) -> str:
    """The known name that is like the wanted one, else all of them."""
    return near(wanted, known) or listed(wanted, known)


def read_fields(
    form: type[_Form],
    given: Any,
    *,
    where: str,
    what: str = "rule ",
    hint: Callable[[object, Iterable[str]], str] = near,
) -> _Form:
    """The value of a mapping somebody wrote; what it leaves out is as it is by default.

    FormatError names the first field, in the order of the mapping, that cannot be. `what` is the
    word for a field, `hint` says what may be meant instead of an unknown one.
    """
    if not isinstance(given, Mapping):
        raise FormatError("setting", f"{where}: must be a dictionary")
    known = door(form).model_fields
    wrong: dict[str, ErrorDetails] = {}
    values: dict[str, Any] = {}
    try:
        read = door(form).model_validate({one: given[one] for one in given if one in known})
        values = {name: getattr(read, name) for name in read.model_fields_set}
    except ValidationError as error:
        wrong = {str(one["loc"][0]): one for one in error.errors()}
    for name in given:
        if name not in known:
            told = f"there is no {what}{name!r}{hint(name, known)}"
            raise FormatError("setting", f"{where}: {told}", problem=told)
        if name in wrong:
            told = f"must be {wanted_of(known[name])}, not {wrong[name]['input']!r}"
            raise FormatError("setting", f"{where}.{name}: {told}", path=(name,), problem=told)
    return made_of(form, values)


def check_settings(
    form: type, data: object, *, kind: str, where: str, but: Iterable[str] = ()
) -> dict[str, Any]:
    """What a mapping says of the fields of `form`, each checked; the values are as they were.

    `but` are fields that it may not name. FormatError: an unknown setting, or a value that it
    cannot have.
    """
    if not isinstance(data, Mapping):
        raise FormatError(kind, f"{where}: must be an object")
    made = door(form)
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
        wanted, shown = wanted_in_data(known[name], data[name]), one_line(repr(data[name]))[:60]
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
    """`X` for `X | None`, where nothing may be written as well."""
    kinds = [one for one in get_args(kind) if one is not NoneType]
    return kinds[0] if get_origin(kind) in (Union, UnionType) and len(kinds) == 1 else kind


def _is_over(value: object, high: Any) -> bool:
    return isinstance(value, int) and value is not True and value > high
