"""How a file becomes a book.

Read here: the book of Card V3 and V2 (also inside a `lorebook_v3` file), SillyTavern's world files,
and books of other programs, which are told apart by their marks and brought into the shape of V3
first. A book is what can be read of it: entries are read one by one and field by field, what cannot
be read is a notice on the book, and an entry that cannot be read is refused alone. Only what is no
book at all, is over a limit or is wrong in our own data raises, and changes nothing. The file's own
JSON is not kept here: whoever stores it keeps it whole.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import accumulate
from typing import Any, Final

from pydantic import BaseModel, ConfigDict

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.foreign.documents import MAX_ENTRIES, check_plain, limit_notices, one_line
from evennia_ai.engine.foreign.fields import read_leniently
from evennia_ai.engine.lorebook.book import (
    ATTACH_RANK,
    BookMode,
    Lorebook,
    as_javascript_walks,
    mode_in,
)
from evennia_ai.engine.lorebook.decorators import NO_ICONS, Absent
from evennia_ai.engine.lorebook.entry import NO_GATES, LoreEntry
from evennia_ai.engine.prompt.components import ALL_GRANTS, Grants
from evennia_ai.engine.prompt.templates.macros import MAX_MACROS_OF_BOOK, check_macros
from evennia_ai.formats.file_kinds import told_of
from evennia_ai.formats.lorebooks.other_programs import (
    Translation,
    is_of_another_program,
    translate_book,
)
from evennia_ai.formats.lorebooks.reading import entry_of
from evennia_ai.formats.lorebooks.values import Flag, WholeCount
from evennia_ai.formats.lorebooks.written import read_fields

MAX_BOOK_KEYS: Final = 300_000
_MOST_NAMED: Final = 4


class _Book(BaseModel):
    """What is read of a book beside its entries; other fields are left alone."""

    model_config = ConfigDict(strict=True, frozen=True)

    name: str | None = None
    scan_depth: WholeCount | None = None
    token_budget: WholeCount | None = None
    recursive_scanning: Flag | None = None


def is_world_file(data: Any) -> bool:
    """True if a file's JSON value is a world file of SillyTavern by its form."""
    is_framed = isinstance(data, Mapping) and data.get("spec") == "lorebook_v3"
    return isinstance(data, Mapping) and not is_framed and isinstance(data.get("entries"), dict)


