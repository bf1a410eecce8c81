"""A book: its entries, what holds for all of them, what they are called and may do.

An entry is called by its id or its name, and by its label (`book#uid`) in verdicts. A label is for
people and need not be the only one: a book's name may hold the `#`, and the book of a card may be
called like one of the game's. So an entry is remembered from turn to turn by an identity, which is
the label wherever that cannot be mistaken. The mode of a book stands in `evennia_ai` under its
`extensions`, in V3 books and in world files; it is ours, so what is wrong in it is an error.

Where a book has no grant for an entry's place or role, the entry is contained. One by depth, or
beside a message, keeps its place, which the history clamps. One that asks for a place outside the
history stands at its top. So does one that asks for a place inside another text, the author's note
or a component that names an outlet, where it may not speak in the role of that text.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, Literal, get_args

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.foreign.documents import one_line
from evennia_ai.engine.lorebook.decorators import Decorator
from evennia_ai.engine.lorebook.entry import IN_HISTORY, LoreEntry, Mention, Position
from evennia_ai.engine.prompt.components import ALL_GRANTS, Grant, Grants
from evennia_ai.engine.prompt.memo import KeptMemo, Memo, Slot

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
    told: str = ""
    """What the trace says of how it came to count: in the place of another, or waited for."""
    memo: KeptMemo = field(default_factory=Memo, repr=False)
    """What was worked out for this very book and is worth keeping with it."""
    of_entries: KeptMemo = field(default_factory=Memo, repr=False)
    """What follows from its entries alone; books of one text share it, wherever they count."""


def names_of(books: Iterable[Lorebook]) -> dict[str, str]:
    """For each entry's origin in verdicts its name, where it has one."""
    return {entry.origin: entry.name for book in books for entry in book.entries if entry.name}


def entries_called(book: Lorebook, wanted: str) -> list[LoreEntry]:
    """The entry of this id, else those of this name in whatever case, in the book's order."""
    by_uid = [entry for entry in book.entries if entry.uid == wanted]
    folded = wanted.casefold()
    return by_uid or [entry for entry in book.entries if entry.name.casefold() == folded]


def decorators_of(books: Iterable[Lorebook]) -> dict[str, tuple[Decorator, ...]]:
    """For each entry's label the decorators that count, after fallbacks."""
    return {
        f"{book.label}#{entry.uid}": entry.decorators for book in books for entry in book.entries
    }


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


LABELS: Final = Slot[tuple[str, ...]]("labels")
IDENTITIES: Final = Slot[tuple[str, ...]]("identities")
_BY_IDENTITY: Final = Slot[dict[str, int]]("index by identity")


def labels_of(book: Lorebook) -> tuple[str, ...]:
    """What each of its entries is called in verdicts."""
    known = book.memo.get(LABELS)
    if known is None:
        known = book.memo[LABELS] = tuple([f"{book.label}#{entry.uid}" for entry in book.entries])
    return known


def identities_of(book: Lorebook) -> tuple[str, ...]:
    """What each of its entries is remembered by."""
    known = book.memo.get(IDENTITIES)
    if known is None:
        name = identity_prefix(book.label, attach=book.attach)
        own = labels_of(book) if name == book.label else None
        known = tuple([f"{name}#{entry.uid}" for entry in book.entries]) if own is None else own
        book.memo[IDENTITIES] = known
    return known


def index_of(book: Lorebook, identity: str) -> int | None:
    """The index of the entry that is remembered by `identity`, None where it has none."""
    known = book.memo.get(_BY_IDENTITY)
    if known is None:
        known = {identity: index for index, identity in enumerate(identities_of(book))}
        book.memo[_BY_IDENTITY] = known
    return known.get(identity)


_OWN: Final = "evennia_ai"
_MODE: Final = "mode"
_LAST_ID: Final = "last_id"
_MAX_ID: Final = 10**15


def mode_in(book: Mapping[str, Any], *, where: str) -> BookMode:
    """The mode that a book says, floating where it says none.

    FormatError: our extension data has a member it may not have, or another mode.
    """
    own = _object(book.get("extensions")).get(_OWN)
    if own is None:
        return "floating"
    at = f"{where}.extensions.{_OWN}"
    if not isinstance(own, dict):
        raise FormatError(
            "book", f"{at}: must be an object of {_MODE} and {_LAST_ID}, not {_shown(own)}"
        )
    for name in own.keys() - {_MODE, _LAST_ID}:
        may = f"it may be {_MODE} or {_LAST_ID}"
        raise FormatError("book", f"{at}: unknown member {_shown(name)}; {may}")
    last = own.get(_LAST_ID, 0)
    if type(last) is not int or not 0 <= last < _MAX_ID:
        raise FormatError("book", f"{at}.{_LAST_ID}: must be a whole number, not {_shown(last)}")
    mode = own.get(_MODE)
    if mode is None:
        return "floating"
    if mode not in BOOK_MODES:
        known = " or ".join(BOOK_MODES)
        raise FormatError("book", f"{at}.{_MODE}: must be {known}, not {_shown(mode)}")
    return mode  # type: ignore[no-any-return]


