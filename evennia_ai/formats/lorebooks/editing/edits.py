"""Edits of a book: changes to the file's own JSON, in the format the file is in.

Values in, values out: what is given stays as it is, what comes out shares with it what was not
touched. Fields nobody here knows are kept. Whatever comes out can be read, and says what was
asked; else nothing is changed and the error says why.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from difflib import get_close_matches
from functools import partial
from typing import Any, Final, NamedTuple

from pydantic.alias_generators import to_camel

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.foreign.documents import check_plain, one_line
from evennia_ai.engine.lorebook.book import (
    BookMode,
    last_id_in,
    plain_number,
    saying_last_id,
    saying_mode,
)
from evennia_ai.engine.lorebook.decorators import NO_ICONS, read_decorators, with_value, without
from evennia_ai.engine.lorebook.entry import AT_MENTION, LoreEntry
from evennia_ai.formats.lorebooks.books import (
    in_order,
    is_world_file,
    read_book,
    told_apart,
    unwrapped,
)
from evennia_ai.formats.lorebooks.conversion import as_v3
from evennia_ai.formats.lorebooks.entry_fields import FIELDS, Write, problem_with
from evennia_ai.formats.lorebooks.other_programs import is_of_another_program
from evennia_ai.formats.lorebooks.reading import entry_of
from evennia_ai.formats.lorebooks.values import Where, identifier
from evennia_ai.formats.lorebooks.written import is_world_entry, read_fields

# New entries, with what each standard requires.
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
# Fields that imply a place, and the place; the last one given counts.
_IMPLIED: Final = {
    "depth": "depth",
    "outlet": "outlet",
    "anchor": "anchor",
    "mention": AT_MENTION,
}
_PLACES: Final = ("position", "depth", "reverse_depth")
_DESCRIBED: Final = {"before": "before_desc", "after": "after_desc"}
# SillyTavern's extension data is in snake case, with these exceptions.
_IN_CAMEL: Final = frozenset({"selective_logic", "use_probability"})


def new_book(name: str) -> dict[str, Any]:
    """A standalone V3 lorebook without entries."""
    return {"spec": "lorebook_v3", "data": {"name": name, "extensions": {}, "entries": []}}


def add_entry(
    book: Mapping[str, Any], fields: Mapping[str, Any], *, taken: Iterable[str] = ()
) -> tuple[dict[str, Any], str]:
    """The book with one more entry at its end, and the entry's id.

    `taken` are ids that it may not have, beside those of the book's entries. FormatError: a field
    is not known, or cannot have the value.
    """
    book = _editable(book)
    listed = _listed(book)
    in_world = is_world_file(book)
    number = max(_last_id(listed, in_world), last_id_in(unwrapped(book)), *_numbers(taken)) + 1
    is_world = _is_world(listed, in_world=in_world)
    blank = {**_NEW_WORLD, "uid": number} if is_world else {**_NEW_V3, "id": number}
    entry = _changed_entry(deepcopy(blank), fields, uid=str(number), in_world=in_world)
    changed = {**listed, str(number): entry} if isinstance(listed, dict) else [*listed, entry]
    return _checked(_with_entries(book, changed)), str(number)


def change_entry(book: Mapping[str, Any], uid: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The book with other values in some fields of an entry; None takes a field back.

    Where a decorator of the content overrules a field, the decorator's line is changed too.
    FormatError: there is no such entry, or a field is not known or cannot have the value.
    """
    book = _editable(book)
    listed = _listed(book)
    name, raw = _found(listed, uid, is_world_file(book))
    entry = _changed_entry(raw, fields, uid=uid, in_world=is_world_file(book))
    changed: list[Any] | dict[str, Any]
    if isinstance(listed, dict):
        changed = {**listed, name: entry}
    else:
        changed = [*listed]
        changed[int(name)] = entry
    return _checked(_with_entries(book, changed))


