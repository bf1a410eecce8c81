"""What a value of lore may be: each check says what was wanted, "" where the value is that."""

from collections.abc import Callable
from typing import Any, Final

Check = Callable[[Any], str]
MAX_COUNT: Final = 10**9


def is_number(value: Any) -> bool:
    """Whether it is a number; a flag is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def flag(value: Any) -> str:
    """True or false."""
    return "" if isinstance(value, bool) else "true or false"


def number(value: Any) -> str:
    """Any number."""
    return "" if is_number(value) else "a number"


def bounded_number(value: Any) -> str:
    """A number of a size that somebody may mean."""
    fits = is_number(value) and abs(value) <= MAX_COUNT
    return "" if fits else number(value) or f"a number from {-MAX_COUNT} to {MAX_COUNT}"


def percent(value: Any) -> str:
    """A share of a hundred."""
    return "" if is_number(value) and 0 <= value <= 100 else "a number from 0 to 100"


def count(value: Any) -> str:
    """How many."""
    return "" if type(value) is int and value >= 0 else "a whole number, 0 or more"


def count_up_to(most: int) -> Check:
    """How many, with an end."""

    def check(value: Any) -> str:
        return count(value) or ("" if value <= most else f"{count(None)}, at most {most}")

    return check


def or_null(check: Check) -> Check:
    """The same, or nothing."""
    return lambda value: "" if value is None or not check(value) else f"{check(value)}, or null"


def one_of(*choices: str) -> Check:
    """One of these words."""
    return lambda value: "" if value in choices else "one of " + ", ".join(choices)


def some_of(*choices: str) -> Check:
    """A list of these words."""

    def check(value: Any) -> str:
        fits = isinstance(value, list) and all(name in choices for name in value)
        return "" if fits else "a list of " + ", ".join(choices)

    return check


def line(most: int) -> Check:
    """One line of so many characters."""

    def check(value: Any) -> str:
        fits = isinstance(value, str) and len(value) <= most and "\n" not in value
        return "" if fits else f"one line of at most {most} characters"

    return check


def text(most: int) -> Check:
    """A text of so many characters."""
    wanted = f"a text of at most {most} characters"
    return lambda value: "" if isinstance(value, str) and len(value) <= most else wanted


def name(most: int) -> Check:
    """A text that says something."""
    wanted = f"a text of 1 to {most} characters"
    return lambda value: (
        "" if isinstance(value, str) and value.strip("! ") and len(value) <= most else wanted
    )


def list_up_to(most: int) -> Check:
    """A list of so many items, whatever they are."""
    wanted = f"a list of at most {most}"
    return lambda value: "" if isinstance(value, list) and len(value) <= most else wanted


def any_value(value: Any) -> str:
    """Anything: it is checked where it is read."""
    return ""
