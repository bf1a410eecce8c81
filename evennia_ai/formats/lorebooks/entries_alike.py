"""Read the entries of one book fast, by reading repeated settings only once.

Programs write every setting into every entry, and nearly all entries of a book have the same ones.
So an entry is taken apart into its own words (id, name, keys, content, order) and the rest, which
is identified by its bytes. If an equal rest was read before, the new entry is a copy of that one
with other words. Entries with unusual words are read as a whole.
"""

import marshal
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import chain, count
from operator import itemgetter
from typing import Any, Final, NamedTuple

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.foreign.documents import MAX_NUMBER, check_plain, one_line
from evennia_ai.engine.lorebook.decorators import MAX_KEYS, Absent, has_decorators
from evennia_ai.engine.lorebook.entry import MAX_KEY, LoreEntry
from evennia_ai.engine.prompt.components import MAX_CONTENT
from evennia_ai.engine.prompt.templates.template import compile_template
from evennia_ai.formats.lorebooks.reading import build_entry
from evennia_ai.formats.lorebooks.written import (
    is_in_both_spellings,
    is_world_entry,
    read_fields,
)

# Identifies the rest of an entry among entries with the same members: its values as bytes, and True
# if the entry has secondary keys.
_Rest = tuple[bytes | None, bool]


class OwnWords(NamedTuple):
    """The own words of an entry, and a number for the rest of it."""

    uid: str | None
    name: str
    keys: tuple[str, ...]
    secondary_keys: tuple[str, ...]
    content: str
    order: int
    rest: int
    """Equal for entries with an equal rest, if they were taken apart in one call."""


class _Members(NamedTuple):
    """The names of the members with an entry's own words."""

    uid: str
    names: tuple[str, ...]
    keys: str
    secondary_keys: str
    order: str
    numbering: str
    """A member with a number for display, which has no effect."""


_WORLD: Final = _Members("uid", ("comment",), "key", "keysecondary", "order", "displayIndex")
_V3: Final = _Members(
    "id", ("comment", "name"), "keys", "secondary_keys", "insertion_order", "display_index"
)
# The members with own words, which are not part of the rest.
_OWN: Final[Mapping[_Members, frozenset[str]]] = {
    each: frozenset((each.uid, *each.names, each.keys, each.secondary_keys, each.order, "content"))
    for each in (_WORLD, _V3)
}
_EXTENSIONS: Final = "extensions"
_TEXTS: Final = frozenset({str})
_TEXT_OR_NONE: Final = frozenset({str, type(None)})
_LISTS: Final = frozenset({list})
_NUMBERS: Final = frozenset({int})


def own_words(raws: Sequence[Any], *, in_world: bool) -> list[OwnWords | None]:
    """Take entries apart; entries with unusual own words give None.

    Entries with the same members are handled together, one member at a time, because Python does
    whole lists much faster than single items.

    Args:
        in_world: True for entries of a world file.
    """
    alike: dict[tuple[str, ...], list[int]] = {}
    for at, raw in enumerate(raws):
        if type(raw) is dict:
            alike.setdefault(tuple(raw), []).append(at)
    owns: list[OwnWords | None] = [None] * len(raws)
    numbers = count()
    for shape, places in alike.items():
        if is_in_both_spellings(shape):
            continue  # its own words may be under either name
        together = [raws[at] for at in places]
        members = _WORLD if is_world_entry(together[0], in_world=in_world) else _V3
        for at, own in zip(places, _take_apart(together, members, numbers), strict=True):
            owns[at] = own
    return owns


def _take_apart(
    raws: list[dict[Any, Any]], members: _Members, numbers: Iterator[int]
) -> list[OwnWords | None]:
    """Take entries with the same members apart."""
    rests = _rests_as_bytes(raws, members)
    odd = _odd_ones(raws, members) | {at for at, rest in enumerate(rests) if rest is None}
    if odd:
        usual = [raw for at, raw in enumerate(raws) if at not in odd]
        taken_apart = iter(_take_apart(usual, members, numbers) if usual else ())
        return [None if at in odd else next(taken_apart) for at in range(len(raws))]
    uids = [one if one is None else one_line(str(one)) for one in _column(raws, members.uid)]
    names = [_column(raws, name) for name in members.names]
    called = [next(filter(None, several), "") for several in zip(*names, strict=True)]
    keys = list(map(tuple, _column(raws, members.keys)))
    second = [tuple(one or ()) for one in _column(raws, members.secondary_keys)]
    number_of: dict[_Rest, int] = defaultdict(numbers.__next__)
    those = map(number_of.__getitem__, zip(rests, map(bool, second), strict=True))
    contents, orders = _column(raws, "content"), _column(raws, members.order)
    return list(map(OwnWords, uids, called, keys, second, contents, orders, those))


