"""Settings that a game gives one by one in a dictionary: what is wrong with them, in one way."""

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from evennia_ai.errors import FormatError


def near(wanted: str, known: Iterable[str]) -> str:
    """'; did you mean x?' where one of the known names is like the wanted one, else ""."""
    found = get_close_matches(str(wanted), list(known), n=1)
    return f"; did you mean {found[0]}?" if found else ""


def refuse_wrong(
    given: Any, known: Iterable[str], wanted: Callable[[str, Any], str], *, where: str
) -> None:
    """FormatError names the first of the given settings that cannot be.

    `wanted` says what the value of a known name must be, "" where it is that.
    """
    if not isinstance(given, Mapping):
        raise FormatError("setting", f"{where}: must be a dictionary")
    for name, value in given.items():
        if name not in known:
            raise FormatError("setting", f"{where}: there is no rule {name!r}{near(name, known)}")
        if problem := wanted(name, value):
            raise FormatError("setting", f"{where}.{name}: must be {problem}, not {value!r}")