def remove_entry(book: Mapping[str, Any], uid: str) -> dict[str, Any]:
    """Return the book without an entry; the others keep their ids, written where they moved.

    The book remembers its highest id: past turns and locks name a removed entry by its id, so no
    later one gets it. FormatError: there is no such entry.
    """
    book = _editable(book)
    listed = _listed(book)
    name, _ = _found(listed, uid, is_world_file(book))
    in_world = is_world_file(book)
    ids = [entry.uid for entry in _named(listed, in_world) if entry.name != name]
    left: list[Any] | dict[str, Any]
    if isinstance(listed, dict):
        left = {key: entry for key, entry in listed.items() if key != name}
    else:
        left = [*listed[: int(name)], *listed[int(name) + 1 :]]
    last = max(_last_id(listed, in_world), last_id_in(unwrapped(book)))
    whole = _with_entries(book, _with_ids(left, ids, in_world))
    if "entries" in whole:
        return _checked(saying_last_id(whole, last))
    return _checked({**whole, "data": saying_last_id(whole["data"], last)})


def changed_entries(older: Mapping[str, Any], newer: Mapping[str, Any]) -> frozenset[str]:
    """Return the ids of the entries that are not alike in two books, those of one book included.

    FormatError: one of them cannot be read as a book.
    """
    before, after = (
        {one.uid: one.raw for one in _named(_listed(_editable(book)), is_world_file(book))}
        for book in (older, newer)
    )
    both = before.keys() | after.keys()
    return frozenset(uid for uid in both if before.get(uid) != after.get(uid))


def content_at(book: Mapping[str, Any], index: int) -> str:
    """The content of the entry of this index as it is written, its decorators among it."""
    raw = list(in_order(unwrapped(book)["entries"]))[index][1]
    return str(raw.get("content") or "") if isinstance(raw, dict) else ""


def with_mode(book: Mapping[str, Any], mode: BookMode) -> dict[str, Any]:
    """The book with another mode."""
    book = _editable(book)
    if "entries" in book:
        return _checked(saying_mode(book, mode))
    return _checked({**book, "data": saying_mode(book["data"], mode)})


def fields_of(entry: LoreEntry) -> dict[str, Any]:
    """What an entry says, in the words of an edit; the content is without its decorators."""
    said = {name: _said(name, entry) for name, field in FIELDS.items() if field.is_compared}
    return {**said, "content": entry.template.source}


class _Named(NamedTuple):
    """An entry by its name in the file (its position in a list) and its id."""

    name: str
    uid: str
    raw: Any
    """Its own JSON: an object, or whatever a file has where one should be."""


def _editable(book: Mapping[str, Any]) -> Mapping[str, Any]:
    """The book, that of another program as V3: what is edited is no file of theirs any more."""
    return as_v3(book) if is_of_another_program(book) else book


def _listed(book: Mapping[str, Any]) -> list[Any] | dict[str, Any]:
    listed = unwrapped(book)["entries"]
    if not isinstance(listed, list | dict):
        raise FormatError("book", "book.entries: must be a list or an object")
    return listed


def _with_entries(book: Mapping[str, Any], listed: list[Any] | dict[str, Any]) -> dict[str, Any]:
    if "entries" in book:
        return {**book, "entries": listed}
    return {**book, "data": {**book["data"], "entries": listed}}


def _checked(book: dict[str, Any]) -> dict[str, Any]:
    """The book, which can be read; FormatError where it cannot."""
    read_book(book)
    return book


def _is_world(listed: list[Any] | dict[str, Any], *, in_world: bool) -> bool:
    """Whether new entries are to be spelled as in a world file."""
    raws = listed.values() if isinstance(listed, dict) else listed
    is_one = all(is_world_entry(raw, in_world=in_world) for raw in raws)
    return is_one and (bool(listed) or isinstance(listed, dict))


def _named(listed: list[Any] | dict[str, Any], in_world: bool) -> Iterator[_Named]:
    """The entries with the ids that they have as the book is read."""
    times: Counter[str] = Counter()
    for name, raw in in_order(listed):
        own = _own_id(name, raw, in_world)
        yield _Named(name, told_apart(own, times), raw)


