"""Variables: what the texts of one prompt set for those behind them, and what that may cost.

`{{setvar::name::value}}` and its kin are SillyTavern's. There they last as long as a chat, or as
the program; here as long as one composition, which begins with none: a prompt is a function of its
inputs. Local and global ones are told apart by the kind, and live equally long.

A text reads what was set before it and leaves what it changed, so that whoever expands a list of
texts hands the values from one to the next. All that is set or read is paid for by its length:
texts that double a value again and again end at a limit, which the error names.
"""

import re
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

from evennia_ai.errors import TemplateError

MAX_VARIABLES: Final = 2_000
"""Variables that the texts of one prompt may set."""
MAX_NAME: Final = 200
MAX_VALUE: Final = 200_000
"""Characters that a name and a value may have."""
MAX_MOVED: Final = 4_000_000
"""Characters that the texts of one prompt may set and read."""
MAX_MOVED_CONTAINED: Final = MAX_MOVED // 10
"""The same for those that nobody vouches for."""
MAX_MOVED_ALONE: Final = 50_000
"""The same for a text that is expanded by itself, as an entry of lore is."""

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
    """What one text finds set, what it changes, and how many characters it may still move."""

    __slots__ = ("_found", "_most", "_new", "_under", "changed", "is_short", "moved", "read")

    def __init__(
        self,
        found: Found = NOTHING_SET,
        *,
        under: Found = NOTHING_SET,
        room: int = MAX_MOVED_ALONE,
        new: int = MAX_VARIABLES,
    ) -> None:
        """`under` is read where `found` has no value; `new` more variables may be set."""
        self._found, self._under, self._most = found, under, room
        self._new = new
        self.changed: dict[Variable, str] = {}
        self.read: dict[Variable, None] = {}
        self.moved = 0
        self.is_short = False
        """Whether it ended at a limit that it shares with other texts."""

    def get(self, variable: Variable) -> str:
        """Its value, "" where nothing set it."""
        value = self._value(variable) or ""
        self._pay(len(value))
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
        if self._value(variable) is None:
            self._new -= 1
            if self._new < 0:
                self.is_short = True
                raise TemplateError(
                    f"the texts of one prompt set more than {MAX_VARIABLES} variables; set fewer"
                )
        self._pay(len(value))
        self.changed[variable] = value

    def add(self, variable: Variable, more: str) -> str:
        """Add a number to a number, or put a text behind what is there; the new value."""
        before = self.get(variable)
        value = _sum(before, more)
        self.set(variable, before + more if value is None else value)
        return self.changed[variable]

    def has_room(self, characters: int) -> bool:
        """Whether so many characters may still be moved; then they are."""
        if self.moved + characters > self._most:
            self.is_short = True
            return False
        self.moved += characters
        return True

    def _value(self, variable: Variable) -> str | None:
        for known in (self.changed, self._found, self._under):
            if variable in known:
                return known[variable]
        return None

    def _pay(self, characters: int) -> None:
        if not self.has_room(characters):
            raise TemplateError(
                f"sets and reads variables of more than the {self._most} characters that there is"
                " room for; set shorter ones, or read them less often"
            )


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
