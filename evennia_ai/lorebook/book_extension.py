"""Our own extension data of a book: `evennia_ai` under its `extensions`.

What no other program has a field for: the mode of the book. It is ours, so what is wrong in it is
an error. V3 books and world files have it at the same place, and no conversion loses it.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal, get_args

from evennia_ai.errors import FormatError
from evennia_ai.foreign.strict_json import one_line

# floating: each prompt has the entries that are active in it. frozen: an entry that wakes is said
# once, where it woke, and stays in the history.
BookMode = Literal["floating", "frozen"]
BOOK_MODES: Final[tuple[BookMode, ...]] = get_args(BookMode)
_OWN: Final = "evennia_ai"
_MODE: Final = "mode"


def mode_in(book: Mapping[str, Any], *, where: str) -> BookMode:
    """The mode that a book says, floating where it says none.

    FormatError: our extension data has a member it may not have, or another mode.
    """
    own = _object(book.get("extensions")).get(_OWN)
    if own is None:
        return "floating"
    at = f"{where}.extensions.{_OWN}"
    if not isinstance(own, dict):
        raise FormatError("book", f"{at}: must be an object of {_MODE}, not {_shown(own)}")
    for name in own.keys() - {_MODE}:
        raise FormatError("book", f"{at}: unknown member {_shown(name)}; it may be {_MODE}")
    mode = own.get(_MODE)
    if mode is None:
        return "floating"
    if mode not in BOOK_MODES:
        known = " or ".join(BOOK_MODES)
        raise FormatError("book", f"{at}.{_MODE}: must be {known}, not {_shown(mode)}")
    return mode  # type: ignore[no-any-return]


def saying_mode(book: Mapping[str, Any], mode: BookMode) -> dict[str, Any]:
    """The book with this mode in it; one that floats says nothing of it."""
    extensions = dict(_object(book.get("extensions")))
    own = {name: value for name, value in _object(extensions.get(_OWN)).items() if name != _MODE}
    if mode != "floating":
        own[_MODE] = mode
    extensions.pop(_OWN, None)
    if own:
        extensions[_OWN] = own
    kept = {name: value for name, value in book.items() if name != "extensions"}
    return {**kept, "extensions": extensions} if extensions or "extensions" in book else kept


def _shown(value: object) -> str:
    return one_line(repr(value))[:60]


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
