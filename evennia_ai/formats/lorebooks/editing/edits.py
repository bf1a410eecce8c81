"""Edit the JSON of a lorebook in the format of its file.

Edits return a new value, which shares unchanged parts with the old one, and never change their
arguments. Unknown fields are kept. Each edit reads its result again: if it cannot be read or does
not have the wanted values, the edit raises `FormatError`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from difflib import get_close_matches
from functools import partial
from itertools import chain
from typing import Any, Final, NamedTuple

from pydantic.alias_generators import to_camel

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.foreign.documents import check_plain, one_line
from evennia_ai.engine.lorebook.book import (
    BookMode,
    last_id_in,
    parse_plain_number,
    with_last_id,
    with_mode,
)
from evennia_ai.engine.lorebook.decorators import (
    NO_ICONS,
    parse_decorators,
    with_decorator_value,
    without_decorators,
)
from evennia_ai.engine.lorebook.entry import AT_MENTION, LoreEntry
from evennia_ai.formats.lorebooks.books import (
    entries_in_order,
    is_world_file,
    make_unique,
    read_book,
    unwrap_book,
)
from evennia_ai.formats.lorebooks.conversion import as_v3
from evennia_ai.formats.lorebooks.entry_fields import FIELDS, Write, problem_with
from evennia_ai.formats.lorebooks.other_programs import is_of_another_program
from evennia_ai.formats.lorebooks.reading import build_entry
from evennia_ai.formats.lorebooks.values import Where, parse_identifier
from evennia_ai.formats.lorebooks.written import is_world_entry, read_fields

# Templates for new entries, with all members that the format requires.
_NEW_V3: Final[Mapping[str, Any]] = {
    "keys": [],
    "content": "",
    "extensions": {},
    "enabled": True,
    "insertion_order": 100,
    "use_regex": False,
}
_NEW_WORLD: Final[Mapping[str, Any]] = {
    "key": [],
    "keysecondary": [],
    "comment": "",
    "content": "",
    "constant": False,
    "selective": False,
    "selectiveLogic": 0,
    "addMemo": True,
    "order": 100,
    "position": 0,
    "disable": False,
    "probability": 100,
    "useProbability": True,
    "depth": 4,
}
# Maps fields of an entry to the position that they imply. If an edit has several of these fields,
# the last row decides.
_IMPLIED: Final = {
    "depth": "depth",
    "outlet": "outlet",
    "anchor": "anchor",
    "mention": AT_MENTION,
}
_PLACES: Final = ("position", "depth", "reverse_depth")
_DESCRIBED: Final = {"before": "before_desc", "after": "after_desc"}
# In a V3 entry, SillyTavern writes names of its extension data in snake case. These members are
# exceptions with names in camel case.
_IN_CAMEL: Final = frozenset({"selective_logic", "use_probability"})


def new_book(name: str) -> dict[str, Any]:
    """Return the JSON value of a new V3 lorebook without entries."""
    return {"spec": "lorebook_v3", "data": {"name": name, "extensions": {}, "entries": []}}


def add_entry(
    book: Mapping[str, Any], fields: Mapping[str, Any], *, taken: Iterable[str] = ()
) -> tuple[dict[str, Any], str]:
    """Return a lorebook's JSON with a new entry at its end, and the id of that entry.

    Args:
        taken: further ids that the new entry may not get.

    Raises:
        FormatError: a field is unknown or cannot have its value.
    """
    book = _editable(book)
    listed = _listed(book)
    in_world = is_world_file(book)
    number = max(_last_id(listed, in_world), last_id_in(unwrap_book(book)), *_numbers(taken)) + 1
    is_world = _is_world(listed, in_world=in_world)
    blank = {**_NEW_WORLD, "uid": number} if is_world else {**_NEW_V3, "id": number}
    entry = _change_entry(deepcopy(blank), fields, uid=str(number), in_world=in_world)
    changed = {**listed, str(number): entry} if isinstance(listed, dict) else [*listed, entry]
    return _check_book(_with_entries(book, changed)), str(number)


def change_entry(book: Mapping[str, Any], uid: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return a lorebook's JSON with new values in fields of an entry; None removes a field.

    If a decorator in the content overrides a field, the decorator's line is changed too.

    Raises:
        FormatError: there is no such entry, or a field is unknown or cannot have its value.
    """
    book = _editable(book)
    listed = _listed(book)
    name, raw = _find_entry(listed, uid, is_world_file(book))
    entry = _change_entry(raw, fields, uid=uid, in_world=is_world_file(book))
    changed: list[Any] | dict[str, Any]
    if isinstance(listed, dict):
        changed = {**listed, name: entry}
    else:
        changed = [*listed]
        changed[int(name)] = entry
    return _check_book(_with_entries(book, changed))


