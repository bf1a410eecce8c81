"""Values of the engine as what JSON can hold, and back without loss.

A dataclass becomes an object of its fields; a field that is as it is by default is left out, and
so are private ones, which only remember what was worked out. What was compiled is written as what
it was compiled from. What is read is checked by the annotations of the fields: an unknown key and
a value of another kind are errors that name them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cache
from math import isfinite
from types import NoneType, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from evennia_ai.errors import EvenniaAIError
from evennia_ai.prompt.components import PromptComponent
from evennia_ai.prompt.expansion import ComponentSet
from evennia_ai.prompt.history import History
from evennia_ai.prompt.memo import Memo
from evennia_ai.prompt.messages import Message
from evennia_ai.prompt.notes import AuthorsNote, Notes
from evennia_ai.prompt.templates.template import Template, compile_template
from evennia_ai.prompt.tokens import TokenCounter

_Reads = Callable[..., Any]

_NUMBER: Final = "number"
_NOT_FINITE: Final = ("inf", "-inf", "nan")  # JSON has no words for these


class ExecutionRequestError(EvenniaAIError):
    """An execution request cannot be written as plain values, or not be read back from them.

    `at` is the path of the value that is meant, "" for the request as a whole.
    """

    def __init__(self, at: str, problem: str) -> None:
        self.at = at
        self.problem = problem
        super().__init__(f"execution request{f', {at}' if at else ''}: {problem}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Window:
    """A history as its messages, and how many of which were left behind before them."""

    messages: tuple[Message, ...] = ()
    earlier: int = 0
    earlier_users: int = 0
    earlier_replies: int = 0
    segment: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _CounterName:
    """What tells a token counter from others; how it counts is code, and is not sent."""

    name: str
    version: str
    per_message: int
    per_prompt: int


@dataclass(frozen=True, slots=True)
class _Form:
    """How a value that is no plain dataclass is written: as a value of `kind`, and made again."""

    kind: Any
    written: Callable[[Any], Any]
    made: Callable[[Any], Any]


_LEFT_BEHIND: Final = ("earlier", "earlier_users", "earlier_replies", "segment")


def _window(history: History) -> _Window:
    left = {name: getattr(history, name) for name in _LEFT_BEHIND}
    return _Window(messages=tuple(history), **left)


def _history(window: _Window) -> History:
    return History(window.messages, **{name: getattr(window, name) for name in _LEFT_BEHIND})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Components:
    """A set of components, and what the context it was made for switches off."""

    listed: tuple[PromptComponent, ...] = ()
    context: str = ""
    off: tuple[str, ...] = ()


def _components(components: ComponentSet) -> _Components:
    return _Components(
        listed=tuple(member.component for member in components.compiled.members),
        context=components.context,
        off=tuple(sorted(components.off)),
    )


def _component_set(told: _Components) -> ComponentSet:
    return ComponentSet(told.listed, context=told.context, off=frozenset(told.off))


def _imported(source: str) -> Template:
    """A template of an entry: lore is imported text wherever it comes from."""
    return compile_template(source, trust="imported")


_FORMS: Final[Mapping[type, _Form]] = {
    ComponentSet: _Form(_Components, _components, _component_set),
    Notes: _Form(tuple[AuthorsNote, ...], lambda notes: notes.given, Notes),
    History: _Form(_Window, _window, _history),
    Template: _Form(str, lambda template: template.source, _imported),
}


# Writing


def plain(value: Any, *, at: str) -> Any:
    """The value as what JSON can hold; `at` is its path, for errors.

    ExecutionRequestError: it has no plain form.
    """
    value = _stand_in(value)
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return {name: plain(member, at=f"{at}.{name}") for name, member in _changed(value)}
    if isinstance(value, Mapping):
        return {str(name): plain(member, at=f"{at}.{name}") for name, member in value.items()}
    if isinstance(value, tuple | list | frozenset):
        members = sorted(value) if isinstance(value, frozenset) else value
        return [plain(member, at=f"{at}[{index}]") for index, member in enumerate(members)]
    raise ExecutionRequestError(at, f"a {type(value).__name__} cannot be sent")


def _stand_in(value: Any) -> Any:
    """What is written in the place of a value that has no plain form of its own."""
    if type(value) in _FORMS:
        return _FORMS[type(value)].written(value)
    if isinstance(value, TokenCounter):
        return _counter_name(value)
    if isinstance(value, float) and not isfinite(value):
        return {_NUMBER: str(value)}
    return value


def _changed(value: Any) -> Iterator[tuple[str, Any]]:
    """The fields of a dataclass that are not as they are by default."""
    kind: Any = type(value)
    for field in _sent_fields(kind):
        member, usual = getattr(value, field.name), _default(field)
        if type(member) is type(usual) and (member is usual or member == usual):
            continue
        yield field.name, member


def _counter_name(counter: TokenCounter) -> _CounterName:
    return _CounterName(
        name=counter.name,
        version=counter.version,
        per_message=counter.per_message,
        per_prompt=counter.per_prompt,
    )


@cache
def _sent_fields(kind: Any) -> tuple[Field[Any], ...]:
    """The fields of a dataclass that are sent; private ones and memos only remember."""
    sent = (one for one in fields(kind) if one.init and not one.name.startswith("_"))
    return tuple(one for one in sent if one.default_factory is not Memo)


def _default(field: Field[Any]) -> Any:
    """What the field is where nothing is said; MISSING where something must be."""
    return field.default if field.default_factory is MISSING else field.default_factory()


# Reading


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainReader:
    """Reads what `plain` wrote; `counters` are the token counters it may find."""

    counters: Sequence[TokenCounter]

    def read(self, data: Any, kind: Any, *, at: str) -> Any:
        """The value of this kind, an annotation of a field; `at` is its path, for errors.

        ExecutionRequestError: it is none; the error names the first thing that is wrong.
        """
        if kind in _FORMS:
            form = _FORMS[kind]
            return self._made(form.made, self.read(data, form.kind, at=at), at=at)
        if kind is TokenCounter:
            return self._counter(self.read(data, _CounterName, at=at), at=at)
        if is_dataclass(kind):
            return self._object(data, kind, at=at)
        reads: _Reads = _READS.get(get_origin(kind) or kind, PlainReader._single)
        return reads(self, data, kind, at=at)

    def _single(self, data: Any, kind: Any, *, at: str) -> Any:
        """A named tuple, by position, or one text, number, flag or choice."""
        if not (isinstance(kind, type) and issubclass(kind, tuple)):
            return _scalar(data, kind, at=at)
        hints = list(_hints(kind).values())
        return kind(*self._each(_list(data, at=at), hints, at=at))

    def _as_it_is(self, data: Any, kind: Any, *, at: str) -> Any:
        return data

    def _object(self, data: Any, kind: Any, *, at: str) -> Any:
        told = _mapping(data, at=at)
        known = {field.name: field for field in _sent_fields(kind)}
        unknown = sorted(str(name) for name in told if name not in known)
        if unknown:
            raise ExecutionRequestError(
                at, f"unknown key {', '.join(unknown)}; known are {', '.join(known)}"
            )
        missing = [n for n, f in known.items() if n not in told and _default(f) is MISSING]
        if missing:
            raise ExecutionRequestError(at, f"{', '.join(missing)} is missing")
        hints = _hints(kind)
        values = {
            name: self.read(member, hints[name], at=f"{at}.{name}" if at else name)
            for name, member in told.items()
        }
        return self._made(lambda given: kind(**given), values, at=at)

    def _made(self, make: Callable[[Any], Any], value: Any, *, at: str) -> Any:
        """What is made of a value that was read; what it may not be is told with its path."""
        try:
            return make(value)
        except ExecutionRequestError:
            raise
        except EvenniaAIError as error:
            raise ExecutionRequestError(at, str(error)) from error

    def _counter(self, named: _CounterName, *, at: str) -> TokenCounter:
        for counter in self.counters:
            if _counter_name(counter) == named:
                return counter
        known = ", ".join(f"{one.name} {one.version}" for one in self.counters)
        raise ExecutionRequestError(
            at,
            f"the token counter {named.name} {named.version} is not known here ({known});"
            " give it to `from_dict` as one of `counters`",
        )

    def _tuple(self, data: Any, kind: Any, *, at: str) -> tuple[Any, ...]:
        listed, kinds = _list(data, at=at), get_args(kind)
        if len(kinds) == 2 and kinds[1] is Ellipsis:
            kinds = (kinds[0],) * len(listed)
        return self._each(listed, kinds, at=at)

    def _each(self, listed: list[Any], kinds: Sequence[Any], *, at: str) -> tuple[Any, ...]:
        if len(listed) != len(kinds):
            raise ExecutionRequestError(at, f"must have {len(kinds)} values, not {len(listed)}")
        both = enumerate(zip(listed, kinds, strict=True))
        return tuple(self.read(member, of, at=f"{at}[{index}]") for index, (member, of) in both)

    def _frozenset(self, data: Any, kind: Any, *, at: str) -> frozenset[Any]:
        (of,) = get_args(kind)
        return frozenset(
            self.read(member, of, at=f"{at}[{index}]")
            for index, member in enumerate(_list(data, at=at))
        )

    def _table(self, data: Any, kind: Any, *, at: str) -> dict[str, Any]:
        named, of = get_args(kind)
        told = _mapping(data, at=at)
        return {
            self.read(name, named, at=at): self.read(member, of, at=f"{at}.{name}")
            for name, member in told.items()
        }

    def _one_of(self, data: Any, kind: Any, *, at: str) -> Any:
        """A value of the first kind of a union that takes it."""
        wanted = [one for one in get_args(kind) if one is not NoneType]
        if data is None and len(wanted) < len(get_args(kind)):
            return None
        if len(wanted) == 1:
            return self.read(data, wanted[0], at=at)
        for one in wanted:
            try:
                return self.read(data, one, at=at)
            except ExecutionRequestError:  # the next kind is tried
                continue
        raise _wrong(data, kind, at=at)


_READS: Final[Mapping[Any, _Reads]] = {
    Any: PlainReader._as_it_is,
    tuple: PlainReader._tuple,
    frozenset: PlainReader._frozenset,
    Mapping: PlainReader._table,
    Union: PlainReader._one_of,
    UnionType: PlainReader._one_of,
}


@cache
def _hints(kind: Any) -> Mapping[str, Any]:
    return get_type_hints(kind)


def _scalar(data: Any, kind: Any, *, at: str) -> Any:
    """A text, a number, a flag or one of some choices."""
    if get_origin(kind) is Literal:
        if isinstance(data, str) and data in get_args(kind):
            return data
        raise _wrong(data, kind, at=at)
    if kind is float and isinstance(data, Mapping) and data.get(_NUMBER) in _NOT_FINITE:
        return float(data[_NUMBER])
    is_flag = isinstance(data, bool)
    if kind is float and isinstance(data, int | float) and not is_flag:
        return data
    if isinstance(data, kind) and is_flag == (kind is bool):
        return data
    raise _wrong(data, kind, at=at)


def _mapping(data: Any, *, at: str) -> Mapping[str, Any]:
    if not isinstance(data, Mapping):
        raise ExecutionRequestError(at, f"must be an object, not {type(data).__name__}")
    return data


def _list(data: Any, *, at: str) -> list[Any]:
    if not isinstance(data, list):
        raise ExecutionRequestError(at, f"must be a list, not {type(data).__name__}")
    return data


def _wrong(data: Any, kind: Any, *, at: str) -> ExecutionRequestError:
    if get_origin(kind) is Literal:
        wanted = f"one of {', '.join(map(str, get_args(kind)))}"
    else:
        named = get_args(kind) or (kind,)
        wanted = " or ".join(getattr(one, "__name__", str(one)) for one in named)
    return ExecutionRequestError(at, f"must be {wanted}, not {repr(data)[:60]}")
