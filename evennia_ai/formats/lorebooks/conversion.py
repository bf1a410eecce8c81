"""Convert books between Card V3 and SillyTavern's world files without loss.

Some data has no field in the other format. The converted book carries it in a member that the other
program ignores: `evennia_ai_world` under `extensions` in V3, `evennia_ai_v3` in world files, for
the book and for each entry. This member lists the differences between the original and the result
of converting back. Converting back applies a difference only if the value has not been edited
since. So an edit wins. Books of other programs become V3, and cannot be converted back.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, count, pairwise
from typing import Any, Final

from pydantic.alias_generators import to_camel, to_snake

from evennia_ai.engine.foreign.documents import MAX_ENTRIES, check_plain
from evennia_ai.engine.lorebook.book import parse_plain_number
from evennia_ai.engine.lorebook.scan.regex.pattern import has_slashes, with_slashes
from evennia_ai.formats.lorebooks.books import (
    entries_in_order,
    is_world_file,
    read_book,
    unwrap_book,
)
from evennia_ai.formats.lorebooks.entry_fields import POSITIONS
from evennia_ai.formats.lorebooks.extension import AppEntry, unreadable_members
from evennia_ai.formats.lorebooks.other_programs import (
    is_of_another_program,
    translate_book,
    with_risu_lines_as_fields,
)
from evennia_ai.formats.lorebooks.written import (
    EntryFields,
    is_world_entry,
    read_v3_entry,
    read_world_entry,
    respell_as_world,
)

# The members inside this member are compared one by one. All other members are compared as a whole.
INSIDE: Final = "extensions"


def find_differences(
    rebuilt: Mapping[str, Any], original: Mapping[str, Any], at: tuple[str, ...] = ()
) -> list[dict[str, Any]]:
    """Return the changes that turn the JSON object `rebuilt` into `original`.

    Each change has the path `at` and the two values; a value that is missing is left out.
    """
    found: list[dict[str, Any]] = []
    for name in sorted({*original, *rebuilt}):
        named = (("original", original), ("rebuilt", rebuilt))
        sides = {side: value[name] for side, value in named if name in value}
        if len(sides) == 2 and is_same_json(*sides.values()):
            continue
        objects = [value for value in sides.values() if isinstance(value, dict)]
        if not at and name == INSIDE and len(objects) == 2:
            found += find_differences(rebuilt[name], original[name], (name,))
        else:
            found.append({"at": [*at, name], **sides})
    return found


def restore_differences(rebuilt: Mapping[str, Any], found: Any) -> dict[str, Any]:
    """Return a copy of a JSON object with recorded differences applied to it.

    Malformed differences are ignored. A member that was edited after the conversion keeps its edit.
    """
    value = dict(rebuilt)
    if isinstance(value.get(INSIDE), dict):
        value[INSIDE] = dict(value[INSIDE])
    for one in found if isinstance(found, list) else ():
        match one.get("at") if isinstance(one, dict) else None:
            case [str(name)]:
                parent = value
            case ["extensions", str(name)] if isinstance(value.get(INSIDE), dict):
                parent = value[INSIDE]
            case _:
                continue
        exists_as_rebuilt = (name in parent) == ("rebuilt" in one)
        if not (exists_as_rebuilt and is_same_json(parent.get(name), one.get("rebuilt"))):
            continue
        if "original" in one:
            parent[name] = one["original"]
        else:
            parent.pop(name, None)
    return value


def is_same_json(one: Any, other: Any) -> bool:
    """True if two JSON values are equal, ignoring the order of members; 1 and true differ."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


Object = dict[str, Any]
Listed = list[Any] | dict[str, Any]
Id = str | int | float
IN_V3: Final = "evennia_ai_world"
IN_WORLD: Final = "evennia_ai_v3"
_V3_FRAME: Final[Mapping[str, Any]] = {"spec": "lorebook_v3"}
# Members of a book with the same name and meaning in Card V3 and in world files.
_SHARED: Final = ("name", "description", "scan_depth", "token_budget", "recursive_scanning")


