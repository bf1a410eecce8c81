"""A lorebook: its entries, its settings, names of entries, and the limits of its grants.

Names: people call an entry by its id or its name; verdicts use its label (`book#uid`). Two entries
may have the same label, because a book's name may have a `#`, and a card's book may have the name
of a book of the game. So timers use an identity. It is the label unless that is ambiguous.

Mode: it is in `extensions.evennia_ai` of V3 books and world files. That member is our own, so a
mistake in it is an error.

Grants: an entry whose book lacks the grant for its place or role is contained. With a depth, or
next to a message, it keeps its place. With any other place it is at the top of the history. So is
an entry inside another text (the author's note, an outlet) if it may not have that text's role.
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

# floating: each prompt has the entries that are active in it. frozen: an active entry becomes one
# message at the end of the history and stays there.
BookMode = Literal["floating", "frozen"]
BOOK_MODES: Final[tuple[BookMode, ...]] = get_args(BookMode)
# What a book may be attached to, narrow before wide; the narrow ones are read first.
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
    """A lorebook with its entries in the order of its file; None leaves a setting to the rules.

    The mode "frozen" is for entries that keys activate and that would be in the dynamic message.
    Constant entries, and those with a depth, at a note or in an outlet, are as in a floating book.
    """

    label: str
    entries: tuple[LoreEntry, ...] = ()
    scan_depth: int | None = None
    """Wins over the rules."""
    token_budget: int | None = None
    """Wins over the rules."""
    recursive: bool | None = None
    """True if texts of its entries activate others; wins over the rules."""
    attach: str = "global"
    """One of `ATTACH_RANK`."""
    mode: BookMode = "floating"
    revision: int = 0
    """The store's revision of the book."""
    grants: Grants = ALL_GRANTS
    """What builders allow the book to do."""
    notices: tuple[str, ...] = ()
    """Notices for the person who imports it."""
    told: str = ""
    """A sentence for the trace: why this book is in force, for example in place of a copy."""
    memo: KeptMemo = field(default_factory=Memo, repr=False)
    """Results that depend on this book with its label and settings."""
    of_entries: KeptMemo = field(default_factory=Memo, repr=False)
    """Results that depend only on its entries; books of one text share them."""


def names_of(books: Iterable[Lorebook]) -> dict[str, str]:
    """Return the names of entries that have one, by their origin in verdicts."""
    return {entry.origin: entry.name for book in books for entry in book.entries if entry.name}


def entries_called(book: Lorebook, wanted: str) -> list[LoreEntry]:
    """Return the entry with this id, else those with this name in any case, in the book's order."""
    by_uid = [entry for entry in book.entries if entry.uid == wanted]
    folded = wanted.casefold()
    return by_uid or [entry for entry in book.entries if entry.name.casefold() == folded]


def decorators_of(books: Iterable[Lorebook]) -> dict[str, tuple[Decorator, ...]]:
    """Return the decorators in force of each entry, after fallbacks, by its label."""
    return {
        f"{book.label}#{entry.uid}": entry.decorators for book in books for entry in book.entries
    }


_OF_A_CARD: Final = "#"
_NAME: Final = re.compile(r"(?:[^\\#]|\\.)*", re.DOTALL)


def identity_prefix(label: str, *, attach: str) -> str:
    """Return the part of an identity that stands for the book."""
    name = label.replace("\\", "\\\\").replace("#", "\\#")
    return _OF_A_CARD + name if attach == "character" else name


def label_of(identity: str) -> str:
    """Return the label of the entry with this identity."""
    identity = identity.removeprefix(_OF_A_CARD)
    found = _NAME.match(identity)
    end = found.end() if found else 0
    return re.sub(r"\\(.)", r"\1", identity[:end], flags=re.DOTALL) + identity[end:]


LABELS: Final = Slot[tuple[str, ...]]("labels")
IDENTITIES: Final = Slot[tuple[str, ...]]("identities")
_BY_IDENTITY: Final = Slot[dict[str, int]]("index by identity")


def labels_of(book: Lorebook) -> tuple[str, ...]:
    """Return the label of each entry of a book."""
    known = book.memo.get(LABELS)
    if known is None:
        known = book.memo[LABELS] = tuple([f"{book.label}#{entry.uid}" for entry in book.entries])
    return known


