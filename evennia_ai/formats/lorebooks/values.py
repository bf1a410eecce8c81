"""Single values of foreign entries: what counts as a number, a flag, a list of texts.

Programs write the same thing in several ways: numbers as texts of digits, flags as 0, 1 and
"true", a level as `true`. All of these are read; null is as if the field were not there. Anything
else is pydantic's error, and `read_leniently` makes a notice of it. What builders and our own data
say is checked strictly: each check says what was wanted, "" where the value is that.

`Where` is the place of a value: an error keeps the steps down to it beside its text, so that who
typed a field reads of that field and who wrote a file reads of a place in it.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import PlainValidator
from pydantic_core import PydanticCustomError

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.foreign.documents import one_line

_DIGITS: Final = re.compile(r"\s*[+-]?[0-9]{1,15}(?:\.[0-9]{1,15})?\s*", re.ASCII)


def _number(value: Any) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        read = float(value)
        return int(read) if read.is_integer() else read
    raise PydanticCustomError("number", "must be a number")


def code(value: Any) -> int:
    """A whole number, which stands for something."""
    if type(value) is int:
        return value
    read = _number(value)
    if read != int(read):
        raise PydanticCustomError("code", "must be a whole number")
    return int(read)


def _count(value: Any) -> int:
    """How many: never below 0, a part counts as a whole one, `true` as one."""
    return max(math.ceil(value if isinstance(value, bool) else _number(value)), 0)


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, int) and value in (0, 1):
        return bool(value)
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    raise PydanticCustomError("flag", "must be true or false")


def identifier(value: Any) -> str:
    """The id that a text or a number is."""
    if isinstance(value, str):
        return one_line(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise PydanticCustomError("identifier", "must be a number or a text")


def _texts(value: Any) -> list[str]:
    """A list of texts; one text is split at its commas.

    In a list a number is the text it is written as, and what is neither is left out.
    """
    if isinstance(value, str):
        return [part.strip() for part in value.split(",")]
    if not isinstance(value, list):
        raise PydanticCustomError("texts", "must be a list of texts")
    if all(isinstance(item, str) for item in value):
        return value
    return [item if isinstance(item, str) else str(item) for item in value if is_text(item)]


def is_text(item: Any) -> bool:
    """True if an item of a list is a text, or a number that can stand for one."""
    return isinstance(item, str) or is_number(item)


def _whole_count(value: Any) -> int:
    """A whole number of 0 or more, also as a text of digits."""
    read = code(value)
    if read < 0:
        raise PydanticCustomError("count", "must be 0 or more")
    return read


Number = Annotated[float, PlainValidator(_number)]
Code = Annotated[int, PlainValidator(code)]
Count = Annotated[int, PlainValidator(_count)]
WholeCount = Annotated[int, PlainValidator(_whole_count)]
Flag = Annotated[bool, PlainValidator(_flag)]
Identifier = Annotated[str, PlainValidator(identifier)]
Texts = Annotated[list[str], PlainValidator(_texts)]


Step = str | int


@dataclass(frozen=True, slots=True)
class Where:
    """A member of foreign data; as text it is a path such as `entry.when[0].test`.

    `within` is the text that stands before the steps.
    """

    within: str
    steps: tuple[Step, ...] = ()

    def __truediv__(self, step: Step) -> "Where":
        """The member of this name, or the item of this index, in it."""
        return Where(self.within, (*self.steps, step))

    def __str__(self) -> str:
        down = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.steps)
        return self.within + "".join(down)

    def wrong(self, wanted: str, value: Any) -> FormatError:
        """The error that this is not what was wanted."""
        return self.refused(f"must be {wanted}, not {one_line(repr(value))[:60]}")

    def refused(self, problem: str) -> FormatError:
        """The error that says so of this place."""
        return FormatError("book", f"{self}: {problem}", path=self.steps, problem=problem)


Check = Callable[[Any], str]
MAX_COUNT: Final = 10**9


def is_number(value: Any) -> bool:
    """Whether it is a number; a flag is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def a_flag(value: Any) -> str:
    """True or false."""
    return "" if isinstance(value, bool) else "true or false"


def a_number(value: Any) -> str:
    """Any number."""
    return "" if is_number(value) else "a number"


def a_bounded_number(value: Any) -> str:
    """A number of a size that somebody may mean."""
    fits = is_number(value) and abs(value) <= MAX_COUNT
    return "" if fits else a_number(value) or f"a number from {-MAX_COUNT} to {MAX_COUNT}"


def a_percent(value: Any) -> str:
    """A share of a hundred."""
    return "" if is_number(value) and 0 <= value <= 100 else "a number from 0 to 100"


def a_count(value: Any) -> str:
    """How many."""
    return "" if type(value) is int and value >= 0 else "a whole number, 0 or more"


def a_count_up_to(most: int) -> Check:
    """How many, with an end."""

    def check(value: Any) -> str:
        return a_count(value) or ("" if value <= most else f"{a_count(None)}, at most {most}")

    return check


def one_of(*choices: str) -> Check:
    """One of these words."""
    return lambda value: "" if value in choices else "one of " + ", ".join(choices)


def some_of(*choices: str) -> Check:
    """A list of these words."""

    def check(value: Any) -> str:
        fits = isinstance(value, list) and all(name in choices for name in value)
        return "" if fits else "a list of " + ", ".join(choices)

    return check


def a_line(most: int) -> Check:
    """One line of so many characters."""

    def check(value: Any) -> str:
        fits = isinstance(value, str) and len(value) <= most and "\n" not in value
        return "" if fits else f"one line of at most {most} characters"

    return check


def a_text(most: int) -> Check:
    """A text of so many characters."""
    wanted = f"a text of at most {most} characters"
    return lambda value: "" if isinstance(value, str) and len(value) <= most else wanted


def a_name(most: int) -> Check:
    """A text that says something."""
    wanted = f"a text of 1 to {most} characters"
    return lambda value: (
        "" if isinstance(value, str) and value.strip("! ") and len(value) <= most else wanted
    )


def a_list(most: int) -> Check:
    """A list of so many items, whatever they are."""
    wanted = f"a list of at most {most}"
    return lambda value: "" if isinstance(value, list) and len(value) <= most else wanted


def anything(value: Any) -> str:
    """Anything: it is checked where it is read."""
    return ""