def _odd_ones(raws: list[dict[Any, Any]], members: _Members) -> set[int]:
    """Return the indices of entries with unusual own words."""
    second = [[] if one is None else one for one in _column(raws, members.secondary_keys)]
    return {
        *_odd_contents(_column(raws, "content")),
        *_odd_numbers(_column(raws, members.order), _is_number),
        *_odd_numbers(_column(raws, members.uid), _is_id),
        *_odd_keys(_column(raws, members.keys)),
        *_odd_keys(second),
        *(at for name in members.names for at in _odd_names(_column(raws, name))),
    }


def _column(raws: list[dict[Any, Any]], name: str) -> list[Any]:
    """Return the values of a member of entries with the same members."""
    return list(map(itemgetter(name), raws)) if name in raws[0] else [None] * len(raws)


def _odd_contents(contents: list[Any]) -> list[int]:
    """Return the indices of contents that cannot be used unchanged.

    The common case, in which all can, is decided by checks of the whole list.
    """
    if {*map(type, contents)} <= _TEXTS and max(map(len, contents)) <= MAX_CONTENT:
        together = "\n".join(contents)
        if "@@" not in together and _is_whole(together):
            return []
    return [at for at, one in enumerate(contents) if not _is_content(one)]


def _is_content(value: Any) -> bool:
    """True if a content can be used unchanged; one with decorators must be read."""
    return (
        type(value) is str
        and len(value) <= MAX_CONTENT
        and not has_decorators(value)
        and _is_whole(value)
    )


def _odd_numbers(values: list[Any], is_usual: Callable[[Any], bool]) -> list[int]:
    """Return the indices of unusual values; whole numbers within the limit are usual."""
    if _are_numbers(values):
        return []
    return [at for at, one in enumerate(values) if not is_usual(one)]


def _are_numbers(values: list[Any]) -> bool:
    is_whole = {*map(type, values)} == _NUMBERS
    return is_whole and min(values) >= -MAX_NUMBER and max(values) <= MAX_NUMBER


def _is_number(value: Any) -> bool:
    return type(value) is int and -MAX_NUMBER <= value <= MAX_NUMBER


def _is_id(value: Any) -> bool:
    return value is None or _is_number(value) or (type(value) is str and _is_whole(value))


def _odd_names(names: list[Any]) -> list[int]:
    """Return the indices of names that are neither text nor None."""
    if {*map(type, names)} <= _TEXT_OR_NONE and _is_whole("".join(filter(None, names))):
        return []
    return [
        at
        for at, one in enumerate(names)
        if type(one) not in _TEXT_OR_NONE or not _is_whole(one or "")
    ]


def _odd_keys(listed: list[Any]) -> list[int]:
    """Return the indices of values that are not lists of keys within the limits."""
    if {*map(type, listed)} <= _LISTS:
        keys = list(chain.from_iterable(listed))
        if {*map(type, keys)} <= _TEXTS and _is_whole("".join(keys)):
            longest, most = max(map(len, keys), default=0), max(map(len, listed), default=0)
            if most <= MAX_KEYS and longest * most <= MAX_KEY:
                return []
    return [at for at, one in enumerate(listed) if not _are_keys(one)]


def _are_keys(listed: Any) -> bool:
    return type(listed) is list and (
        not listed
        or (
            len(listed) <= MAX_KEYS
            and {*map(type, listed)} <= _TEXTS
            and sum(map(len, listed)) <= MAX_KEY
            and _is_whole("".join(listed))
        )
    )