def as_v3(book: Mapping[str, Any], *, name: str = "") -> Object:
    """Convert a lorebook's JSON to Card V3; a V3 book is returned unchanged.

    Args:
        name: the name for a book that contains no name.

    Raises:
        FormatError: the book cannot be read.
    """
    check_plain(book, kind="book", where="book")
    found = translate_book(book, limit_entries=MAX_ENTRIES)
    if found is not None:
        given = {"name": name} if name and not found.book.get("name") else {}
        return _with_frame({**found.book, **given}, _V3_FRAME)
    if not is_world(book):
        return _with_v3_entries(book)
    head, listed, frame = _split_book(book)
    told = _object(head.pop(IN_WORLD, None))
    data = _v3_head(head, name=name, frame=frame, listed=listed)
    ids = [(key, _id(raw, key), raw) for key, raw in entries_in_order(listed)]
    # SillyTavern uses the id of an entry as its name in the file. Other names are recorded in the
    # entries, so that converting back restores them.
    named = not all(isinstance(uid, int) and uid >= 0 and key == str(uid) for key, uid, _ in ids)
    entries = [_v3_entry(raw, uid, key if named else "") for key, uid, raw in ids]
    data = restore_differences(data, told.get("differences"))
    data["entries"] = (
        dict(zip(_recorded_names(ids), entries, strict=True)) if told.get("is_object") else entries
    )
    return _with_frame(data, told.get("frame", _V3_FRAME))


def as_world(book: Mapping[str, Any]) -> Object:
    """Convert a lorebook's JSON to a SillyTavern world file; a world file is returned unchanged.

    Raises:
        FormatError: the book cannot be read.
    """
    if is_of_another_program(book):
        return as_world(as_v3(book))
    if is_world(book):
        return dict(book)
    head, listed, frame = _split_book(book)
    told = _recorded_in_v3(head)
    entries = _world_entries(listed)
    back = list(entries.values()) if told.get("is_list") else entries
    world = restore_differences(_world_head(head), told.get("differences"))
    # the argument `name` that restores this book when `as_v3` converts it back
    given = "" if "name" in world else head.get("name") or ""
    again = _v3_head(world, name=given, frame=told.get("frame"), listed=back)
    lost: Object = {}
    if found := find_differences(again, head):
        lost["differences"] = found
    if frame != _V3_FRAME:
        lost["frame"] = frame
    if isinstance(listed, dict):
        lost["is_object"] = True
    world |= {IN_WORLD: lost} if lost else {}
    return _with_frame({**world, "entries": back}, told.get("frame"))


def is_world(book: Mapping[str, Any]) -> bool:
    """True if a lorebook's JSON is a SillyTavern world file.

    If only some entries have the field names of world files, the structure of the book decides.

    Raises:
        FormatError: the book cannot be read.
    """
    read_book(book)
    listed = unwrap_book(book)["entries"]
    in_world = is_world_file(book)
    kinds = {is_world_entry(entry, in_world=in_world) for _, entry in entries_in_order(listed)}
    if len(kinds) == 1:
        return kinds.pop()
    return in_world if kinds else isinstance(listed, dict)


def _with_v3_entries(book: Mapping[str, Any]) -> Object:
    """Return a V3 book with all entries in V3 form.

    Some tools write V3 books in which entries have the field names of SillyTavern's world files.
    These entries are converted.
    """
    _, listed, _ = _split_book(book)
    if not any(_is_spelled_as_world(entry) for _, entry in entries_in_order(listed)):
        return dict(book)
    made = {
        key: _v3_entry(raw, _id(raw, key), "") if _is_spelled_as_world(raw) else raw
        for key, raw in entries_in_order(listed)
    }
    entries = (
        list(made.values()) if isinstance(listed, list) else {key: made[key] for key in listed}
    )
    if "entries" in book:
        return {**book, "entries": entries}
    return {**book, "data": {**book["data"], "entries": entries}}


def _is_spelled_as_world(entry: Any) -> bool:
    return isinstance(entry, dict) and is_world_entry(entry, in_world=False)


def _split_book(book: Mapping[str, Any]) -> tuple[Object, Listed, Object | None]:
    """Return the settings of a book, its entries, and the object that encloses it or None."""
    raw = unwrap_book(book)
    head = {name: value for name, value in raw.items() if name != "entries"}
    frame = {name: value for name, value in book.items() if name != "data"}
    return head, raw["entries"], None if "entries" in book else frame


def _with_frame(raw: Object, frame: Any) -> Object:
    """Return a book inside its enclosing object, if it has one.

    Raises:
        FormatError: unusual members of the enclosing object make the book unreadable.
    """
    book = {**frame, "data": raw} if isinstance(frame, Mapping) else raw
    read_book(book)
    return book


def _v3_head(
    world: Mapping[str, Any], *, name: str, frame: Object | None, listed: Listed
) -> Object:
    """Return the settings of a V3 book for a world file.

    They include a record of the data that converting back to this world file would lose.
    """
    data: Object = {"name": name} if name else {}
    data |= {known: world[known] for known in _SHARED if known in world}
    data["extensions"] = dict(_object(world.get("extensions")))
    lost: Object = {}
    if found := find_differences(_world_head(data), world):
        lost["differences"] = found
    if frame is not None:
        lost["frame"] = frame
    if isinstance(listed, list):
        lost["is_list"] = True
    data["extensions"] |= {IN_V3: lost} if lost else {}
    return data