def _with_ids(
    listed: list[Any] | dict[str, Any], ids: Sequence[str], in_world: bool
) -> list[Any] | dict[str, Any]:
    """The entries under these ids, in the order they are walked in.

    An id is not written while it is what the entry's place, and the ids before it, make of it.
    """
    named = list(_named(listed, in_world))
    if all(entry.uid == uid for entry, uid in zip(named, ids, strict=True)):
        return listed
    told = {
        entry.name: entry.raw
        if not isinstance(entry.raw, dict) or _own_id(entry.name, entry.raw, in_world) == uid
        else {**entry.raw, _id_member(entry.raw, in_world): _number_or_text(uid)}
        for entry, uid in zip(named, ids, strict=True)
    }
    return {key: told[key] for key in listed} if isinstance(listed, dict) else [*told.values()]


def _own_id(name: str, raw: Any, in_world: bool) -> str:
    """What an entry of this name would be called if it were alone."""
    if not isinstance(raw, dict):
        return one_line(name)
    members = ("uid", "id") if is_world_entry(raw, in_world=in_world) else ("id", "uid")
    given = next((raw[each] for each in members if raw.get(each) is not None), name)
    try:
        return identifier(given)
    except ValueError:  # neither number nor text: as if it were missing
        return one_line(name)


def _number_or_text(uid: str) -> int | str:
    number = plain_number(uid, digits=15)
    return uid if number is None else number


def _id_member(raw: Mapping[str, Any], in_world: bool) -> str:
    return "uid" if is_world_entry(raw, in_world=in_world) else "id"


def _found(listed: list[Any] | dict[str, Any], uid: str, in_world: bool) -> tuple[str, Any]:
    known: list[str] = []
    for entry in _named(listed, in_world):
        if entry.uid == uid:
            return entry.name, entry.raw
        known.append(entry.uid)
    near = get_close_matches(uid[:60], known[:1000], n=3, cutoff=0.4) or known[:5]
    which = f"; there is {', '.join(near)}" if near else "; the book is empty"
    raise FormatError("book", f"book: there is no entry '{one_line(uid)[:60]}'{which}")


def _last_id(listed: list[Any] | dict[str, Any], in_world: bool) -> int:
    """Return the highest number that is an id or a name of an entry, -1 where none is one."""
    names = (text for entry in _named(listed, in_world) for text in (entry.name, entry.uid))
    return max(len(listed) - 1, *_numbers(names))


def _numbers(names: Iterable[str]) -> list[int]:
    return [-1, *(int(text) for text in names if _is_number(text))]


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 15


def _changed_entry(
    raw: Any, given: Mapping[str, Any], *, uid: str, in_world: bool
) -> dict[str, Any]:
    """An entry's own JSON with the fields; `in_world` says whether it is one of a world file.

    FormatError: it would not say what was asked, or what is asked is wrong. What was wrong before
    may stay so: several faults of a file are mended one by one.
    """
    fields = _complete(_known(given))
    if not isinstance(raw, dict):
        problem = f"entry {one_line(uid)[:60]}: it is no object and has no fields; remove it"
        raise FormatError("book", problem)
    is_world = is_world_entry(raw, in_world=in_world)
    read = partial(_read, uid=uid, in_world=in_world)
    before, faults = read(raw)
    if "content" in fields or isinstance(raw.get("content"), str):
        fields["content"] = _agreeing({"content": raw.get("content"), **fields})
    entry = _written(raw, _writes(fields, is_world=is_world), is_world=is_world)
    after, left = read(entry)
    if after.patterns != before.patterns and "patterns" not in fields:
        # SillyTavern's data turns `use_regex` into something else: say what it was.
        keep = FIELDS["patterns"].writes(before.patterns, is_world)
        entry = _written(entry, keep, is_world=is_world)
        after, left = read(entry)
    for fault in left:
        if str(fault) not in map(str, faults):
            raise fault
    _confirm(fields, after)
    return entry


