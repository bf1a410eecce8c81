"""Table: one mapping of foreign data, read key by key.

Every key a mapping may have is named when it is opened, so that a typing mistake is an error and
never a setting that silently does nothing. A value of the wrong type is never converted.
"""

import reprlib
from collections.abc import Collection, Sequence
from difflib import get_close_matches
from typing import Any, Final, TypeVar

from evennia_ai.errors import FormatError
from evennia_ai.prompt.components import MAX_DEPTH, is_plain_int

Choice = TypeVar("Choice", bound=str)
KIND: Final = "scenario"
MAX_NUMBER: Final = 10**9


class Table:
    """The mapping at `path`, "" for the whole file."""

    __slots__ = ("data", "path")

    def __init__(self, data: object, *, path: str, known: Collection[str]) -> None:
        if not isinstance(data, dict):
            raise wrong(path, data, "a mapping of " + ", ".join(known))
        unknown = [key for key in data if key not in known]
        if unknown:
            raise FormatError(KIND, _unknown_keys(unknown, path=path, known=known))
        self.data: dict[str, Any] = data
        self.path = path

    def at(self, key: str) -> str:
        """The path of a key."""
        return f"{self.path}.{key}" if self.path else key

    def has(self, key: str) -> bool:
        """Whether there is a value; `null` is none."""
        return self.data.get(key) is not None

    def text(self, key: str, default: str | None = None) -> str:
        """A text; without a default the key must be there."""
        if key not in self.data:
            if default is None:
                raise FormatError(KIND, f"{self.path}: the key '{key}' is missing")
            return default
        return text_at(self.at(key), self.data[key])

    def text_or_none(self, key: str) -> str | None:
        """A text, or None where there is none."""
        return text_at(self.at(key), self.data[key]) if self.has(key) else None

    def whole(self, key: str, default: int, *, low: int = 0) -> int:
        """A whole number from `low` on."""
        value = self.data.get(key, default)
        if not (is_plain_int(value) and low <= value <= MAX_NUMBER):
            raise wrong(self.at(key), value, f"a whole number from {low} to {MAX_NUMBER}")
        return int(value)

    def depth(self, key: str, default: int) -> int:
        """An injection depth; deeper than any history is the top of it all the same."""
        value = self.data.get(key, default)
        if not (is_plain_int(value) and value >= 0):
            raise wrong(self.at(key), value, "a whole number, 0 or more")
        return min(int(value), MAX_DEPTH)

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        value = self.data.get(key, default)
        if not isinstance(value, bool):
            raise wrong(self.at(key), value, "true or false")
        return value

    def choice(self, key: str, choices: Sequence[Choice], default: Choice | None = None) -> Choice:
        """One of `choices`; without a default the key must be there."""
        if default is not None and key not in self.data:
            return default
        return one_of(self.at(key), self.text(key), choices)

    def rows(self, key: str) -> list[tuple[str, Any]]:
        """The items of a list, each with its path; none where there is no list."""
        value = self.data.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            raise wrong(self.at(key), value, "a list")
        return [(f"{self.at(key)}[{index}]", item) for index, item in enumerate(value)]


def one_of(path: str, value: str, choices: Sequence[Choice]) -> Choice:
    """`value`, which must be one of `choices`."""
    for choice in choices:
        if value == choice:
            return choice
    raise wrong(path, value, "one of " + ", ".join(choices))


def text_at(path: str, value: object) -> str:
    """`value`, which must be text."""
    if not isinstance(value, str):
        raise wrong(path, value, "text")
    return value


def wrong(path: str, value: object, wanted: str) -> FormatError:
    """The error for a value that is not `wanted`."""
    where = path or "the scenario"
    return FormatError(KIND, f"{where}: {brief(value)} is not allowed: it must be {wanted}")


def brief(value: object) -> str:
    """`value` for a message, cut to what fits a line."""
    shown = reprlib.repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."


def _unknown_keys(unknown: Sequence[object], *, path: str, known: Collection[str]) -> str:
    named = ", ".join(f"'{str(key)[:60]}'" for key in unknown[:5])
    near = get_close_matches(str(unknown[0])[:60], known, n=1)
    meant = f"; did you mean '{near[0]}'?" if near else ""
    word = "unknown key" if len(unknown) == 1 else "unknown keys"
    where = f"{path}: " if path else ""
    return f"{where}{word} {named}{meant}; known keys are {', '.join(known)}"