def identities_of(book: Lorebook) -> tuple[str, ...]:
    """Return the identity of each entry of a book."""
    known = book.memo.get(IDENTITIES)
    if known is None:
        name = identity_prefix(book.label, attach=book.attach)
        own = labels_of(book) if name == book.label else None
        known = tuple([f"{name}#{entry.uid}" for entry in book.entries]) if own is None else own
        book.memo[IDENTITIES] = known
    return known


def index_of(book: Lorebook, identity: str) -> int | None:
    """Return the index of the entry with this identity; None if the book has no such entry."""
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
    """Return the mode in the data of a book; floating if it has none.

    Raises:
        FormatError: Our extension data has an unknown member or a wrong value.
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
    """Return the data of a book with this mode in it; a floating book has no member for it."""
    return _saying(book, _MODE, None if mode == "floating" else mode)


def last_id_in(book: Mapping[str, Any]) -> int:
    """Return the highest id that an entry of the book ever had; -1 if its data has none."""
    last = _object(_object(book.get("extensions")).get(_OWN)).get(_LAST_ID, -1)
    return last if type(last) is int else -1


def saying_last_id(book: Mapping[str, Any], last: int) -> dict[str, Any]:
    """Return the data of a book with the highest id that an entry ever had; unchanged for -1."""
    return _saying(book, _LAST_ID, last) if last >= 0 else dict(book)


def _saying(book: Mapping[str, Any], member: str, value: object) -> dict[str, Any]:
    """Return the data of a book with this member of our extension; None removes it."""
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
    """Entries of one book that are silent for the same reason.

    `uids` is a short form: ranges of numbers, then other uids as a JSON list, for example
    `0-41,43;["gate"]`. It may have entries with a verdict of their own, which then counts.
    """

    book: str
    reason: str
    uids: str

    def labels(self) -> Iterator[str]:
        """Yield the labels of the entries."""
        return (f"{self.book}#{uid}" for uid in unpacked(self.uids))


def packed(uids: Iterable[str]) -> str:
    """Render many uids as one short text."""
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
    """Yield the uids of a text that `packed` rendered."""
    numbers, _, named = text.partition(";")
    for part in numbers.split(",") if numbers else ():
        first, _, last = part.partition("-")
        yield from map(str, range(int(first), int(last or first) + 1))
    if named:
        yield from json.loads(named)


def as_javascript_walks(names: Iterable[str], *, below: int) -> list[str]:
    """Sort names as JavaScript walks an object: whole numbers below `below` first, by size."""
    given = list(dict.fromkeys(names))
    if given == [*map(str, range(min(len(given), below)))]:  # as most programs write them
        return given
    numbers = {name: plain_number(name, digits=10) for name in given}
    indexes = {name: number for name, number in numbers.items() if number is not None}
    first = sorted((name for name in indexes if indexes[name] < below), key=indexes.__getitem__)
    return list(dict.fromkeys([*first, *given]))


def plain_number(text: str, *, digits: int) -> int | None:
    """Return the number in a text without leading zeros, of at most `digits` digits; else None."""
    is_number = text.isascii() and text.isdecimal() and len(text) <= digits
    return int(text) if is_number and (text == "0" or text[0] != "0") else None


# Positions inside another text: the whole text has one role.
_INSIDE: Final[tuple[Position, ...]] = ("note_top", "note_bottom", "outlet")


def is_moved(position: Position, grants: Grants) -> bool:
    """True if an entry with this position is placed at the top of the history instead."""
    if position in IN_HISTORY:
        return False
    return "positions" not in grants or (position in _INSIDE and "roles" not in grants)


def missing(entry: LoreEntry, grants: Grants) -> tuple[Grant, ...]:
    """Return the grants that an entry needs for its place and role and does not have."""
    wanted: list[Grant] = []
    if entry.position not in IN_HISTORY:
        wanted.append("positions")
    if entry.role != "user" or entry.position in _INSIDE:
        wanted.append("roles")
    return tuple(grant for grant in wanted if grant not in grants)


@lru_cache(maxsize=16)
def containment_in_words(missing: tuple[Grant, ...], position: Position) -> str:
    """Render for a verdict where a contained entry is placed, and why."""
    stands = []
    if "positions" in missing or position in _INSIDE:
        stands.append("at the top of the history")
    if "roles" in missing:
        stands.append("as a user's")
    return f"stands {' '.join(stands)}: its card has no grant for {' and '.join(missing)}"


def mention_in_words(mention: Mention) -> str:
    """Render the place of a mention for authors."""
    return f"right {mention.side} the {mention.message} message with its key"