def _world_head(v3: Mapping[str, Any]) -> Object:
    world: Object = {known: v3[known] for known in _SHARED if known in v3}
    extensions = _object(v3.get("extensions"))
    rest = {name: value for name, value in extensions.items() if name != IN_V3}
    return {**world, "extensions": rest} if rest else world


def _v3_entry(raw: Any, uid: Id, name: str) -> Any:
    """Convert an entry of a world file to V3.

    An entry that is not an object is not changed. An entry that already has the field names of V3
    keeps its members.

    Args:
        name: the name of the entry in the file if it differs from the id, else "".
    """
    if not isinstance(raw, dict):
        return raw
    plain = {member: value for member, value in raw.items() if member != IN_WORLD}
    if is_world_entry(plain, in_world=True):
        entry = v3_entry(plain, uid=uid)
    else:
        entry = {"id": uid, **plain, "extensions": dict(_object(plain.get("extensions")))}
    lost: Object = {"name": name} if name else {}
    if found := find_differences(world_entry(entry, uid=uid), plain):
        lost["differences"] = found
    entry["extensions"] |= {IN_V3: lost} if lost else {}
    return restore_differences(entry, _object(raw.get(IN_WORLD)).get("differences"))


def _world_entries(listed: Listed) -> Object:
    """Return the entries of a V3 book as entries of a world file, by name.

    Each entry also has a record of the data that world files cannot express.
    """
    entries: Object = {}
    for (key, raw), (name, uid) in zip(entries_in_order(listed), _names(listed), strict=True):
        if not isinstance(raw, dict):
            entries[name] = raw
            continue
        plain = dict(raw)
        told = _recorded_in_v3(raw)
        if told:
            plain["extensions"] = {**raw["extensions"]}
            del plain["extensions"][IN_V3]
        entry = restore_differences(world_entry(plain, uid=uid), told.get("differences"))
        again = _v3_entry(entry, _id(entry, name), name if told.get("name") == name else "")
        lost: Object = {"name": key} if isinstance(listed, dict) else {}
        if found := find_differences(again, raw):
            lost["differences"] = found
        entries[name] = {**entry, IN_WORLD: lost} if lost else entry
    return entries


def _id(raw: Any, name: str) -> Id:
    said = raw if isinstance(raw, dict) else {}
    for uid in (said.get("uid"), said.get("id")):
        if isinstance(uid, str | int | float) and not isinstance(uid, bool):
            return uid
    number = parse_plain_number(name, digits=18)  # an id of more than 18 digits is kept as text
    return name if number is None else number


def _recorded_names(ids: Sequence[tuple[str, Id, Object]]) -> Iterator[str]:
    """Yield unique names for the entries of a V3 book: recorded names, else those in `ids`."""
    told = [_object(_object(raw).get(IN_WORLD)).get("name") for _, _, raw in ids]
    taken = {name for name in told if isinstance(name, str)}
    given: set[str] = set()
    for (key, _, _), name in zip(ids, told, strict=True):
        is_free = isinstance(name, str) and name not in given
        numbered = (f"{key} ({number})" for number in count(2))
        others = (each for each in chain([key], numbered) if each not in taken)
        given.add(free := str(name) if is_free else next(others))
        taken.add(free)
        yield free


def _names(listed: Listed) -> Iterator[tuple[str, Id]]:
    """Yield names and ids for the entries of a world file.

    SillyTavern orders entries by these names.
    """
    raws = [raw for _, raw in entries_in_order(listed)]
    told = [_recorded_in_v3(raw).get("name") for raw in raws]
    ids: list[Any] = [_object(raw).get("id") for raw in raws]
    if not any(told):
        for uid in ids if _are_ascending(ids) else range(len(ids)):
            yield str(uid), uid
        return
    free = len(ids) + max((int(name) for name in (*told, *ids) if _is_digits(name)), default=0)
    taken: set[str] = set()
    for at, (name, uid) in enumerate(zip(told, ids, strict=True)):
        if isinstance(name, str) and name not in taken and uid is not None:
            taken.add(name)
            yield name, uid
        else:
            yield str(free + 1 + at), free + 1 + at


def _are_ascending(ids: Sequence[Any]) -> bool:
    numbers = all(type(uid) is int and 0 <= uid < 2**32 - 1 for uid in ids)
    return numbers and all(low < high for low, high in pairwise(ids))


def _is_digits(name: Any) -> bool:
    text = str(name)
    return text.isascii() and text.isdecimal() and len(text) <= 15


def _recorded_in_v3(value: Any) -> Object:
    return _object(_object(_object(value).get("extensions")).get(IN_V3))


def _object(value: Any) -> Object:
    return value if isinstance(value, dict) else {}


