"""A lorebook: its entries, its settings, the names of its entries, and its grants.

Names: people refer to an entry by its id or its name. Verdicts use its label (`book#uid`). Two
entries may have the same label, because the name of a book may contain a `#`, and because the book
of a card may have the name of another book. So timers use an identity, which is unique. It equals
the label unless the label is ambiguous.

Mode: V3 books and world files store the mode in `extensions.evennia_ai`. Only this package writes
that field, so a wrong value in it is an error.

Grants: a builder may grant a book special places and roles. An entry is contained if it asks for a
place or a role that its book was not granted. A contained entry has the role user. At a depth or
next to a message it keeps its place, and anywhere else it moves to the top of the history. An entry
in the author's note or in an outlet gets the role of that text. So it also moves if its book lacks
the grant for roles.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
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

# In a "floating" book, a prompt contains only the entries that are active in its turn. In a
# "frozen" book, an active entry becomes a message at the end of the history and stays there.
BookMode = Literal["floating", "frozen"]
BOOK_MODES: Final[tuple[BookMode, ...]] = get_args(BookMode)
# The kinds of things that a book may be attached to, with a rank. Books with a low rank (a narrow
# attachment) are read before books with a high one.
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
    """A lorebook with its entries in the order of its file.

    If a setting of the book is None, the setting of the rules applies.

    The mode "frozen" affects only some entries: keys must activate the entry, and its place must
    be the dynamic message. Constant entries, and entries at a depth, at a note or in an outlet,
    behave as in a book of the mode "floating".
    """

    label: str
    entries: Sequence[LoreEntry] = ()
    scan_depth: int | None = None
    """How many messages are searched for keys; replaces the scan depth of the rules."""
    token_budget: int | None = None
    """The token limit of the book's active entries; replaces the lore budget of the rules."""
    recursive: bool | None = None
    """True if texts of the book's entries activate other entries; replaces the setting of the
    rules."""
    attach: str = "global"
    """The kind of thing that the book is attached to, a key of `ATTACH_RANK`."""
    mode: BookMode = "floating"
    revision: int = 0
    """The number of the book's stored version."""
    grants: Grants = ALL_GRANTS
    """The rights that builders gave the book."""
    notices: tuple[str, ...] = ()
    """Notices about the file, for the person who imports the book."""
    told: str = ""
    """A sentence for the trace that says why this book applies, for example instead of a copy."""
    memo: KeptMemo = field(default_factory=Memo, repr=False)
    """Cached results that depend on the entries, the label or the settings of this book."""
    of_entries: KeptMemo = field(default_factory=Memo, repr=False)
    """Cached results that depend only on the entries. Books made from the same text share this
    cache."""


def names_of(books: Iterable[Lorebook]) -> dict[str, str]:
    """Map the label of each entry (`book#uid`) to the name that its author gave it."""
    return {entry.origin: entry.name for book in books for entry in book.entries if entry.name}


def find_entries(book: Lorebook, wanted: str) -> list[LoreEntry]:
    """Return the entry with this id, or else all entries with this name, in the order of the book.

    The letter case of names is ignored.
    """
    by_uid = [entry for entry in book.entries if entry.uid == wanted]
    folded = wanted.casefold()
    return by_uid or [entry for entry in book.entries if entry.name.casefold() == folded]


def decorators_of(books: Iterable[Lorebook]) -> dict[str, tuple[Decorator, ...]]:
    """Map the label of each entry to the decorators that apply to it.

    A fallback replaces a decorator that cannot be used.
    """
    return {
        f"{book.label}#{entry.uid}": entry.decorators for book in books for entry in book.entries
    }


_OF_A_CARD: Final = "#"
_NAME: Final = re.compile(r"(?:[^\\#]|\\.)*", re.DOTALL)


def identity_prefix(label: str, *, attach: str) -> str:
    """Return the prefix with which the identities of all entries of a book begin."""
    name = label.replace("\\", "\\\\").replace("#", "\\#")
    return _OF_A_CARD + name if attach == "character" else name


