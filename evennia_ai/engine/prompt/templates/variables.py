"""Variables: what the texts of one prompt set for those behind them, and what that may cost.

`{{setvar::name::value}}` and its kin are SillyTavern's. There they last as long as a chat, or as
the program; here as long as one composition, which begins with none: a prompt is a function of its
inputs. Local and global ones are told apart by the kind, and live equally long.

A text reads what was set before it and leaves what it changed, so that whoever expands a list of
texts hands the values from one to the next. All that is set or read is paid for by its length
(`work`): texts that double a value again and again end at a limit, which the error names.
"""

import re
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

from evennia_ai.engine.errors import TemplateError
from evennia_ai.engine.prompt.templates.work import COPIED_A_UNIT, Meter

MAX_NAME: Final = 200
MAX_VALUE: Final = 200_000
"""Characters that a name and a value may have."""

Operation = Literal["set", "add", "inc", "dec", "get"]


class Variable(NamedTuple):
    """The name of a variable; `str` is how it is told."""

    name: str
    is_global: bool = False

    def __str__(self) -> str:
        return f"global {self.name}" if self.is_global else self.name


Found = Mapping[Variable, str]
NOTHING_SET: Final[Found] = {}


class Variables:
    """What one text finds set, and what it changes."""

    __slots__ = ("_found", "_meter", "_under", "changed", "read")

    def __init__(
        self, found: Found = NOTHING_SET, *, meter: Meter, under: Found = NOTHING_SET
    ) -> None:
        """`under` is read where `found` has no value."""
        self._found, self._under, self._meter = found, under, meter
        self.changed: dict[Variable, str] = {}
        self.read: dict[Variable, None] = {}

    def get(self, variable: Variable) -> str:
        """Its value, "" where nothing set it."""
        value = ""
        for known in (self.changed, self._found, self._under):
            if variable in known:
                value = known[variable]
                break
        self._meter.pay(len(value) // COPIED_A_UNIT)
        self.read[variable] = None
        return value

    def set(self, variable: Variable, value: str) -> None:
        """Give it a value for whatever comes behind."""
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
        """Add a number to a number, or put a text behind what is there; the new value."""
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
    """Two numbers added, as SillyTavern writes the result; None where one is no number."""
    total = 0.0
    for text in (before or "0", more):
        if len(text) > _LONGEST_NUMBER or not _NUMBER.fullmatch(text):
            return None
        total += float(text)
    if total.is_integer() and abs(total) < _WHOLE_BELOW:
        return str(int(total))
    written = repr(total)
    return None if "n" in written else written.replace("e-0", "e-")