def remove_entry(book: Mapping[str, Any], uid: str) -> dict[str, Any]:
    """Return a lorebook's JSON without one entry; the other entries keep their ids.

    The book remembers its highest id, so that no later entry gets the id of a removed one. Records
    of past turns and locks still refer to that id.

    Raises:
        FormatError: there is no such entry.
    """
    book = _editable(book)
    listed = _listed(book)
    name, _ = _find_entry(listed, uid, is_world_file(book))
    in_world = is_world_file(book)
    ids = [entry.uid for entry in _named_entries(listed, in_world) if entry.name != name]
    left: list[Any] | dict[str, Any]
    if isinstance(listed, dict):
        left = {key: entry for key, entry in listed.items() if key != name}
    else:
        left = [*listed[: int(name)], *listed[int(name) + 1 :]]
    last = max(_last_id(listed, in_world), last_id_in(unwrap_book(book)))
    whole = _with_entries(book, _with_ids(left, ids, in_world))
    if "entries" in whole:
        return _check_book(with_last_id(whole, last))
    return _check_book({**whole, "data": with_last_id(whole["data"], last)})


def changed_entry_ids(older: Mapping[str, Any], newer: Mapping[str, Any]) -> frozenset[str]:
    """Return the ids of entries that differ between two lorebooks or are only in one.

    Raises:
        FormatError: one of the books cannot be read.
    """
    before, after = (
        {one.uid: one.raw for one in _named_entries(_listed(_editable(book)), is_world_file(book))}
        for book in (older, newer)
    )
    both = before.keys() | after.keys()
    return frozenset(uid for uid in both if before.get(uid) != after.get(uid))


def content_at(book: Mapping[str, Any], index: int) -> str:
    """Return the content of a lorebook's entry, given by its index, with its decorators."""
    raw = list(entries_in_order(unwrap_book(book)["entries"]))[index][1]
    return str(raw.get("content") or "") if isinstance(raw, dict) else ""


def set_mode(book: Mapping[str, Any], mode: BookMode) -> dict[str, Any]:
    """Return a lorebook's JSON with a different activation mode."""
    book = _editable(book)
    if "entries" in book:
        return _check_book(with_mode(book, mode))
    return _check_book({**book, "data": with_mode(book["data"], mode)})


def entry_settings(entry: LoreEntry) -> dict[str, Any]:
    """Return a dict of an entry's values by field, in the form that edits accept.

    The content is without its decorator lines.
    """
    values = {name: _value_of(name, entry) for name, field in FIELDS.items() if field.is_compared}
    return {**values, "content": entry.template.source}


class _Named(NamedTuple):
    """A raw lore entry with its id and its name in the file."""

    name: str
    """The entry's name in an object of entries, or its position in a list."""
    uid: str
    raw: Any
    """The JSON value of the entry, which in a faulty file is not an object."""


