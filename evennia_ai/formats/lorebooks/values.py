"""Single values of lore entries: lenient parsers for files, and strict checks for builders.

Programs write the same value in several ways: numbers as text, flags as 0, 1 and "true", a level as
`true`. The parsers accept all of these, and null counts as missing. Anything else is an error of
pydantic, which `read_leniently` turns into a notice.

The checks (`a_flag`, `one_of(...)`) are for values from builders and for the `evennia_ai` data. A
check returns "" for a valid value, else a description of valid values, for example "a number from 0
to 100".

`Where` is the path of a value. Errors keep the steps of the path, so that builders read the name of
a field and authors of files read the path in the file.
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


def parse_code(value: Any) -> int:
    """Parse a whole number that SillyTavern uses as a code for a word."""
    if type(value) is int:
        return value
    read = _number(value)
    if read != int(read):
        raise PydanticCustomError("code", "must be a whole number")
    return int(read)


def _count(value: Any) -> int:
    """Parse a count: negative numbers become 0, fractions are rounded up, `true` becomes 1."""
    return max(math.ceil(value if isinstance(value, bool) else _number(value)), 0)


def read_flag(value: Any) -> bool:
    """Parse a true-or-false value, which programs also write as 0 or 1, or as text."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int) and value in (0, 1):
        return bool(value)
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    raise PydanticCustomError("flag", "must be true or false")


def parse_identifier(value: Any) -> str:
    """Parse an id, which is a text or a number, as one line of text."""
    if isinstance(value, str):
        return one_line(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise PydanticCustomError("identifier", "must be a number or a text")


def _texts(value: Any) -> list[str]:
    """Parse a list of texts; a single text is split at its commas.

    Numbers in the list become text, other items are left out.
    """
    if isinstance(value, str):
        return [part.strip() for part in value.split(",")]
    if not isinstance(value, list):
        raise PydanticCustomError("texts", "must be a list of texts")
    if all(isinstance(item, str) for item in value):
        return value
    return [item if isinstance(item, str) else str(item) for item in value if is_text(item)]


def is_text(item: Any) -> bool:
    """True if a value is text, or a number that can be used as text."""
    return isinstance(item, str) or is_number(item)


def _whole_count(value: Any) -> int:
    """Parse a whole number of 0 or more, also one written as text."""
    read = parse_code(value)
    if read < 0:
        raise PydanticCustomError("count", "must be 0 or more")
    return read


Number = Annotated[float, PlainValidator(_number)]
Code = Annotated[int, PlainValidator(parse_code)]
Count = Annotated[int, PlainValidator(_count)]
WholeCount = Annotated[int, PlainValidator(_whole_count)]
Flag = Annotated[bool, PlainValidator(read_flag)]
Identifier = Annotated[str, PlainValidator(parse_identifier)]
Texts = Annotated[list[str], PlainValidator(_texts)]


Step = str | int


@dataclass(frozen=True, slots=True)
class Where:
    """The path of a value in a file, such as `entry.when[0].test`."""

    within: str
    """The name of the value from which the path starts."""
    steps: tuple[Step, ...] = ()

    def __truediv__(self, step: Step) -> "Where":
        """Return the path of a member, given by its name, or of an item, given by its index."""
        return Where(self.within, (*self.steps, step))

    def __str__(self) -> str:
        down = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.steps)
        return self.within + "".join(down)

    def wrong(self, wanted: str, value: Any) -> FormatError:
        """Return an error that names the path, the value there and the allowed values."""
        return self.refused(f"must be {wanted}, not {one_line(repr(value))[:60]}")

    def refused(self, problem: str) -> FormatError:
        """Return an error that names the path and a problem with the value there."""
        return FormatError("book", f"{self}: {problem}", path=self.steps, problem=problem)


Check = Callable[[Any], str]
MAX_COUNT: Final = 10**9


def is_number(value: Any) -> bool:
    """True for a number; True and False are not numbers here."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def a_flag(value: Any) -> str:
    """Return "" for true or false, else a description of valid values."""
    return "" if isinstance(value, bool) else "true or false"


def a_number(value: Any) -> str:
    """Return "" for a number, else a description of valid values."""
    return "" if is_number(value) else "a number"


def a_bounded_number(value: Any) -> str:
    """Return "" for a number within +/-`MAX_COUNT`, else a description of valid values."""
    fits = is_number(value) and abs(value) <= MAX_COUNT
    return "" if fits else a_number(value) or f"a number from {-MAX_COUNT} to {MAX_COUNT}"


def a_percent(value: Any) -> str:
    """Return "" for a number from 0 to 100, else a description of valid values."""
    return "" if is_number(value) and 0 <= value <= 100 else "a number from 0 to 100"


def a_count(value: Any) -> str:
    """Return "" for a whole number of at least 0, else a description of valid values."""
    return "" if type(value) is int and value >= 0 else "a whole number, 0 or more"


def a_count_up_to(most: int) -> Check:
    """Return a check that accepts whole numbers from 0 to `most`."""

    def check(value: Any) -> str:
        return a_count(value) or ("" if value <= most else f"{a_count(None)}, at most {most}")

    return check


def one_of(*choices: str) -> Check:
    """Return a check that accepts one of these words."""
    return lambda value: "" if value in choices else "one of " + ", ".join(choices)


def some_of(*choices: str) -> Check:
    """Return a check that accepts a list of these words."""

    def check(value: Any) -> str:
        fits = isinstance(value, list) and all(name in choices for name in value)
        return "" if fits else "a list of " + ", ".join(choices)

    return check


def a_line(most: int) -> Check:
    """Return a check that accepts one line of at most `most` characters."""

    def check(value: Any) -> str:
        fits = isinstance(value, str) and len(value) <= most and "\n" not in value
        return "" if fits else f"one line of at most {most} characters"

    return check


def a_text(most: int) -> Check:
    """Return a check that accepts text of at most `most` characters."""
    wanted = f"a text of at most {most} characters"
    return lambda value: "" if isinstance(value, str) and len(value) <= most else wanted


def a_name(most: int) -> Check:
    """Return a check that accepts a text of 1 to `most` characters.

    A text of blanks and exclamation marks only counts as empty.
    """
    wanted = f"a text of 1 to {most} characters"
    return lambda value: (
        "" if isinstance(value, str) and value.strip("! ") and len(value) <= most else wanted
    )


def a_list(most: int) -> Check:
    """Return a check that accepts a list of at most `most` items of any type."""
    wanted = f"a list of at most {most}"
    return lambda value: "" if isinstance(value, list) and len(value) <= most else wanted


def any_value(value: Any) -> str:
    """Return "" for any value, because the reader of the field checks the value."""
    return ""