def label_of(identity: str) -> str:
    """Return the label (`book#uid`) of the entry with this identity."""
    identity = identity.removeprefix(_OF_A_CARD)
    found = _NAME.match(identity)
    end = found.end() if found else 0
    return re.sub(r"\\(.)", r"\1", identity[:end], flags=re.DOTALL) + identity[end:]


# These results may be stored with a book. Then a turn makes only the entries that it needs.
UIDS: Final = Slot[Sequence[str]]("uids")
DELAY_LEVELS: Final = Slot[Sequence[int]]("delay levels")
HANDING_ON: Final = Slot[Sequence[int]]("entries that hand on texts")

LABELS: Final = Slot[tuple[str, ...]]("labels")
IDENTITIES: Final = Slot[tuple[str, ...]]("identities")
_BY_IDENTITY: Final = Slot[dict[str, int]]("index by identity")


def uids_of(book: Lorebook) -> Sequence[str]:
    """Return the id of each entry of a book."""
    known = book.of_entries.get(UIDS)
    if known is None:
        known = book.of_entries[UIDS] = [entry.uid for entry in book.entries]
    return known


def delay_levels_of(book: Lorebook) -> Sequence[int]:
    """Return the delay levels that the book's entries set for recursion, in ascending order."""
    known = book.of_entries.get(DELAY_LEVELS)
    if known is None:
        found = {entry.recursion.delay_level for entry in book.entries} - {0}
        known = book.of_entries[DELAY_LEVELS] = sorted(found)
    return known


def handing_on(book: Lorebook) -> Sequence[int]:
    """Return the indexes of the entries whose texts set variables or are in an outlet."""
    known = book.of_entries.get(HANDING_ON)
    if known is None:
        known = book.of_entries[HANDING_ON] = [
            index
            for index, entry in enumerate(book.entries)
            if entry.position == "outlet"
            or entry.template.uses.sets
            or entry.template.uses.computes_names
        ]
    return known


def labels_of(book: Lorebook) -> tuple[str, ...]:
    """Return the label (`book#uid`) of each entry of a book."""
    known = book.memo.get(LABELS)
    if known is None:
        known = book.memo[LABELS] = tuple([f"{book.label}#{uid}" for uid in uids_of(book)])
    return known


def identities_of(book: Lorebook) -> tuple[str, ...]:
    """Return the identity of each entry of a book: the name of the entry in stored timers."""
    known = book.memo.get(IDENTITIES)
    if known is None:
        name = identity_prefix(book.label, attach=book.attach)
        own = labels_of(book) if name == book.label else None
        known = tuple([f"{name}#{uid}" for uid in uids_of(book)]) if own is None else own
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
    """Return the mode that a book's JSON data give; "floating" if they give none.

    Raises:
        FormatError: `extensions.evennia_ai` has an unknown field or a wrong value.
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


def with_mode(book: Mapping[str, Any], mode: BookMode) -> dict[str, Any]:
    """Return a copy of a book's JSON data with this mode. "floating" is stored as no field."""
    return _with_own_member(book, _MODE, None if mode == "floating" else mode)


def last_id_in(book: Mapping[str, Any]) -> int:
    """Return the highest id that an entry of the book ever had; -1 if the data do not give it."""
    last = _object(_object(book.get("extensions")).get(_OWN)).get(_LAST_ID, -1)
    return last if type(last) is int else -1


def with_last_id(book: Mapping[str, Any], last: int) -> dict[str, Any]:
    """Return a copy of a book's JSON data with the highest entry id; -1 (no entry) adds nothing."""
    return _with_own_member(book, _LAST_ID, last) if last >= 0 else dict(book)


