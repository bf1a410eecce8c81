"""Read a lorebook from the JSON of its file.

The formats are Card V3 and V2 (also inside a `lorebook_v3` file), SillyTavern's world files, and
books of other programs. Books of other programs are recognised by their members and translated to
V3 first.

Reading is lenient: fields that cannot be read become notices on the book, and only entries that
cannot be read are refused. `FormatError` is raised for a file that is not a book, or is over a
limit. The book does not keep the JSON of its file; the store does.
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
    in_javascript_order,
    mode_in,
)
from evennia_ai.engine.lorebook.decorators import NO_ICONS, Absent
from evennia_ai.engine.lorebook.entry import NO_GATES, LoreEntry
from evennia_ai.engine.prompt.components import ALL_GRANTS, Grants
from evennia_ai.engine.prompt.templates.macros import MAX_MACROS_OF_BOOK, check_macros
from evennia_ai.formats.file_kinds import describe_value
from evennia_ai.formats.lorebooks.entry_reader import EntryReader
from evennia_ai.formats.lorebooks.other_programs import (
    Translation,
    is_of_another_program,
    translate_book,
)
from evennia_ai.formats.lorebooks.values import Flag, WholeCount
from evennia_ai.formats.lorebooks.written import read_fields

MAX_BOOK_KEYS: Final = 300_000
_MOST_NAMED: Final = 4


class _Book(BaseModel):
    """The settings of a book that this package reads; other members are ignored."""

    model_config = ConfigDict(strict=True, frozen=True)

    name: str | None = None
    scan_depth: WholeCount | None = None
    token_budget: WholeCount | None = None
    recursive_scanning: Flag | None = None


def is_world_file(data: Any) -> bool:
    """True if the JSON value has the structure of a SillyTavern world file."""
    is_framed = isinstance(data, Mapping) and data.get("spec") == "lorebook_v3"
    return isinstance(data, Mapping) and not is_framed and isinstance(data.get("entries"), dict)


def book_of_card(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the book inside a card in the structure of a `lorebook_v3` file.

    Its entries are then read by the rules for cards. A book without a list of entries becomes
    empty, because tools write null or nothing for it.
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
    """Read a lorebook from the JSON value of its file.

    Args:
        label: the name of the book; by default its own name.
        attach: the scope of the book.
        mode: the activation mode; by default the book's own.
        absent: decorators that have no effect where the book is used, with the reason.

    Raises:
        FormatError: this is not a book, it is over a limit, or data that this package adds to books
            is invalid.
    """
    where = f"book {one_line(label)}" if label else "book"
    if attach not in ATTACH_RANK:
        known = ", ".join(ATTACH_RANK)
        raise FormatError("book", f"{where}: unknown attach {one_line(attach)!r}; known: {known}")
    check_plain(data, kind="book", where=where)
    read = _read(data, where)
    raw = read.book
    if not isinstance(raw["entries"], list | dict):
        raise FormatError("book", f"{where}.entries: must be a list or an object")
    if len(raw["entries"]) > MAX_ENTRIES:
        raise FormatError("book", f"{where}: has more than {MAX_ENTRIES} entries; split it")
    book, problems = read_leniently(_Book, raw)
    book_notices = [*problems.values()]
    if book.token_budget == 0:
        book_notices.append("token_budget is 0: no entry of this book will ever fit")
    own_mode = mode_in(raw, where=where)
    label = label or one_line(book.name or "") or "book"
    in_world = is_world_file(data)
    entries, notices = _read_entries(
        read, label=label, where=where, in_world=in_world, absent=absent
    )
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
        notices=limit_notices([*book_notices, *read.notices, *notices]),
    )


def own_data_faults(data: Any, *, label: str) -> tuple[FormatError, ...]:
    """Return the errors in the `evennia_ai` data of a lorebook's entries.

    An import refuses only the entries with errors. An edit refuses the whole change.
    """
    where = f"book {one_line(label)}"
    found = (
        fault
        for name, raw in entries_in_order(_read(data, where).book["entries"])
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


def _read_entries(
    read: Translation,
    *,
    label: str,
    where: str,
    in_world: bool,
    absent: Absent,
) -> tuple[tuple[LoreEntry, ...], list[str]]:
    """Return the entries of a book in the order of the file, and the notices about them."""
    listed = entries_in_order(read.book["entries"])
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
    reader = EntryReader(label=label, where=where, in_world=in_world, absent=absent)
    for index, (name, raw) in enumerate(listed):
        made, found = reader.read(raw, name=name, index=index)
        uid = make_unique(made.uid, times)  # Card V3 does not guarantee unique ids
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
    """Return words that name the entries with the same notice, such as "entries 1, 2".

    Programs write the same unusual value into every entry, so one notice can be about many entries.
    """
    if len(uids) == 1:
        return f"entry {uids[0]}"
    more = len(uids) - _MOST_NAMED
    return f"entries {', '.join(uids[:_MOST_NAMED])}" + (f" and {more} more" if more > 0 else "")


def entries_in_order(listed: list[Any] | dict[str, Any]) -> list[tuple[str, Any]]:
    """Return the entries of a book with their names or indices, in SillyTavern's order.

    SillyTavern is written in JavaScript, which iterates integer names first, in ascending order.
    """
    if isinstance(listed, list):
        return [(str(index), entry) for index, entry in enumerate(listed)]
    return [(name, listed[name]) for name in in_javascript_order(listed, below=2**32 - 1)]


def _without_keys(entry: LoreEntry) -> LoreEntry:
    """Return an entry without its keys, for a book with too many keys.

    The result keeps its name and is never active.
    """
    return replace(entry, keys=(), secondary_keys=(), gates=NO_GATES, refused=_TOO_MANY_KEYS)


def make_unique(uid: str, times: Counter[str]) -> str:
    """Return an entry's id, with a number appended if another entry has the same id.

    Args:
        times: counts how often each id was used; it is updated.
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


def unwrap_book(data: Any, where: str = "book") -> dict[str, Any]:
    """Return the book in a file, without the enclosing object of a `lorebook_v3` file.

    A book of another program is translated to V3.
    """
    return _read(data, where).book


def _read(data: Any, where: str) -> Translation:
    """Return the book in a file; a book of another program is translated to V3."""
    if not isinstance(data, dict):
        problem = describe_value(data, wanted="book") or "must be an object with `entries`"
        raise FormatError("book", f"{where}: {problem}")
    found = translate_book(data, where=where, limit_entries=MAX_ENTRIES)
    if found is not None:
        return found
    if data.get("spec") == "lorebook_v3":
        data = data.get("data")
    if not isinstance(data, dict) or "entries" not in data:
        problem = (
            describe_value(data, wanted="book") or "has no `entries`; a book is an object with them"
        )
        raise FormatError("book", f"{where}: {problem}")
    return Translation(book=data)


_TOO_MANY_KEYS: Final = f"the book has more than {MAX_BOOK_KEYS} keys: split it"