# Maps the names in world files to V3's names, for members that V3 keeps under `extensions`.
_APP: Final[Mapping[str, str]] = {
    to_camel(name): name
    for name in (*AppEntry.model_fields, "vectorized", "automation_id", "display_index")
    if name != "position"
} | {"selectiveLogic": "selectiveLogic", "useProbability": "useProbability"}
_KNOWN: Final = frozenset({*_APP, *map(to_snake, _APP), "position"})


def v3_entry(raw: Mapping[str, Any], *, uid: str | float) -> dict[str, Any]:
    """Convert an entry of a world file to V3, as far as V3 has fields for its data."""
    raw = respell_as_world(raw)
    fields = read_world_entry(raw, default_uid=str(uid), where="entry")
    return {
        "id": uid,
        "keys": list(fields.keys),
        "secondary_keys": list(fields.secondary_keys),
        "name": fields.name,
        "comment": fields.name,
        "content": _content(raw, fields),
        "constant": fields.constant,
        "selective": fields.selective,
        "insertion_order": fields.order,
        "enabled": fields.enabled,
        "position": "before_char" if fields.position == "before" else "after_char",
        "use_regex": True,
        "extensions": _v3_extensions(raw, fields),
    }


def world_entry(raw: Mapping[str, Any], *, uid: str | float) -> dict[str, Any]:
    """Convert a V3 entry to a world file entry, as far as world files have fields for its data."""
    fields = read_v3_entry(raw, default_uid=str(uid), where="entry")
    raw, _ = with_risu_lines_as_fields(raw)
    extensions = dict(_object(raw.get("extensions")))
    app = _world_members(extensions)
    own = _world_own(raw, fields, extensions.pop("evennia_ai", None))
    entry = {
        "uid": uid,
        # SillyTavern only treats keys between slashes as regular expressions, so slashes are added.
        "key": [with_slashes(key) if fields.patterns == "all" else key for key in fields.keys],
        "keysecondary": list(fields.secondary_keys),
        "comment": fields.name,
        "content": _content(raw, fields),
        "constant": fields.constant,
        "selective": fields.selective,
        "order": fields.order,
        "position": POSITIONS.index(fields.position),
        "disable": not fields.enabled,
        **app,
    }
    if fields.case_sensitive is not None:
        entry["caseSensitive"] = fields.case_sensitive
    rest = {
        name: value
        for name, value in extensions.items()
        if name not in _KNOWN or name in unreadable_members(extensions)
    }
    return {
        **entry,
        **({} if own in (None, {}) else {"evennia_ai": own}),
        **({"extensions": rest} if rest else {}),
    }


def _content(raw: Mapping[str, Any], fields: EntryFields) -> Any:
    """Return the text of an entry; a value that is not text is returned unchanged."""
    written = raw.get("content")
    return fields.content if written is None else written


def _v3_extensions(raw: Mapping[str, Any], fields: EntryFields) -> dict[str, Any]:
    more = raw.get("extensions")
    rest = more if isinstance(more, dict) else {}
    extensions = {
        name: value
        for name, value in rest.items()
        if name not in _KNOWN and not name.startswith("evennia_ai")
    }
    extensions["position"] = POSITIONS.index(fields.position)
    extensions |= {_APP[name]: value for name, value in raw.items() if name in _APP}
    if "probability" in extensions and extensions.get("useProbability") is None:
        # Without this flag, V3 would use the entry's chance, and a world file would ignore it.
        extensions["useProbability"] = False
    if raw.get("evennia_ai") not in (None, {}):
        extensions["evennia_ai"] = raw["evennia_ai"]
    return extensions


def _world_members(extensions: Mapping[str, Any]) -> dict[str, Any]:
    wrong = unreadable_members(extensions)
    members: dict[str, Any] = {}
    for name, snake in _APP.items():
        for spelled in (name, to_snake(snake)):
            if spelled in extensions and spelled not in wrong:
                members[name] = extensions[spelled]
                break
    if "probability" in members and members.get("useProbability") is None:
        # Without this flag, a world file would ignore the entry's chance, and V3 would use it.
        members["useProbability"] = True
    return members


def _world_own(raw: Mapping[str, Any], fields: EntryFields, own: Any) -> Any:
    """Return the `evennia_ai` data of an entry for a world file.

    The data includes settings that only V3 can express.
    """
    if own is not None and not isinstance(own, dict):
        return own
    said = dict(own or {})
    if raw.get("priority") is not None:
        said["priority"] = fields.priority
    looks_like_one = any(map(has_slashes, (*fields.keys, *fields.secondary_keys)))
    if fields.patterns == "all" or (fields.patterns == "none" and looks_like_one):
        said["patterns"] = fields.patterns
    return said
