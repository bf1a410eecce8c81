"""Variables: values that texts of a prompt set for the texts after them.

`{{setvar::name::value}}` and similar macros come from SillyTavern. There a local variable lasts as
long as the chat, and a global one for all chats. Here both last for one prompt, and each prompt
starts without variables, because a prompt is a function of its inputs. A local and a global
variable of the same name are different variables.

A text can read variables that earlier texts set. Setting and reading are charged as work by the
length of the value (module `work`). So texts that double a value again and again reach a limit.
"""

import re
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

from evennia_ai.engine.errors import TemplateError
from evennia_ai.engine.prompt.templates.work import COPIED_A_UNIT, Meter

MAX_NAME: Final = 200  # limits in characters
MAX_VALUE: Final = 200_000

Operation = Literal["set", "add", "inc", "dec", "get"]


class Variable(NamedTuple):
    """The name of a template variable. `str` returns the name in reports."""

    name: str
    is_global: bool = False

    def __str__(self) -> str:
        return f"global {self.name}" if self.is_global else self.name


Found = Mapping[Variable, str]
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
        self.changed: dict[Variable, str] = {}
        self.read: dict[Variable, None] = {}

    def get(self, variable: Variable) -> str:
        """Return the value of a variable; "" if no text set it."""
        value = ""
        for known in (self.changed, self._found, self._under):
            if variable in known:
                value = known[variable]
                break
        self._meter.pay(len(value) // COPIED_A_UNIT)
        self.read[variable] = None
        return value

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
        value = _sum(before, more)
        self.set(variable, before + more if value is None else value)
        return self.changed[variable]


def _clipped(variable: Variable) -> str:
    return str(variable)[:40]


_NUMBER: Final = re.compile(r"\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\s*")
_LONGEST_NUMBER: Final = 100
_WHOLE_BELOW: Final = 1e21  # JavaScript writes larger numbers with an exponent


def _sum(before: str, more: str) -> str | None:
    """Return the sum of two numbers as SillyTavern writes it; None if one is not a number."""
    total = 0.0
    for text in (before or "0", more):
        if len(text) > _LONGEST_NUMBER or not _NUMBER.fullmatch(text):
            return None
        total += float(text)
    if total.is_integer() and abs(total) < _WHOLE_BELOW:
        return str(int(total))
    written = repr(total)
    return None if "n" in written else written.replace("e-0", "e-")