def book_of_card(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """The book inside a card as a file of Card V3, so that it is read in the card's spelling.

    One without a list of entries has none: tools write null, or nothing, for an empty book.
    """
    if raw.get("spec") == "lorebook_v3" and isinstance(raw.get("data"), dict):
        raw = raw["data"]
    if is_of_another_program(raw):
        return raw
    entries = raw.get("entries")
    listed = entries if isinstance(entries, list | dict) else []
    return {"spec": "lorebook_v3", "data": {**raw, "entries": listed}}


def read_book(
    data: Any,
    *,
    label: str = "",
    attach: str = "global",
    mode: BookMode | None = None,
    grants: Grants = ALL_GRANTS,
    revision: int = 0,
    absent: Absent = NO_ICONS,
) -> Lorebook:
    """The book that a file's JSON value holds; `label` wins over its own name, `mode` over its own.

    `absent` are decorators that count for nothing where the book is used, with the reason.

    FormatError: it is no book, is over a limit, or our own data about it is wrong.
    """
    where = f"book {one_line(label)}" if label else "book"
    if attach not in ATTACH_RANK:
        known = ", ".join(ATTACH_RANK)
        raise FormatError("book", f"{where}: unknown attach {one_line(attach)!r}; known: {known}")
    check_plain(data, kind="book", where=where)
    read = _read(data, where)
    raw = read.book
    book, doubts = _checked(raw, where)
    own_mode = mode_in(raw, where=where)
    label = label or one_line(book.name or "") or "book"
    in_world = is_world_file(data)
    entries, notices = _entries(read, label=label, where=where, in_world=in_world, absent=absent)
    return Lorebook(
        label=label,
        entries=entries,
        scan_depth=book.scan_depth,
        token_budget=book.token_budget,
        recursive=book.recursive_scanning,
        attach=attach,
        mode=own_mode if mode is None else mode,
        revision=revision,
        grants=grants,
        notices=limit_notices([*doubts, *_book_notices(book), *read.notices, *notices]),
    )


def faults_in_own_data(data: Any, *, label: str) -> tuple[FormatError, ...]:
    """Return what is wrong in our own data about the entries of a book that can be read.

    Such an entry is refused alone where the book is imported; whoever writes it here is told.
    """
    where = f"book {one_line(label)}"
    found = (
        fault
        for name, raw in in_order(_read(data, where).book["entries"])
        for fault in read_fields(
            raw,
            in_world=is_world_file(data),
            default_uid=name,
            where=f"{where}.entries[{one_line(name)}]",
        ).problems
    )
    return tuple(fault for fault in found if ".evennia_ai" in fault.message)


def _keys_of(entry: LoreEntry) -> int:
    keys = len(entry.keys) + len(entry.secondary_keys)
    if entry.gates is NO_GATES:
        return keys
    return keys + sum(map(len, (*entry.gates.additional, entry.gates.excluded)))


def _entries(
    read: Translation,
    *,
    label: str,
    where: str,
    in_world: bool,
    absent: Absent,
) -> tuple[tuple[LoreEntry, ...], list[str]]:
    """The entries in the file's order, and the notices about them."""
    listed = in_order(read.book["entries"])
    contents = (
        (f"{where}.entries[{one_line(name)}].content", raw.get("content"))
        for name, raw in listed
        if isinstance(raw, dict)
    )
    texts = ((path, text) for path, text in contents if isinstance(text, str))
    check_macros(texts, kind="book", most=MAX_MACROS_OF_BOOK)
    entries: list[LoreEntry] = []
    doubted: dict[str, list[str]] = {}
    times: Counter[str] = Counter()
    for index, (name, raw) in enumerate(listed):
        uid = one_line(name)
        path = f"{where}.entries[{uid}]"
        said = read_fields(raw, in_world=in_world, default_uid=uid, where=path)
        made, found = entry_of(said, label=label, index=index, absent=absent)
        uid = told_apart(made.uid, times)
        if uid != made.uid:
            made = replace(made, uid=uid, origin=f"lore:{label}#{uid}")
        entries.append(made)
        if found or index in read.doubts:
            for doubt in dict.fromkeys((*read.doubts.get(index, ()), *found)):
                doubted.setdefault(doubt, []).append(uid)
    notices = [f"{_entries_named(uids)}: {doubt}" for doubt, uids in doubted.items()]
    counts = [*accumulate(map(_keys_of, entries))]
    if counts and counts[-1] > MAX_BOOK_KEYS:
        first = bisect_right(counts, MAX_BOOK_KEYS)
        entries[first:] = map(_without_keys, entries[first:])
        notices.insert(0, f"{_TOO_MANY_KEYS}; its last entries are never active")
    return tuple(entries), notices


def _entries_named(uids: list[str]) -> str:
    """Those a notice is about, in one line: programs write the same oddity into every entry."""
    if len(uids) == 1:
        return f"entry {uids[0]}"
    more = len(uids) - _MOST_NAMED
    return f"entries {', '.join(uids[:_MOST_NAMED])}" + (f" and {more} more" if more > 0 else "")


def in_order(listed: list[Any] | dict[str, Any]) -> list[tuple[str, Any]]:
    """The entries by name, or by position in a list, in the order JavaScript walks them."""
    if isinstance(listed, list):
        return [(str(index), entry) for index, entry in enumerate(listed)]
    return [(name, listed[name]) for name in as_javascript_walks(listed, below=2**32 - 1)]


def _without_keys(entry: LoreEntry) -> LoreEntry:
    """The entry of a book that has too many keys: known by name, never active."""
    return replace(entry, keys=(), secondary_keys=(), gates=NO_GATES, refused=_TOO_MANY_KEYS)


def told_apart(uid: str, times: Counter[str]) -> str:
    """The id, or one that no other entry has (Card V3 does not promise that ids are unique).

    `times` counts the ids that are taken and is brought up to date.
    """
    if uid not in times:
        times[uid] = 1
        return uid
    times[uid] += 1
    number = times[uid]
    while (free := f"{uid} ({number})") in times:
        number += 1
    times[uid] = number
    times[free] += 1
    return free


def unwrapped(data: Any, where: str = "book") -> dict[str, Any]:
    """The book itself, out of the frame a file may put around it; another program's as V3."""
    return _read(data, where).book


def _read(data: Any, where: str) -> Translation:
    """The book itself in a shape of which there is a reader here."""
    if not isinstance(data, dict):
        told = told_of(data, wanted="book") or "must be an object with `entries`"
        raise FormatError("book", f"{where}: {told}")
    found = translate_book(data, where=where, limit_entries=MAX_ENTRIES)
    if found is not None:
        return found
    if data.get("spec") == "lorebook_v3":
        data = data.get("data")
    if not isinstance(data, dict) or "entries" not in data:
        told = told_of(data, wanted="book") or "has no `entries`; a book is an object with them"
        raise FormatError("book", f"{where}: {told}")
    return Translation(book=data)


def _checked(raw: Mapping[str, Any], where: str) -> tuple[_Book, tuple[str, ...]]:
    entries = raw["entries"]
    if not isinstance(entries, list | dict):
        raise FormatError("book", f"{where}.entries: must be a list or an object")
    if len(entries) > MAX_ENTRIES:
        raise FormatError("book", f"{where}: has more than {MAX_ENTRIES} entries; split it")
    book, problems = read_leniently(_Book, raw)
    return book, tuple(problems.values())


def _book_notices(book: _Book) -> list[str]:
    notices: list[str] = []
    if book.token_budget == 0:
        notices.append("token_budget is 0: nothing of this book will ever fit")
    return notices


_TOO_MANY_KEYS: Final = f"the book has more than {MAX_BOOK_KEYS} keys: split it"