def _editable(book: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the JSON of a book for edits: a book of another program becomes V3."""
    return as_v3(book) if is_of_another_program(book) else book


def _listed(book: Mapping[str, Any]) -> list[Any] | dict[str, Any]:
    listed = unwrap_book(book)["entries"]
    if not isinstance(listed, list | dict):
        raise FormatError("book", "book.entries: must be a list or an object")
    return listed


def _with_entries(book: Mapping[str, Any], listed: list[Any] | dict[str, Any]) -> dict[str, Any]:
    if "entries" in book:
        return {**book, "entries": listed}
    return {**book, "data": {**book["data"], "entries": listed}}


def _check_book(book: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON of a book if the book can be read.

    Raises:
        FormatError: the book cannot be read.
    """
    read_book(book)
    return book


def _is_world(listed: list[Any] | dict[str, Any], *, in_world: bool) -> bool:
    """True if new entries of a book are written with the field names of world files."""
    raws = listed.values() if isinstance(listed, dict) else listed
    is_one = all(is_world_entry(raw, in_world=in_world) for raw in raws)
    return is_one and (bool(listed) or isinstance(listed, dict))


def _named_entries(listed: list[Any] | dict[str, Any], in_world: bool) -> Iterator[_Named]:
    """Yield raw entries with the ids that they get when their book is read."""
    times: Counter[str] = Counter()
    for name, raw in entries_in_order(listed):
        own = _own_id(name, raw, in_world)
        yield _Named(name, make_unique(own, times), raw)


def _with_ids(
    listed: list[Any] | dict[str, Any], ids: Sequence[str], in_world: bool
) -> list[Any] | dict[str, Any]:
    """Return raw entries with these ids, which are in the order of the entries.

    An id is written only into an entry that would otherwise get another id.
    """
    named = list(_named_entries(listed, in_world))
    if all(entry.uid == uid for entry, uid in zip(named, ids, strict=True)):
        return listed
    raws: dict[str, Any] = {}
    for entry, uid in zip(named, ids, strict=True):
        raws[entry.name] = entry.raw
        if isinstance(entry.raw, dict) and _own_id(entry.name, entry.raw, in_world) != uid:
            member = "uid" if is_world_entry(entry.raw, in_world=in_world) else "id"
            number = parse_plain_number(uid, digits=15)
            raws[entry.name] = {**entry.raw, member: uid if number is None else number}
    return {key: raws[key] for key in listed} if isinstance(listed, dict) else [*raws.values()]


def _own_id(name: str, raw: Any, in_world: bool) -> str:
    """Return the id that the file gives to an entry, which may not be unique yet."""
    if not isinstance(raw, dict):
        return one_line(name)
    members = ("uid", "id") if is_world_entry(raw, in_world=in_world) else ("id", "uid")
    given = next((raw[each] for each in members if raw.get(each) is not None), name)
    try:
        return parse_identifier(given)
    except ValueError:  # an id that is neither a number nor a text counts as missing
        return one_line(name)


def _find_entry(listed: list[Any] | dict[str, Any], uid: str, in_world: bool) -> tuple[str, Any]:
    known: list[str] = []
    for entry in _named_entries(listed, in_world):
        if entry.uid == uid:
            return entry.name, entry.raw
        known.append(entry.uid)
    near = get_close_matches(uid[:60], known[:1000], n=3, cutoff=0.4) or known[:5]
    which = f"; there is {', '.join(near)}" if near else "; the book is empty"
    raise FormatError("book", f"book: there is no entry '{one_line(uid)[:60]}'{which}")


def _last_id(listed: list[Any] | dict[str, Any], in_world: bool) -> int:
    """Return the highest number among the ids and names of a book's entries, -1 if none."""
    names = (text for entry in _named_entries(listed, in_world) for text in (entry.name, entry.uid))
    return max(len(listed) - 1, *_numbers(names))


def _numbers(names: Iterable[str]) -> list[int]:
    """Return the names that are whole numbers, as numbers, with a -1 before them.

    The -1 makes sure that the list has a maximum.
    """
    numbers = [
        int(text) for text in names if text.isascii() and text.isdecimal() and len(text) <= 15
    ]
    return [-1, *numbers]


def _change_entry(
    raw: Any, given: Mapping[str, Any], *, uid: str, in_world: bool
) -> dict[str, Any]:
    """Return the JSON of one entry with new values in some fields.

    Errors that the entry had before the edit are ignored, so that builders can fix them one by one.

    Args:
        in_world: True for an entry of a world file.

    Raises:
        FormatError: a field is unknown or cannot have its value, or another setting of the entry
            overrides it.
    """
    fields = _checked_fields(given)
    implied = [place for name, place in _IMPLIED.items() if fields.get(name) is not None]
    if implied and "position" not in fields:
        fields = {"position": implied[-1], **fields}
    if not isinstance(raw, dict):
        problem = f"entry {one_line(uid)[:60]}: it is not an object and has no fields; remove it"
        raise FormatError("book", problem)
    is_world = is_world_entry(raw, in_world=in_world)
    read = partial(_read, uid=uid, in_world=in_world)
    before, old_faults = read(raw)
    if "content" in fields or isinstance(raw.get("content"), str):
        fields["content"] = _with_decorators({"content": raw.get("content"), **fields})
    writes = chain.from_iterable(
        FIELDS[name].writes(value, is_world) for name, value in fields.items()
    )
    entry = _write_members(raw, writes, is_world=is_world)
    after, faults = read(entry)
    if after.patterns != before.patterns and "patterns" not in fields:
        # Adding SillyTavern's members changes the meaning of `use_regex`. Write the old meaning
        # explicitly, so that the edit does not turn keys into regular expressions or back.
        keep = FIELDS["patterns"].writes(before.patterns, is_world)
        entry = _write_members(entry, keep, is_world=is_world)
        after, faults = read(entry)
    for fault in faults:
        if str(fault) not in map(str, old_faults):
            raise fault
    _confirm(fields, after)
    return entry


def _checked_fields(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of the fields of an edit, after checking names and values.

    Raises:
        FormatError: a field is unknown or cannot have its value.
    """
    check_plain(dict(given), kind="book", where="entry")
    for name, value in given.items():
        if name not in FIELDS:
            near = get_close_matches(str(name)[:60], FIELDS, n=3) or FIELDS
            shown = one_line(str(name))[:60]
            raise FormatError(
                "book", f"entry: unknown field '{shown}'; it may be {', '.join(near)}"
            )
        if problem := problem_with(name, value):
            raise (Where("entry") / name).wrong(problem, value)
    return deepcopy(dict(given))


def _with_decorators(fields: Mapping[str, Any]) -> str:
    """Return an entry's content with decorator lines that agree with the edited fields.

    An existing decorator line is changed if possible, so that other programs see the new value.
    """
    content = _with_place(str(fields["content"]), fields)
    for name in ("role", "scan_depth"):
        if fields.get(name) is not None:
            content = with_decorator_value(content, name, str(fields[name]))
        elif name in fields:
            content = without_decorators(content, (name,))
    return content


def _with_place(content: str, fields: Mapping[str, Any]) -> str:
    if "position" not in fields:
        return (
            without_decorators(content, ("depth", "reverse_depth"))
            if "depth" in fields
            else content
        )
    place, depth = fields["position"], fields.get("depth")
    if place in _DESCRIBED:
        content = with_decorator_value(content, "position", _DESCRIBED[place])
        said = parse_decorators(content).value("position")
        return content if said == _DESCRIBED[place] else without_decorators(content, _PLACES)
    if place != "depth":
        return without_decorators(content, _PLACES)
    content = without_decorators(content, ("position",))
    if depth is None:
        return content
    return with_decorator_value(
        without_decorators(content, ("reverse_depth",)), "depth", str(depth)
    )


def _write_members(
    raw: Mapping[str, Any], writes: Iterable[Write], *, is_world: bool
) -> dict[str, Any]:
    """Return a copy of a raw entry with the changes in `writes` applied."""
    entry = dict(raw)
    app = entry if is_world else _copy_object(entry.get("extensions"))
    own = _copy_object(app.get("evennia_ai"))
    for write in writes:
        target = {"entry": entry, "app": app, "own": own}[write.target]
        for name in _member_names(target, write, is_world=is_world):
            if write.value is None:
                target.pop(name, None)
            else:
                target[name] = write.value
    app.pop("evennia_ai", None)
    if own:
        app["evennia_ai"] = own
    if not is_world and (app or "extensions" in entry):
        entry["extensions"] = app
    return entry


def _member_names(target: Mapping[str, Any], write: Write, *, is_world: bool) -> list[str]:
    """Return the names of the members that a change writes.

    A member may have two names, in snake case and in camel case. The names that the entry already
    has are returned. If it has none of them, the usual name is returned.
    """
    if write.target != "app":
        return [] if write.only_there and write.name not in target else [write.name]
    camel = to_camel(write.name)
    there = [name for name in dict.fromkeys((write.name, camel)) if name in target]
    usual = camel if is_world or write.name in _IN_CAMEL else write.name
    return there if there or write.only_there else [usual]


def _copy_object(value: Any) -> dict[str, Any]:
    """Return a copy of a JSON object; return a new empty object if the value is not an object."""
    return dict(value) if isinstance(value, dict) else {}


def _read(
    raw: Mapping[str, Any], *, uid: str, in_world: bool
) -> tuple[LoreEntry, tuple[FormatError, ...]]:
    """Return the parsed entry, and the errors that were found in it."""
    where = f"entry {one_line(uid)[:60]}"
    fields = read_fields(raw, in_world=in_world, default_uid=uid, where=where)
    return build_entry(fields, label="book", index=0, absent=NO_ICONS)[0], fields.problems


def _confirm(fields: Mapping[str, Any], entry: LoreEntry) -> None:
    """Raise FormatError if an edited entry does not have the values that the edit gave it."""
    for name, value in fields.items():
        now = _value_of(name, entry)
        if not FIELDS[name].is_compared or value is None or now == value:
            continue
        shown = one_line(repr(now))[:60]
        raise (Where("entry") / name).refused(
            f"would still be {shown}: something else in the entry overrides it"
            " (a decorator of its content, its position, or its regex keys); change that too"
        )


def _value_of(name: str, entry: LoreEntry) -> Any:
    """Return an entry's value of a field in the form that edits accept."""
    value = FIELDS[name].says(entry)
    return list(value) if isinstance(value, tuple) else value
