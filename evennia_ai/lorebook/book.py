"""A book: its entries together with what holds for all of them, and what entries are called.

An entry is called by its id or its name, and by its label (`book#uid`) in verdicts. A label is for
people and need not be the only one: a book's name may hold the `#`, and the book of a card may be
called like one of the game's. So an entry is remembered from turn to turn by an identity, which is
the label wherever that cannot be mistaken. The mode of a book stands in `evennia_ai` under its
`extensions`, in V3 books and in world files; it is ours, so what is wrong in it is an error.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal, get_args

from evennia_ai.errors import FormatError
from evennia_ai.foreign.documents import one_line
from evennia_ai.lorebook.entry import LoreEntry
from evennia_ai.prompt.components import ALL_GRANTS, Grants
from evennia_ai.prompt.memo import Memo

# floating: each prompt has the entries that are active in it. frozen: an entry that wakes is said
# once, where it woke, and stays in the history.
BookMode = Literal["floating", "frozen"]
BOOK_MODES: Final[tuple[BookMode, ...]] = get_args(BookMode)
# Where a book may hang, narrow before wide: the order books are activated in.
ATTACH_RANK: Final[Mapping[str, int]] = MappingProxyType(
    {
        "chat": 0,
        "player": 1,
        "character": 2,
        "npc": 2,
        "room": 3,
        "faction": 4,
        "zone": 5,
        "game": 6,
        "global": 6,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lorebook:
    """A book with its entries, in the file's order; None leaves a number to the rules.

    Frozen by its `mode` are entries that keys woke and that would stand in the dynamic message;
    constant ones change nothing from prompt to prompt, and a depth, a note or an outlet is a place
    of its own.
    """

    label: str
    entries: tuple[LoreEntry, ...] = ()
    scan_depth: int | None = None
    """Wins over the rules."""
    token_budget: int | None = None
    """Wins over the rules."""
    recursive: bool | None = None
    """Whether its entries wake one another; wins over the rules."""
    attach: str = "global"
    """One of `ATTACH_RANK`."""
    mode: BookMode = "floating"
    revision: int = 0
    """The store's revision of the book."""
    grants: Grants = ALL_GRANTS
    """What it may do."""
    notices: tuple[str, ...] = ()
    """For who imports it."""
    memo: Memo = field(default_factory=Memo, repr=False)
    """What was worked out for this very book and is worth keeping with it."""


def names_of(books: Iterable[Lorebook]) -> dict[str, str]:
    """For each entry's origin in verdicts its name, where it has one."""
    return {entry.origin: entry.name for book in books for entry in book.entries if entry.name}


def entries_called(book: Lorebook, wanted: str) -> list[LoreEntry]:
    """The entry of this id, else those of this name in whatever case, in the book's order."""
    by_uid = [entry for entry in book.entries if entry.uid == wanted]
    folded = wanted.casefold()
    return by_uid or [entry for entry in book.entries if entry.name.casefold() == folded]


_OF_A_CARD: Final = "#"
_NAME: Final = re.compile(r"(?:[^\\#]|\\.)*", re.DOTALL)


def identity_prefix(label: str, *, attach: str) -> str:
    """The name of a book as the identities of its entries begin."""
    name = label.replace("\\", "\\\\").replace("#", "\\#")
    return _OF_A_CARD + name if attach == "character" else name


def label_of(identity: str) -> str:
    """The label of the entry that is remembered by `identity`."""
    identity = identity.removeprefix(_OF_A_CARD)
    found = _NAME.match(identity)
    end = found.end() if found else 0
    return re.sub(r"\\(.)", r"\1", identity[:end], flags=re.DOTALL) + identity[end:]


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