def _is_whole(text: str) -> bool:
    """True if a text has no lone surrogate (half a character), which cannot be encoded."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _rests_as_bytes(raws: list[dict[Any, Any]], members: _Members) -> list[bytes | None]:
    """Return the rest of each entry as bytes; None if it is not JSON or nests too deep."""
    names = [name for name in raws[0] if name not in _OWN[members]]
    more: list[Any] | None = None
    if members is _V3 and _EXTENSIONS in names:
        names.remove(_EXTENSIONS)
        more = [_unnumbered(one, members) for one in _column(raws, _EXTENSIONS)]
    elif members.numbering in names and _are_numbers(_column(raws, members.numbering)):
        names.remove(members.numbering)
    rows = list(map(itemgetter(*names), raws)) if names else [None] * len(raws)
    if more is not None:
        rows = list(zip(rows, more, strict=True))
    try:
        return list(map(marshal.dumps, rows))
    except ValueError:  # some entry nests too deep, or has a value that is not JSON
        return [*map(_bytes_of, rows)]


def _unnumbered(extensions: Any, members: _Members) -> Any:
    """Return the extensions of an entry without its number for display."""
    if type(extensions) is dict and _is_number(extensions.get(members.numbering)):
        return {**extensions, members.numbering: 0}
    return extensions


def _bytes_of(row: Any) -> bytes | None:
    try:
        return marshal.dumps(row)
    except ValueError:
        return None


def are_plain(raws: Iterable[Any], owns: Iterable[OwnWords | None]) -> bool:
    """True if the entries are plain JSON values.

    Equal rests are checked only once. After False, the caller must check the whole file, because
    the error has to name the right place.
    """
    seen: set[int] = set()
    for raw, own in zip(raws, owns, strict=True):
        if own is not None and own.rest in seen:
            continue
        try:
            check_plain([[[raw]]], kind="book", where="")  # three levels are above an entry at most
        except FormatError:
            return False
        if own is not None:
            seen.add(own.rest)
    return True


# The attributes that depend on own words; entries with an equal rest share all others.
_NOT_SHARED: Final = frozenset(
    {"uid", "index", "origin", "name", "keys", "secondary_keys", "template", "order", "priority"}
)
# The shared attributes, with their defaults.
_SHARED: Final = {one.name: one.default for one in fields(LoreEntry) if one.name not in _NOT_SHARED}


class _Alike(NamedTuple):
    """The results of reading the rest of an entry."""

    attributes: dict[str, Any]
    """The shared attributes that differ from their defaults."""
    priority: float | None
    """None if the order is the priority."""
    notices: tuple[str, ...]


class EntryReader:
    """A reader of the entries of one book, which remembers every rest that it has read."""

    def __init__(self, *, label: str, in_world: bool, absent: Absent) -> None:
        self._label = label
        self._in_world = in_world
        self._absent = absent
        self._alike: dict[int, _Alike] = {}

    def read(
        self, raw: Any, own: OwnWords | None, *, index: int, name: str, where: str
    ) -> tuple[LoreEntry, tuple[str, ...]]:
        """Return an entry and the notices about it.

        Args:
            own: the entry's own words, from `own_words`.
            name: the entry's name or number in the file.
        """
        alike = None if own is None else self._alike.get(own.rest)
        if own is None or alike is None:
            return self._read_whole(raw, own, index=index, name=one_line(name), where=where)
        uid = one_line(name) if own.uid is None else own.uid
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

    def _read_whole(
        self, raw: Any, own: OwnWords | None, *, index: int, name: str, where: str
    ) -> tuple[LoreEntry, tuple[str, ...]]:
        """Read a whole entry, and remember its rest for entries with an equal one."""
        said = read_fields(
            raw,
            in_world=self._in_world,
            default_uid=name,
            where=f"{where}.entries[{name}]",
        )
        entry, notices = build_entry(said, label=self._label, index=index, absent=self._absent)
        if own is not None:
            shared = {
                name: getattr(entry, name)
                for name, usual in _SHARED.items()
                if getattr(entry, name) is not usual
            }
            priority = said.priority if said.priority_said else None
            self._alike[own.rest] = _Alike(shared, priority, notices)
        return entry, notices