def saying_mode(book: Mapping[str, Any], mode: BookMode) -> dict[str, Any]:
    """The book with this mode in it; one that floats says nothing of it."""
    return _saying(book, _MODE, None if mode == "floating" else mode)


def last_id_in(book: Mapping[str, Any]) -> int:
    """Return the highest id that an entry of the book ever had, -1 where the book says none."""
    last = _object(_object(book.get("extensions")).get(_OWN)).get(_LAST_ID, -1)
    return last if type(last) is int else -1


def saying_last_id(book: Mapping[str, Any], last: int) -> dict[str, Any]:
    """Return the book with the highest id that an entry of it ever had, or as it is for -1."""
    return _saying(book, _LAST_ID, last) if last >= 0 else dict(book)


def _saying(book: Mapping[str, Any], member: str, value: object) -> dict[str, Any]:
    """Return the book with this member of our extension data, None for without it."""
    extensions = dict(_object(book.get("extensions")))
    own = {name: told for name, told in _object(extensions.get(_OWN)).items() if name != member}
    if value is not None:
        own[member] = value
    extensions.pop(_OWN, None)
    if own:
        extensions[_OWN] = own
    kept = {name: value for name, value in book.items() if name != "extensions"}
    return {**kept, "extensions": extensions} if extensions or "extensions" in book else kept


def _shown(value: object) -> str:
    return one_line(repr(value))[:60]


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


@dataclass(frozen=True, slots=True)
class Unmatched:
    """The entries of one book that are silent for one reason.

    `uids` names them in short: ranges of numbers, then the others as a JSON list, as in
    `0-41,43;["gate"]`. An entry that has a verdict of its own may be among them; its own counts.
    """

    book: str
    reason: str
    uids: str

    def labels(self) -> Iterator[str]:
        """The labels of the entries."""
        return (f"{self.book}#{uid}" for uid in unpacked(self.uids))


def packed(uids: Iterable[str]) -> str:
    """Many uids as one short text."""
    named: list[str] = []
    ranges: list[list[int]] = []
    for uid in uids:
        number = plain_number(uid, digits=17)
        if number is None:
            named.append(uid)
        elif ranges and ranges[-1][1] + 1 == number:
            ranges[-1][1] += 1
        else:
            ranges.append([number, number])
    numbers = ",".join(f"{a}-{b}" if a < b else str(a) for a, b in ranges)
    return f"{numbers};{json.dumps(named)}" if named else numbers


def unpacked(text: str) -> Iterator[str]:
    """The uids that `packed` took."""
    numbers, _, named = text.partition(";")
    for part in numbers.split(",") if numbers else ():
        first, _, last = part.partition("-")
        yield from map(str, range(int(first), int(last or first) + 1))
    if named:
        yield from json.loads(named)


def as_javascript_walks(names: Iterable[str], *, below: int) -> list[str]:
    """The names of an object's members, whole numbers below this one first, from low to high."""
    given = list(dict.fromkeys(names))
    if given == [*map(str, range(min(len(given), below)))]:  # as most programs write them
        return given
    numbers = {name: plain_number(name, digits=10) for name in given}
    indexes = {name: number for name, number in numbers.items() if number is not None}
    first = sorted((name for name in indexes if indexes[name] < below), key=indexes.__getitem__)
    return list(dict.fromkeys([*first, *given]))


def plain_number(text: str, *, digits: int) -> int | None:
    """The number that a text writes without leading zeros, in so many digits at most; else None."""
    is_number = text.isascii() and text.isdecimal() and len(text) <= digits
    return int(text) if is_number and (text == "0" or text[0] != "0") else None


# Places inside another text, whose role all of it has.
_INSIDE: Final[tuple[Position, ...]] = ("note_top", "note_bottom", "outlet")


def is_moved(position: Position, grants: Grants) -> bool:
    """Whether an entry that asks for this position stands at the top of the history instead."""
    if position in IN_HISTORY:
        return False
    return "positions" not in grants or (position in _INSIDE and "roles" not in grants)


def missing(entry: LoreEntry, grants: Grants) -> tuple[Grant, ...]:
    """The grants an entry would need for its place and its role, and that are not given."""
    wanted: list[Grant] = []
    if entry.position not in IN_HISTORY:
        wanted.append("positions")
    if entry.role != "user" or entry.position in _INSIDE:
        wanted.append("roles")
    return tuple(grant for grant in wanted if grant not in grants)


@lru_cache(maxsize=16)
def containment_in_words(missing: tuple[Grant, ...], position: Position) -> str:
    """The containment in words, for a verdict."""
    stands = []
    if "positions" in missing or position in _INSIDE:
        stands.append("at the top of the history")
    if "roles" in missing:
        stands.append("as a user's")
    return f"stands {' '.join(stands)}: its card has no grant for {' and '.join(missing)}"


def mention_in_words(mention: Mention) -> str:
    """The place as an author reads it."""
    return f"right {mention.side} the {mention.message} message with its key"
