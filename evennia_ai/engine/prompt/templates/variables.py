"""Variables: values that texts of one prompt set for the texts after them, and their cost.

`{{setvar::name::value}}` and similar macros are SillyTavern's. There a variable lasts as long as a
chat, or as the program. Here it lasts for one composition, which starts without any, because a
prompt is a function of its inputs. Local and global variables are different, but last equally long.

A text reads what earlier texts set, and leaves what it changed. Setting and reading are paid by
length (`work`), so texts that double a value again and again end at a limit. The error names it.
"""

import re
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

from evennia_ai.engine.errors import TemplateError
from evennia_ai.engine.prompt.templates.work import COPIED_A_UNIT, Meter

MAX_NAME: Final = 200  # characters
MAX_VALUE: Final = 200_000

Operation = Literal["set", "add", "inc", "dec", "get"]


class Variable(NamedTuple):
    """The name of a variable. `str` gives its name in reports."""

    name: str
    is_global: bool = False

    def __str__(self) -> str:
        return f"global {self.name}" if self.is_global else self.name


Found = Mapping[Variable, str]
NOTHING_SET: Final[Found] = {}


class Variables:
    """The variables that one text may read, and those that it changes."""

    __slots__ = ("_found", "_meter", "_under", "changed", "read")

    def __init__(
        self, found: Found = NOTHING_SET, *, meter: Meter, under: Found = NOTHING_SET
    ) -> None:
        """Start a text.

        Args:
            found: The variables that it may read.
            meter: The work that it may do.
            under: Variables to read if `found` has no value.
        """
        self._found, self._under, self._meter = found, under, meter
        self.changed: dict[Variable, str] = {}
        self.read: dict[Variable, None] = {}

    def get(self, variable: Variable) -> str:
        """Return the value of a variable, "" if no text set it."""
        value = ""
        for known in (self.changed, self._found, self._under):
            if variable in known:
                value = known[variable]
                break
        self._meter.pay(len(value) // COPIED_A_UNIT)
        self.read[variable] = None
        return value

    def set(self, variable: Variable, value: str) -> None:
        """Set a variable for the texts after this one.

        Raises:
            TemplateError: its name or its value is too long.
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
        """Add a number to a number, or append a text to a text, and return the new value."""
        before = self.get(variable)
        value = _sum(before, more)
        self.set(variable, before + more if value is None else value)
        return self.changed[variable]


def _clipped(variable: Variable) -> str:
    return str(variable)[:40]


_NUMBER: Final = re.compile(r"\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\s*")
_LONGEST_NUMBER: Final = 100
_WHOLE_BELOW: Final = 1e21  # larger ones are written with an exponent


def _sum(before: str, more: str) -> str | None:
    """Return the sum of two numbers as SillyTavern writes it, None if one is not a number."""
    total = 0.0
    for text in (before or "0", more):
        if len(text) > _LONGEST_NUMBER or not _NUMBER.fullmatch(text):
            return None
        total += float(text)
    if total.is_integer() and abs(total) < _WHOLE_BELOW:
        return str(int(total))
    written = repr(total)
    return None if "n" in written else written.replace("e-0", "e-")
