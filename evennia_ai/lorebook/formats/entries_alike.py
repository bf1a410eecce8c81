"""The entries of one book: what many of them say alike is read once.

Programs write every setting into every entry, and nearly all entries of a book have the same. So
an entry is taken apart into its own words (id, name, keys, content, order) and the rest, which is
known by its bytes. Where the rest was read before and its own words are as every program writes
them, an entry is the one that was read then, with other words. All others are read whole.
"""

import marshal
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any, Final, NamedTuple

from evennia_ai.errors import FormatError
from evennia_ai.foreign.documents import MAX_NUMBER, check_plain, one_line
from evennia_ai.lorebook.decorators import MAX_KEYS, Absent
from evennia_ai.lorebook.entry import MAX_KEY, LoreEntry
from evennia_ai.lorebook.formats.reading import entry_of, read_fields_of
from evennia_ai.lorebook.formats.written import is_world_entry
from evennia_ai.lorebook.scan.regex.pattern import is_delimited
from evennia_ai.prompt.components import MAX_CONTENT
from evennia_ai.prompt.templates.template import compile_template

# What one bytes stand for: what is left of an entry, whether it has secondary keys, and whether it
# has a key that is a pattern where patterns are asked for.
_Rest = tuple[bytes, bool, bool]


class OwnWords(NamedTuple):
    """What an entry says for itself, and by what the rest of it is known."""

    uid: str | None
    name: str
    keys: tuple[str, ...]
    secondary_keys: tuple[str, ...]
    content: str
    order: int
    rest: _Rest


class _Members(NamedTuple):
    """What the members with an entry's own words are called."""

    uid: str
    names: tuple[str, ...]
    keys: str
    secondary_keys: str
    order: str
    numbering: str
    """One that numbers the entries for a screen; nobody reads it."""


_WORLD: Final = _Members("uid", ("comment",), "key", "keysecondary", "order", "displayIndex")
_V3: Final = _Members(
    "id", ("comment", "name"), "keys", "secondary_keys", "insertion_order", "display_index"
)
# What stands in the place of an entry's own words; whether one that says nothing is there at all
# makes no difference.
_WITHOUT: Final[Mapping[_Members, Mapping[str, None]]] = {
    each: dict.fromkeys(
        (each.uid, *each.names, each.keys, each.secondary_keys, each.order, "content")
    )
    for each in (_WORLD, _V3)
}
_TEXTS: Final = frozenset({str})
_TEXT_OR_NONE: Final = frozenset({str, type(None)})
# From this format on marshal writes what is shared once: aliases cost no more than they are long.
_ALIASES_ONCE: Final = 3


def own_words(raw: Any) -> OwnWords | None:
    """An entry taken apart, None where its own words are not as every program writes them."""
    if type(raw) is not dict:
        return None
    members = _WORLD if is_world_entry(raw) else _V3
    get: Callable[[str], Any] = raw.get
    content, keys, order = get("content"), get(members.keys), get(members.order)
    second, names = get(members.secondary_keys), [get(name) for name in members.names]
    if second is None:
        second = []
    if (
        type(content) is not str
        or len(content) > MAX_CONTENT
        or content.lstrip().startswith("@@")
        or not (_is_number(order) and _are_keys(keys) and _are_keys(second))
        or not {*map(type, names)} <= _TEXT_OR_NONE
    ):
        return None
    uid = get(members.uid)
    if not (uid is None or type(uid) is str or _is_number(uid)):
        return None
    rest = _rest(raw, members)
    together = "".join((content, *keys, *second, *filter(None, names), str(uid)))
    if rest is None or not (together.isascii() or _is_whole(together)):
        return None
    return OwnWords(
        uid if uid is None else one_line(str(uid)),
        next(filter(None, names), ""),
        tuple(keys),
        tuple(second),
        content,
        order,
        (rest, bool(second), bool(get("use_regex")) and any(map(is_delimited, keys))),
    )


def _is_number(value: Any) -> bool:
    return type(value) is int and -MAX_NUMBER <= value <= MAX_NUMBER


def _is_whole(text: str) -> bool:
    """Whether a text has no half of a character, which no encoding takes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _are_keys(listed: Any) -> bool:
    """Whether these are keys of which none is over a limit."""
    return type(listed) is list and (
        not listed
        or (
            len(listed) <= MAX_KEYS
            and {*map(type, listed)} <= _TEXTS
            and sum(map(len, listed)) <= MAX_KEY
        )
    )


def _rest(raw: dict[Any, Any], members: _Members) -> bytes | None:
    """An entry without its own words, as bytes."""
    rest = {**raw, **_WITHOUT[members]}
    numbered = rest if members is _WORLD else rest.get("extensions")
    if type(numbered) is dict and _is_number(numbered.get(members.numbering)):
        unnumbered = {**numbered, members.numbering: 0}
        rest = unnumbered if numbered is rest else {**rest, "extensions": unnumbered}
    try:
        return marshal.dumps(rest, _ALIASES_ONCE)
    except ValueError:  # nested too deeply, or no value of JSON
        return None


def are_plain(raws: Iterable[Any], owns: Iterable[OwnWords | None]) -> bool:
    """Whether these entries of a book are plain values, wherever in a file they stand.

    What many say alike is looked at once; False says that the whole file is to be looked at.
    """
    seen: set[bytes] = set()
    for raw, own in zip(raws, owns, strict=True):
        if own is not None and own.rest[0] in seen:
            continue
        try:
            check_plain([[[raw]]], kind="book", where="")  # three levels are above an entry at most
        except FormatError:
            return False
        if own is not None:
            seen.add(own.rest[0])
    return True


# What an entry has of its own; all else follows from what it says like others.
_NOT_SHARED: Final = frozenset(
    {"uid", "index", "origin", "name", "keys", "secondary_keys", "template", "order", "priority"}
)
_SHARED: Final = tuple(one.name for one in fields(LoreEntry) if one.name not in _NOT_SHARED)


class _Alike(NamedTuple):
    """What follows from the rest of an entry."""

    attributes: dict[str, Any]
    priority: float | None
    """None where it is the order."""
    notices: tuple[str, ...]


class EntryReader:
    """Reads the entries of one book; `absent` decorators count for nothing."""

    def __init__(self, *, label: str, absent: Absent) -> None:
        self._label = label
        self._absent = absent
        self._alike: dict[_Rest, _Alike] = {}

    def read(
        self, raw: Any, own: OwnWords | None, *, index: int, default_uid: str, where: str
    ) -> tuple[LoreEntry, tuple[str, ...]]:
        """The entry and the notices about it; FormatError names the field that is wrong.

        `own` is what `own_words` makes of it.
        """
        alike = None if own is None else self._alike.get(own.rest)
        if own is None or alike is None:
            said = read_fields_of(raw, default_uid=default_uid, where=where)
            entry, notices = entry_of(said, label=self._label, index=index, absent=self._absent)
            if own is not None:
                shared = {name: getattr(entry, name) for name in _SHARED}
                priority = said.priority if said.priority_said else None
                self._alike[own.rest] = _Alike(shared, priority, notices)
            return entry, notices
        uid = default_uid if own.uid is None else own.uid
        entry = LoreEntry(
            uid=uid,
            index=index,
            origin=f"lore:{self._label}#{uid}",
            name=own.name,
            keys=own.keys,
            secondary_keys=own.secondary_keys,
            template=compile_template(own.content, trust="imported"),
            order=own.order,
            priority=own.order if alike.priority is None else alike.priority,
            **alike.attributes,
        )
        return entry, alike.notices