def _with_own_member(book: Mapping[str, Any], member: str, value: object) -> dict[str, Any]:
    """Return a copy of a book's JSON data with a field of `extensions.evennia_ai` set.

    The value None removes the field.
    """
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
    """Entries of one book that are all inactive for the same reason.

    `uids` lists the entries in a compact form: ranges of numbers, then other ids as JSON, for
    example `0-41,43;["gate"]`. A separate verdict on an entry of the list takes precedence over
    `reason`.
    """

    book: str
    reason: str
    uids: str

    def labels(self) -> Iterator[str]:
        """Yield the label (`book#uid`) of each entry in the list."""
        return (f"{self.book}#{uid}" for uid in unpack_uids(self.uids))


def pack_uids(uids: Iterable[str]) -> str:
    """Write the ids of entries as one compact text, such as `0-41,43;["gate"]`."""
    named: list[str] = []
    ranges: list[list[int]] = []
    for uid in uids:
        number = parse_plain_number(uid, digits=17)
        if number is None:
            named.append(uid)
        elif ranges and ranges[-1][1] + 1 == number:
            ranges[-1][1] += 1
        else:
            ranges.append([number, number])
    numbers = ",".join(f"{a}-{b}" if a < b else str(a) for a, b in ranges)
    return f"{numbers};{json.dumps(named)}" if named else numbers


def unpack_uids(text: str) -> Iterator[str]:
    """Yield each id in a compact text such as `0-41,43;["gate"]`."""
    numbers, _, named = text.partition(";")
    for part in numbers.split(",") if numbers else ():
        first, _, last = part.partition("-")
        yield from map(str, range(int(first), int(last or first) + 1))
    if named:
        yield from json.loads(named)


def in_javascript_order(names: Iterable[str], *, below: int) -> list[str]:
    """Sort names like the keys of a JavaScript object, and remove duplicates.

    Whole numbers less than `below` come first, in ascending order. Other names keep their order.
    """
    given = list(dict.fromkeys(names))
    if given == [
        *map(str, range(min(len(given), below)))
    ]:  # a fast path: the entries of most files are in order
        return given
    numbers = {name: parse_plain_number(name, digits=10) for name in given}
    indexes = {name: number for name, number in numbers.items() if number is not None}
    first = sorted((name for name in indexes if indexes[name] < below), key=indexes.__getitem__)
    return list(dict.fromkeys([*first, *given]))


def parse_plain_number(text: str, *, digits: int) -> int | None:
    """Return the whole number that a text consists of; None if it is any other text.

    A number with leading zeros or with more than `digits` digits also gives None.
    """
    is_number = text.isascii() and text.isdecimal() and len(text) <= digits
    return int(text) if is_number and (text == "0" or text[0] != "0") else None


# The positions at which an entry becomes part of another text, whose role it then has.
_INSIDE: Final[tuple[Position, ...]] = ("note_top", "note_bottom", "outlet")


def is_moved(position: Position, grants: Grants) -> bool:
    """True if an entry moves from this position to the top of the history, lacking a grant."""
    if position in IN_HISTORY:
        return False
    return "positions" not in grants or (position in _INSIDE and "roles" not in grants)


def missing_grants(entry: LoreEntry, grants: Grants) -> tuple[Grant, ...]:
    """Return the grants that the entry needs for its place and role but does not have."""
    wanted: list[Grant] = []
    if entry.position not in IN_HISTORY:
        wanted.append("positions")
    if entry.role != "user" or entry.position in _INSIDE:
        wanted.append("roles")
    return tuple(grant for grant in wanted if grant not in grants)


@lru_cache(maxsize=16)
def containment_in_words(missing: tuple[Grant, ...], position: Position) -> str:
    """Render for a verdict where an entry is placed that lacks some grants, and why."""
    place = []
    if "positions" in missing or position in _INSIDE:
        place.append("at the top of the history")
    if "roles" in missing:
        place.append("in the role user")
    return f"placed {' '.join(place)}: its book lacks the grant {' and '.join(missing)}"


def mention_in_words(mention: Mention) -> str:
    """Render for authors where an entry is placed: before or after which message."""
    return f"right {mention.side} the {mention.message} message with its key"