def _known(given: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of the fields; FormatError names what is not known or not allowed."""
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


def _complete(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields, with the place that some of them imply."""
    implied = [place for name, place in _IMPLIED.items() if fields.get(name) is not None]
    return fields if "position" in fields or not implied else {"position": implied[-1], **fields}


def _agreeing(fields: Mapping[str, Any]) -> str:
    """The content with decorators that do not contradict the fields.

    What a decorator says is changed in its line where it can be, so that other programs see it.
    """
    content = _placed(str(fields["content"]), fields)
    for name in ("role", "scan_depth"):
        if fields.get(name) is not None:
            content = with_value(content, name, str(fields[name]))
        elif name in fields:
            content = without(content, (name,))
    return content


def _placed(content: str, fields: Mapping[str, Any]) -> str:
    if "position" not in fields:
        return without(content, ("depth", "reverse_depth")) if "depth" in fields else content
    place, depth = fields["position"], fields.get("depth")
    if place in _DESCRIBED:
        content = with_value(content, "position", _DESCRIBED[place])
        said = read_decorators(content).value("position")
        return content if said == _DESCRIBED[place] else without(content, _PLACES)
    if place != "depth":
        return without(content, _PLACES)
    content = without(content, ("position",))
    if depth is None:
        return content
    return with_value(without(content, ("reverse_depth",)), "depth", str(depth))


def _writes(fields: Mapping[str, Any], *, is_world: bool) -> Iterator[Write]:
    for name, value in fields.items():
        yield from FIELDS[name].writes(value, is_world)


def _written(raw: Mapping[str, Any], writes: Iterable[Write], *, is_world: bool) -> dict[str, Any]:
    """A copy of the entry in which every write is done."""
    entry = dict(raw)
    app = entry if is_world else _copied(entry.get("extensions"))
    own = _copied(app.get("evennia_ai"))
    for write in writes:
        target = {"entry": entry, "app": app, "own": own}[write.target]
        for name in _names(target, write, is_world=is_world):
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


def _names(target: Mapping[str, Any], write: Write, *, is_world: bool) -> list[str]:
    """The members to write: each spelling that is there, else the usual one."""
    if write.target != "app":
        return [] if write.only_there and write.name not in target else [write.name]
    camel = to_camel(write.name)
    there = [name for name in dict.fromkeys((write.name, camel)) if name in target]
    usual = camel if is_world or write.name in _IN_CAMEL else write.name
    return there if there or write.only_there else [usual]


def _copied(value: Any) -> dict[str, Any]:
    """A copy of an object; what should be one and is none says nothing, and gives way to one."""
    return dict(value) if isinstance(value, dict) else {}


def _read(
    raw: Mapping[str, Any], *, uid: str, in_world: bool
) -> tuple[LoreEntry, tuple[FormatError, ...]]:
    """The entry, and what is wrong in it."""
    where = f"entry {one_line(uid)[:60]}"
    fields = read_fields(raw, in_world=in_world, default_uid=uid, where=where)
    return entry_of(fields, label="book", index=0, absent=NO_ICONS)[0], fields.problems


def _confirm(fields: Mapping[str, Any], entry: LoreEntry) -> None:
    """FormatError where the entry does not say what the fields say."""
    for name, value in fields.items():
        said = _said(name, entry)
        if not FIELDS[name].is_compared or value is None or said == value:
            continue
        says = one_line(repr(said))[:60]
        raise (Where("entry") / name).refused(
            f"would still be {says}: something else in the entry overrules it"
            " (a decorator of its content, its position, or its regex keys); change that too"
        )


def _said(name: str, entry: LoreEntry) -> Any:
    """What an entry says of a field, as an edit has it."""
    said = FIELDS[name].says(entry)
    return list(said) if isinstance(said, tuple) else said
