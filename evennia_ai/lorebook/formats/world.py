"""Entries of SillyTavern's world files, and one entry in the other format: V3 <-> world.

Only what both can say is translated here, so that either program does the same with it; what is
lost on the way is the business of `conversion`. SillyTavern's data stands under `extensions` in V3.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from pydantic.alias_generators import to_camel, to_snake

from evennia_ai.foreign.documents import ListOf
from evennia_ai.lorebook.formats.entry_fields import EntryFields
from evennia_ai.lorebook.formats.extension import read_own
from evennia_ai.lorebook.formats.v3 import (
    AppEntry,
    chance_of,
    doubts,
    from_v3,
    place_of,
    said,
    unreadable,
)
from evennia_ai.lorebook.formats.values import Content, Flag, Identifier, Number
from evennia_ai.lorebook.formats.writes import POSITIONS
from evennia_ai.lorebook.scan.regex.pattern import is_delimited


class _WorldEntry(AppEntry):
    uid: Identifier | None = None
    key: ListOf[str] | None = None
    keysecondary: ListOf[str] | None = None
    comment: str | None = None
    content: Content | None = None
    constant: Flag | None = None
    selective: Flag | None = None
    order: Number | None = None
    disable: Flag | None = None


def from_world(raw: Mapping[str, Any], *, default_uid: str, where: str) -> EntryFields:
    """What the entry says; pydantic's or a FormatError names the field that is wrong.

    As in the application, a chance counts only with `useProbability` and secondary keys only with
    `selective`.
    """
    entry = _WorldEntry.model_validate(raw)
    own = read_own(raw.get("evennia_ai"), where=f"{where}.evennia_ai")
    patterns = "by_form" if own.patterns is None else own.patterns
    order = 100 if entry.order is None else entry.order
    return EntryFields(
        uid=default_uid if entry.uid is None else entry.uid,
        name=entry.comment or "",
        keys=tuple(entry.key or ()),
        secondary_keys=tuple(entry.keysecondary or ()),
        selective=bool(entry.selective and entry.keysecondary and patterns != "all"),
        patterns=patterns,
        enabled=not entry.disable,
        constant=bool(entry.constant and patterns != "all"),
        content=entry.content or "",
        position=place_of(entry, "before"),
        order=order,
        priority=order if own.priority is None else own.priority,
        case_sensitive=entry.case_sensitive,
        chance=chance_of(entry, used_unless_said=False),
        **said(entry),
        own=own,
        notices=tuple(doubts(entry)),
    )


# Members of a world file that stand under `extensions` in V3: ours -> theirs.
_APP: Final[Mapping[str, str]] = {
    to_camel(name): name
    for name in (*AppEntry.model_fields, "vectorized", "automation_id", "display_index")
    if name != "position"
} | {"selectiveLogic": "selectiveLogic", "useProbability": "useProbability"}
_KNOWN: Final = frozenset({*_APP, *map(to_snake, _APP), "position"})
_OPEN_SLASH: Final = re.compile(r"(?<!\\)/")


def v3_entry(raw: Mapping[str, Any], *, uid: str | float) -> dict[str, Any]:
    """What V3 can say of an entry of a world file."""
    fields = from_world(raw, default_uid=str(uid), where="entry")
    return {
        "id": uid,
        "keys": list(fields.keys),
        "secondary_keys": list(fields.secondary_keys),
        "name": fields.name,
        "comment": fields.name,
        "content": fields.content,
        "constant": fields.constant,
        "selective": fields.selective,
        "insertion_order": fields.order,
        "enabled": fields.enabled,
        "position": "before_char" if fields.position == "before" else "after_char",
        "use_regex": True,
        "extensions": _v3_extensions(raw, fields),
    }


def world_entry(raw: Mapping[str, Any], *, uid: str | float) -> dict[str, Any]:
    """What a world file can say of a V3 entry."""
    fields = from_v3(raw, default_uid=str(uid), where="entry")
    extensions = dict(raw.get("extensions") or {})
    app = _world_members(extensions)
    own = _world_own(raw, fields, extensions.pop("evennia_ai", None) or {})
    entry = {
        "uid": uid,
        "key": _world_keys(fields),
        "keysecondary": list(fields.secondary_keys),
        "comment": fields.name,
        "content": fields.content,
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
        if name not in _KNOWN or name in unreadable(extensions)
    }
    return {
        **entry,
        **({"evennia_ai": own} if own else {}),
        **({"extensions": rest} if rest else {}),
    }


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
        extensions["useProbability"] = False  # card entries use a chance unless they say so
    if raw.get("evennia_ai"):
        extensions["evennia_ai"] = raw["evennia_ai"]
    return extensions


def _world_members(extensions: Mapping[str, Any]) -> dict[str, Any]:
    wrong = unreadable(extensions)
    members: dict[str, Any] = {}
    for name, snake in _APP.items():
        for spelled in (name, to_snake(snake)):
            if spelled in extensions and spelled not in wrong:
                members[name] = extensions[spelled]
                break
    if "probability" in members and members.get("useProbability") is None:
        members["useProbability"] = True  # world entries use a chance only if they say so
    return members


def _world_own(
    raw: Mapping[str, Any], fields: EntryFields, own: Mapping[str, Any]
) -> dict[str, Any]:
    """Our own data in a world file, with what V3 has a field for."""
    said = dict(own)
    if raw.get("priority") is not None:
        said["priority"] = fields.priority
    looks_like_one = any(map(is_delimited, (*fields.keys, *fields.secondary_keys)))
    if fields.patterns == "all" or (fields.patterns == "none" and looks_like_one):
        said["patterns"] = fields.patterns
    return said


def _world_keys(fields: EntryFields) -> list[str]:
    """The keys; bare patterns get the slashes by which SillyTavern knows them."""
    if fields.patterns != "all":
        return list(fields.keys)
    return [key if is_delimited(key) else _as_pattern(key) for key in fields.keys]


def _as_pattern(body: str) -> str:
    return "/" + _OPEN_SLASH.sub(r"\/", body) + "/"
