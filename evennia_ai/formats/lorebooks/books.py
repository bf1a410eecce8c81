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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any, Final, NamedTuple

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
from evennia_ai.engine.prompt.memo import Memo, Slot
from evennia_ai.engine.prompt.templates.macros import MAX_MACROS_OF_BOOK, check_macros
from evennia_ai.formats.file_kinds import told_of
from evennia_ai.formats.lorebooks.agnai import from_agnai, is_agnai
from evennia_ai.formats.lorebooks.entries_alike import (
    EntryReader,
    OwnWords,
    are_plain,
    own_words,
)
from evennia_ai.formats.lorebooks.novelai import from_novelai, is_novelai
from evennia_ai.formats.lorebooks.reading import entry_of
from evennia_ai.formats.lorebooks.risu import from_risu, is_risu
from evennia_ai.formats.lorebooks.values import Flag, Translation, WholeCount
from evennia_ai.formats.lorebooks.written import read_fields


class _Program(NamedTuple):
    is_its_own: Callable[[Mapping[str, Any]], bool]
    listed_in: str
    translate: Callable[[Mapping[str, Any]], Translation]


# In the order they are asked; `lorebook_v3` says what it is and goes before them.
_PROGRAMS: Final = (
    _Program(is_novelai, "entries", from_novelai),
    _Program(is_agnai, "entries", from_agnai),
    _Program(is_risu, "data", from_risu),
)


def is_of_another_program(data: Any) -> bool:
    """Whether a file's JSON value bears the marks of another program's book."""
    return _program_of(data) is not None


def translated(data: Any, *, limit_entries: int, where: str = "book") -> Translation | None:
    """The book of another program as V3 has it; None: it bears no such marks.

    `data` are plain JSON values. FormatError: it has no list of entries, or too many.
    """
    program = _program_of(data)
    if program is None:
        return None
    listed = data.get(program.listed_in)
    if not isinstance(listed, list):
        raise FormatError("book", f"{where}.{program.listed_in}: must be a list")
    if len(listed) > limit_entries:
        raise FormatError("book", f"{where}: has more than {limit_entries} entries; split it")
    return program.translate(data)


def _program_of(data: Any) -> _Program | None:
    if not isinstance(data, Mapping) or data.get("spec") == "lorebook_v3":
        return None
    return next((program for program in _PROGRAMS if program.is_its_own(data)), None)


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
    looked_at = _looked_at(data, where)
    read = _read(data, where)
    raw = read.book
    book, doubts = _checked(raw, where)
    own_mode = mode_in(raw, where=where)
    label = label or one_line(book.name or "") or "book"
    in_world = is_world_file(data)
    entries, notices = _entries(
        read, looked_at, label=label, where=where, in_world=in_world, absent=absent
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


def with_entry(book: Lorebook, at: int, *, was: Any, now: Any, in_world: bool) -> Lorebook | None:
    """The book whose entry at `at` says `now` in place of `was`, as if it were read anew.

    None where that concerns more than this entry.
    """
    old, where = book.entries[at], f"book {one_line(book.label)}.entries[{at}]"
    (_, doubts), (entry, found) = (
        entry_of(
            read_fields(raw, in_world=in_world, default_uid=old.uid, where=where),
            label=book.label,
            index=at,
            absent=NO_ICONS,
        )
        for raw in (was, now)
    )
    keys = _key_count(book) + _keys_of(entry) - _keys_of(old)
    if entry.uid != old.uid or doubts != found or keys > MAX_BOOK_KEYS:
        return None
    entries = (*book.entries[:at], entry, *book.entries[at + 1 :])
    after = replace(book, entries=entries, memo=Memo(), of_entries=Memo())
    after.of_entries[_KEY_COUNT] = keys
    return after


_KEY_COUNT: Final = Slot[int]("number of keys")


def _key_count(book: Lorebook) -> int:
    """How many keys the entries have; more than there may be where some were taken away."""
    known = book.of_entries.get(_KEY_COUNT)
    if known is None:
        is_over = any(entry.refused == _TOO_MANY_KEYS for entry in book.entries)
        known = MAX_BOOK_KEYS + 1 if is_over else sum(map(_keys_of, book.entries))
        book.of_entries[_KEY_COUNT] = known
    return known


def _keys_of(entry: LoreEntry) -> int:
    keys = len(entry.keys) + len(entry.secondary_keys)
    if entry.gates is NO_GATES:
        return keys
    return keys + sum(map(len, (*entry.gates.additional, entry.gates.excluded)))


class _LookedAt(NamedTuple):
    """The entries of a file, which are plain values, and what each says for itself."""

    listed: Any
    owns: Sequence[OwnWords | None] = ()


def _looked_at(data: Any, where: str) -> _LookedAt:
    """What the entries say for themselves; FormatError where a value is no plain one of JSON."""
    inner: Any = (
        data.get("data") if type(data) is dict and data.get("spec") == "lorebook_v3" else data
    )
    listed = inner.get("entries") if type(inner) is dict else None
    if (type(listed) is not list and type(listed) is not dict) or len(listed) > MAX_ENTRIES:
        check_plain(data, kind="book", where=where)
        return _LookedAt(None)
    raws = listed if isinstance(listed, list) else list(listed.values())
    owns = own_words(raws, in_world=is_world_file(data))
    if are_plain(raws, owns):
        names = listed if isinstance(listed, dict) else ()
        frame = {**inner, "entries": dict.fromkeys(names)}
        check_plain(frame if inner is data else {**data, "data": frame}, kind="book", where=where)
    else:
        check_plain(data, kind="book", where=where)
    return _LookedAt(listed, owns)


def _entries(
    read: Translation,
    looked_at: _LookedAt,
    *,
    label: str,
    where: str,
    in_world: bool,
    absent: Absent,
) -> tuple[tuple[LoreEntry, ...], list[str]]:
    """The entries in the file's order, and the notices about them."""
    raws = read.book["entries"]
    listed = in_order(raws)
    of_names = listed if isinstance(raws, list) else [*raws.items()]
    is_as_it_was = raws is looked_at.listed  # else another program wrote it
    owns = looked_at.owns
    if not is_as_it_was:
        owns = own_words([raw for _, raw in of_names], in_world=in_world)
    if listed != of_names:
        by_name = dict(zip(raws, owns, strict=True))
        owns = [by_name[name] for name, _ in listed]
    contents = (
        (f"{where}.entries[{one_line(name)}].content", raw.get("content"))
        for name, raw in listed
        if isinstance(raw, dict)
    )
    texts = ((path, text) for path, text in contents if isinstance(text, str))
    check_macros(texts, kind="book", most=MAX_MACROS_OF_BOOK)
    reader = EntryReader(label=label, in_world=in_world, absent=absent)
    entries: list[LoreEntry] = []
    doubted: dict[str, list[str]] = {}
    times: Counter[str] = Counter()
    for index, ((name, raw), own) in enumerate(zip(listed, owns, strict=True)):
        made, found = reader.read(raw, own, index=index, name=name, where=where)
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
    found = translated(data, where=where, limit_entries=MAX_ENTRIES)
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
