"""Variables: values that texts of a prompt set for the texts after them.

`{{setvar::name::value}}`, its short form `{{.name = value}}` and others come from SillyTavern.
There a local variable lasts as long as the chat, and a global one for all chats. Here both last for
one prompt, and each prompt starts without variables, because a prompt is a function of its inputs.
A local and a global variable of the same name are different variables.

A text can read variables that earlier texts set. Setting and reading are charged as work by the
length of the value (module `work`). So texts that double a value again and again reach a limit.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NamedTuple

from evennia_ai.engine.errors import TemplateError
from evennia_ai.engine.prompt.templates.work import COPIED_A_UNIT, Meter

MAX_NAME: Final = 200  # limits in characters
MAX_VALUE: Final = 200_000

Operation = Literal[
    "get",
    "set",
    "add",
    "subtract",
    "inc",
    "dec",
    "has",
    "delete",
    "or",
    "or_set",
    "default",
    "default_set",
    "equal",
    "unequal",
    "more",
    "least",
    "less",
    "most",
    "get_key",
    "set_key",
]
ONLY_SET: Final[frozenset[Operation]] = frozenset({"set", "delete"})
"""The operations that do not read the variable."""
CHANGING: Final[frozenset[Operation]] = ONLY_SET | {
    *("add", "subtract", "inc", "dec", "or_set", "default_set", "set_key"),
}
"""The operations that may change the variable."""


class Variable(NamedTuple):
    """The name of a template variable. `str` returns the name in reports."""

    name: str
    is_global: bool = False

    def __str__(self) -> str:
        return f"global {self.name}" if self.is_global else self.name


# The value of each variable that a text set; None if a text deleted it
Found = Mapping[Variable, str | None]
NOTHING_SET: Final[Found] = {}


class Variables:
    """The variables that one text may read, and the changes that the text makes to them."""

    __slots__ = ("_found", "_meter", "_under", "changed", "read")

    def __init__(
        self, found: Found = NOTHING_SET, *, meter: Meter, under: Found = NOTHING_SET
    ) -> None:
        """Prepare the variables for one text.

        Args:
            found: The variables that the text may read.
            meter: The work that the text may do.
            under: The variables to read if `found` does not have the variable.
        """
        self._found, self._under, self._meter = found, under, meter
        self.changed: dict[Variable, str | None] = {}
        self.read: dict[Variable, None] = {}

    def get(self, variable: Variable) -> str:
        """Return the value of a variable; "" if no text set it."""
        value = self._value(variable) or ""
        self._meter.pay(len(value) // COPIED_A_UNIT)
        return value

    def has(self, variable: Variable) -> bool:
        """True if a text set the variable, also if its value is empty."""
        return self._value(variable) is not None

    def delete(self, variable: Variable) -> None:
        """Delete a variable for the rest of this text and for the texts after it."""
        self.changed[variable] = None

    def charge(self, work: int) -> None:
        """Charge work that an operation needs in addition to reading and setting."""
        self._meter.pay(work)

    def _value(self, variable: Variable) -> str | None:
        self.read[variable] = None
        for known in (self.changed, self._found, self._under):
            if variable in known:
                return known[variable]
        return None

    def set(self, variable: Variable, value: str) -> None:
        """Set a variable for the rest of this text and for the texts after it.

        Raises:
            TemplateError: the name or the value is too long.
        """
        if len(variable.name) > MAX_NAME:
            raise TemplateError(
                f"the name of a variable has more than {MAX_NAME} characters; shorten it"
            )
        if len(value) > MAX_VALUE:
            raise TemplateError(
                f"the variable '{_clipped(variable)}' would have more than {MAX_VALUE} characters;"
                " set it to less"
            )
        self._meter.pay(len(value) // COPIED_A_UNIT)
        self.changed[variable] = value

    def add(self, variable: Variable, more: str) -> str:
        """Add a text or number to the value of a variable, and return its new value.

        Two numbers are added; otherwise `more` is appended as text.
        """
        before = self.get(variable)
        total = _sum(before, more)
        value = before + more if total is None else total
        self.set(variable, value)
        return value


def _clipped(variable: Variable) -> str:
    return str(variable)[:40]


_NUMBER: Final = re.compile(r"\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\s*")
_LONGEST_NUMBER: Final = 100
_WHOLE_BELOW: Final = 1e21  # JavaScript writes larger numbers with an exponent


def _sum(before: str, more: str) -> str | None:
    """Return the sum of two numbers as SillyTavern writes it; None if one is not a number."""
    numbers = [_number(text) for text in (before or "0", more or "0")]
    if None in numbers:
        return None
    return _written(sum(number for number in numbers if number is not None))


def _number(text: str) -> float | None:
    is_number = len(text) <= _LONGEST_NUMBER and _NUMBER.fullmatch(text)
    return float(text) if is_number else None


def _written(number: float) -> str | None:
    """Return a number as SillyTavern writes it; None if it is infinite."""
    if number.is_integer() and abs(number) < _WHOLE_BELOW:
        return str(int(number))
    written = repr(number)
    return None if "n" in written else written.replace("e-0", "e-")


_MOST_DIGITS: Final = 15  # a floating-point number keeps so many digits


def as_shown(value: str) -> str:
    """Return the value of a variable as a text shows it: numbers are written the same way."""
    number = _number(value) if len(value) <= _MOST_DIGITS else None
    return value if number is None else _written(number) or value


_FALSE: Final = frozenset({"false", "off", "0"})


def is_true(text: str) -> bool:
    """True unless a text is empty, or `false`, `off` or `0` in any case and with blanks around."""
    return bool(text) and text.strip().lower() not in _FALSE


# Returns an argument of an operation. An argument is only expanded if the operation needs it.
Argument = Callable[[int], str]


def operate(
    operation: Operation, variables: Variables, variable: Variable, argument: Argument
) -> str:
    """Do an operation of a macro on a variable, and return the text that replaces the macro.

    Raises:
        TemplateError: a name or a value is too long.
    """
    return _OPERATIONS[operation](variables, variable, argument)


def _set(variables: Variables, variable: Variable, argument: Argument) -> str:
    variables.set(variable, argument(0))
    return ""


def _add(variables: Variables, variable: Variable, argument: Argument) -> str:
    variables.add(variable, argument(0))
    return ""


def _subtract(variables: Variables, variable: Variable, argument: Argument) -> str:
    number = _number(argument(0))
    if number is not None:
        variables.add(variable, _written(-number) or "0")
    return ""


def _delete(variables: Variables, variable: Variable, _: Argument) -> str:
    variables.delete(variable)
    return ""


def _get(variables: Variables, variable: Variable, _: Argument) -> str:
    return as_shown(variables.get(variable))


def _or(variables: Variables, variable: Variable, argument: Argument) -> str:
    value = _get(variables, variable, argument)
    return value if is_true(value) else argument(0)


def _default(variables: Variables, variable: Variable, argument: Argument) -> str:
    value = _get(variables, variable, argument)
    return value if variables.has(variable) else argument(0)


def _set_to(operation: "_Operation") -> "_Operation":
    """Return an operation that sets the variable to the result of another one."""

    def change(variables: Variables, variable: Variable, argument: Argument) -> str:
        value = operation(variables, variable, argument)
        variables.set(variable, value)
        return value

    return change


def _test(met: Callable[[Any, Any], bool], *, of_numbers: bool = True) -> "_Operation":
    """Return an operation that compares the variable with its argument."""

    def compare(variables: Variables, variable: Variable, argument: Argument) -> str:
        value, other = _get(variables, variable, argument), as_shown(argument(0))
        if not of_numbers:
            return _truth(met(value, other))
        one, two = _number(value), _number(other)
        return _truth(one is not None and two is not None and met(one, two))

    return compare


def _truth(met: bool) -> str:
    return "true" if met else "false"


def _container(variables: Variables, variable: Variable) -> Any:
    """Return the list or object that a variable has as JSON; None if it has neither."""
    text = variables.get(variable)
    variables.charge(len(text) // _PARSED_A_UNIT)
    try:
        value = json.loads(text) if text[:1] in ("[", "{") else None
    except (ValueError, RecursionError):
        return None
    return value


_PARSED_A_UNIT: Final = 5  # the number of characters of JSON that are read for one unit of work
_LONGEST_INDEX: Final = 6


def _index(key: str) -> int | None:
    """Return the index of a list that a key names, or None."""
    is_index = key.isascii() and key.isdecimal() and len(key) <= _LONGEST_INDEX
    return int(key) if is_index else None


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _get_key(variables: Variables, variable: Variable, argument: Argument) -> str:
    value, key = _container(variables, variable), argument(0)
    if value is None:
        return _get(variables, variable, argument)
    found, index = None, _index(key)
    if isinstance(value, dict):
        found = value.get(key)
    elif isinstance(value, list) and index is not None and index < len(value):
        found = value[index]
    return "" if found is None else as_shown(found) if isinstance(found, str) else _json(found)


def _set_key(variables: Variables, variable: Variable, argument: Argument) -> str:
    value, key, item = _container(variables, variable), argument(0), argument(1)
    index = _index(key)
    if not isinstance(value, list):
        value = {**(value or {}), key: item}
    elif index is not None and index <= len(value):
        value[index : index + 1] = [item]
    variables.set(variable, _json(value))
    return ""


_Operation = Callable[[Variables, Variable, Argument], str]
_OPERATIONS: Final[Mapping[Operation, _Operation]] = {
    "get": _get,
    "set": _set,
    "add": _add,
    "subtract": _subtract,
    "inc": lambda variables, variable, _: variables.add(variable, "1"),
    "dec": lambda variables, variable, _: variables.add(variable, "-1"),
    "has": lambda variables, variable, _: _truth(variables.has(variable)),
    "delete": _delete,
    "or": _or,
    "or_set": _set_to(_or),
    "default": _default,
    "default_set": _set_to(_default),
    "equal": _test(lambda one, other: one == other, of_numbers=False),
    "unequal": _test(lambda one, other: one != other, of_numbers=False),
    "more": _test(lambda one, other: one > other),
    "least": _test(lambda one, other: one >= other),
    "less": _test(lambda one, other: one < other),
    "most": _test(lambda one, other: one <= other),
    "get_key": _get_key,
    "set_key": _set_key,
}
