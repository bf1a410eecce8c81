"""Upgrade the JSON value of a card to Card V3.

The fields of V1 move into `data`. V2 and incomplete V3 get the fields that V3 requires. All other
members, also unknown ones, stay as they are. The argument itself is never changed.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.lorebook.book import parse_plain_number
from evennia_ai.formats.lorebooks.books import book_of_card, entries_in_order, unwrap_book
from evennia_ai.formats.lorebooks.conversion import as_v3
from evennia_ai.formats.lorebooks.values import read_flag
from evennia_ai.formats.lorebooks.written import EntryFields, read_v3_entry, unreadable_in_card

Object = dict[str, Any]
SPEC: Final = {"spec": "chara_card_v3", "spec_version": "3.0"}
# Maps the members that V3 requires in a card's `data`, in V3's order, to functions that return
# their empty values.
_REQUIRED: Final[Mapping[str, Callable[[], Any]]] = {
    **dict.fromkeys(("name", "description"), str),
    "tags": list,
    **dict.fromkeys(("creator", "character_version", "mes_example"), str),
    "extensions": dict,
    **dict.fromkeys(("system_prompt", "post_history_instructions", "first_mes"), str),
    "alternate_greetings": list,
    **dict.fromkeys(("personality", "scenario", "creator_notes"), str),
    "group_only_greetings": list,
}
# Optional members of a card's `data`. V3 does not allow null for them, so a null is removed.
_OPTIONAL: Final = (
    *("character_book", "nickname", "creator_notes_multilingual", "source", "assets"),
    *("creation_date", "modification_date"),
)
_ENTRY: Final[Mapping[str, Callable[[EntryFields], Any]]] = {
    "keys": lambda fields: list(fields.keys),
    "content": lambda fields: fields.content,
    "extensions": lambda _fields: {},
    "enabled": lambda fields: fields.enabled,
    "insertion_order": lambda fields: fields.order,
    "use_regex": lambda fields: fields.patterns != "none",
}
# The types that V3 requires for members of a lore entry. Many files have other types.
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "keys": (list,),
    "enabled": (bool,),
    "insertion_order": (int, float),
    "use_regex": (bool,),
}
# Optional flags of an entry, for which some files have 0 and 1 instead of false and true.
_FLAGS: Final = frozenset({"constant", "selective", "case_sensitive"})


def upgrade_card(raw: Mapping[str, Any]) -> Object:
    """Return a card's JSON value upgraded to V3; a book that cannot be read is not changed."""
    if raw.get("spec") is None:
        outer: Mapping[str, Any] = {}
        data = {name: value for name, value in raw.items() if name not in SPEC}
    else:
        outer, data = raw, {**raw["data"]}
    for name in _OPTIONAL:
        if name in data and data[name] is None:
            del data[name]
    for name, default in _REQUIRED.items():
        if data.get(name) is None:
            data[name] = default()
    # `True` and `False` are of other types, so they are not read as versions
    if type(data["character_version"]) in (int, float):
        data["character_version"] = str(data["character_version"])
    if isinstance(data.get("character_book"), dict):
        with suppress(FormatError):  # a book that cannot be read is exported unchanged
            data["character_book"] = _upgrade_book(data["character_book"])
    return {**outer, **SPEC, "data": data}


def _upgrade_book(book: Mapping[str, Any]) -> Object:
    """Return a card's book as V3: a list of entries with all required members."""
    made: Object = {**unwrap_book(as_v3(book_of_card(book)))}
    entries = made["entries"]
    named = isinstance(entries, dict)
    made["entries"] = [
        _upgrade_entry(_with_id(entry, name) if named else {**entry}, name)
        if isinstance(entry, dict)
        else entry
        for name, entry in entries_in_order(entries)
    ]
    if made.get("extensions") is None:
        made["extensions"] = {}
    return made


def _upgrade_entry(entry: Object, name: str) -> Object:
    """Return a lore entry with all members that V3 requires; unreadable ones stay unchanged."""
    fields = read_v3_entry(entry, default_uid=name, where=f"book.entries[{name}]")
    kept = unreadable_in_card(entry)
    for member, value_of in _ENTRY.items():
        value = entry.get(member)
        is_typed = isinstance(value, _TYPES.get(member, object))
        if value is None or not (is_typed or member in kept):
            entry[member] = value_of(fields)
    if type(entry.get("position")) is int and entry["position"] in (0, 1):
        entry["position"] = ("before_char", "after_char")[entry["position"]]
    for member in _FLAGS & entry.keys() - kept:
        if entry[member] is not None:
            entry[member] = read_flag(entry[member])
    if isinstance(entry.get("secondary_keys"), str):
        entry["secondary_keys"] = list(fields.secondary_keys)
    return entry


def _with_id(entry: Object, name: str) -> Object:
    """Return a lore entry with an id: its own id, else its `uid`, else its name in the file."""
    if entry.get("id") is not None and "id" not in unreadable_in_card(entry):
        return {**entry}
    uid = read_v3_entry(entry, default_uid=name, where=f"book.entries[{name}]").uid
    number = parse_plain_number(uid, digits=15)
    return {**entry, "id": uid if number is None else number}
