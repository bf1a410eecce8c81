"""Single values of foreign entries: what counts as a number, a flag, a list of texts.

Programs write the same thing in several ways: numbers as texts of digits, flags as 0 and 1, a
level as `true`. All of these are read; null is as if the field were not there. Anything else is
pydantic's error, which names the field.

`Where` is the place of a value: an error keeps the steps down to it beside its text, so that who
typed a field reads of that field and who wrote a file reads of a place in it.
"""

import math
import re
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import PlainValidator
from pydantic_core import PydanticCustomError

from evennia_ai.errors import FormatError
from evennia_ai.foreign.documents import one_line

_DIGITS: Final = re.compile(r"\s*[+-]?[0-9]{1,15}(?:\.[0-9]{1,15})?\s*", re.ASCII)


def _number(value: Any) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        read = float(value)
        return int(read) if read.is_integer() else read
    raise PydanticCustomError("number", "must be a number")


def _code(value: Any) -> int:
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
    """A list of texts; one text with commas is taken for a list of them."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",")]
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return value
    raise PydanticCustomError("texts", "must be a list of texts")


Number = Annotated[float, PlainValidator(_number)]
Code = Annotated[int, PlainValidator(_code)]
Count = Annotated[int, PlainValidator(_count)]
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
