"""Read the entries of one book. Entries with equal settings share one full reading.

Programs write thirty members into each entry. Any of them may be missing or odd, so the full
reading of an entry is slow. But most entries of a large book differ only in their texts and their
order. The first of them is read in full, and the others are copies of it with their own texts.
"""

import marshal
from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any, Final, NamedTuple

from evennia_ai.engine.foreign.documents import one_line
from evennia_ai.engine.lorebook.decorators import MAX_KEYS, Absent, has_decorators
from evennia_ai.engine.lorebook.entry import MAX_KEY, LoreEntry
from evennia_ai.engine.prompt.components import MAX_CONTENT
from evennia_ai.engine.prompt.templates.template import compile_template
from evennia_ai.formats.lorebooks.reading import build_entry
from evennia_ai.formats.lorebooks.written import is_world_entry, read_fields

_ATTRIBUTES: Final = tuple(field.name for field in fields(LoreEntry))
_TEXT: Final = frozenset({str})
_MOST_MODELS: Final = 1_000
_MOST_SETTINGS: Final = 1_000
"""The most values, also nested ones, in the settings of an entry that may be copied."""


class _Model(NamedTuple):
    """An entry that was read in full. Entries with equal settings are copies of it."""

    attributes: Mapping[str, Any]
    notices: tuple[str, ...]
    order_is_priority: bool
    """True if the settings give no priority, so the order of an entry is its priority, too."""


class _Spelling(NamedTuple):
    """The field names, of world files or of cards, for what differs from entry to entry."""

    keys: str
    secondary_keys: str
    uid: str
    order: str
    others: frozenset[str]
    """The names of the same fields in the other format."""


_OF_WORLD: Final = _Spelling(
    *("key", "keysecondary", "uid", "order"),
    others=frozenset({"keys", "secondary_keys", "id", "insertion_order", "name"}),
)
_OF_CARD: Final = _Spelling(
    *("keys", "secondary_keys", "id", "insertion_order"),
    others=frozenset({"key", "keysecondary", "uid", "order"}),
)


class EntryReader:
    """A reader for the entries of one book."""

    def __init__(self, *, label: str, where: str, in_world: bool, absent: Absent) -> None:
        """Prepare to read the entries of a book.

        Args:
            label: the name of the book.
            where: the name of the book in errors.
            in_world: True for a world file.
            absent: decorators that have no effect where the book is used, with the reason.
        """
        self._label, self._where = label, where
        self._in_world, self._absent = in_world, absent
        self._models: dict[bytes, _Model] = {}

    def read(self, raw: Any, *, name: str, index: int) -> tuple[LoreEntry, tuple[str, ...]]:
        """Return an entry and the notices about it.

        Args:
            raw: the JSON value of the entry.
            name: the name or the number of the entry in the file.
            index: the position of the entry in the book.
        """
        settings, own = _split(raw, name, in_world=self._in_world)
        model = self._models.get(settings) if own else None
        if model is not None:
            if model.order_is_priority:
                own["priority"] = own["order"]
            own["index"], own["origin"] = index, f"lore:{self._label}#{own['uid']}"
            return LoreEntry(**{**model.attributes, **own}), model.notices
        uid = one_line(name)
        where = f"{self._where}.entries[{uid}]"
        said = read_fields(raw, in_world=self._in_world, default_uid=uid, where=where)
        made, notices = build_entry(said, label=self._label, index=index, absent=self._absent)
        if own and len(self._models) < _MOST_MODELS:
            attributes = {name: getattr(made, name) for name in _ATTRIBUTES}
            self._models[settings] = _Model(attributes, notices, not said.priority_said)
        return made, notices


def _split(raw: Any, name: str, *, in_world: bool) -> tuple[bytes, dict[str, Any]]:
    """Return the settings of an entry as bytes, and the attributes that are its own.

    There are no attributes if a member of the entry is so odd that only a full reading reads it.
    """
    if not isinstance(raw, dict):
        return b"", {}
    spelling = _OF_WORLD if is_world_entry(raw, in_world=in_world) else _OF_CARD
    settings = dict(raw)
    content, title = settings.pop("content", None), settings.pop("name", "")
    comment, uid = settings.pop("comment", ""), settings.pop(spelling.uid, name)
    keys = settings.pop(spelling.keys, None)
    second = settings.pop(spelling.secondary_keys, [])
    order = settings.pop(spelling.order, 100)
    is_plain = (
        spelling.others.isdisjoint(raw)
        and type(keys) is type(second) is list
        and type(order) in (int, float)
        and type(uid) in (int, str)
        and _TEXT.issuperset(map(type, (content, title, comment, *keys, *second)))
        and max(len(keys), len(second)) <= MAX_KEYS
        and max(map(len, (*keys, *second)), default=0) <= MAX_KEY
        and len(content) <= MAX_CONTENT
        and not has_decorators(content)
    )
    if not is_plain:
        return b"", {}
    # SillyTavern numbers the entries in its editor. The numbers have no effect.
    settings.pop("displayIndex", None)
    extensions = settings.get("extensions")
    if isinstance(extensions, dict) and "display_index" in extensions:
        settings["extensions"] = {**extensions, "display_index": 0}
    if not _is_small(settings):
        return b"", {}
    # Unlike `==`, the bytes tell true, 1 and 1.0 apart. `repr` would take twice as long.
    return marshal.dumps((spelling.keys, bool(second), settings), 2), {
        "uid": one_line(str(uid)),
        "name": comment or title,
        "keys": tuple(keys),
        "secondary_keys": tuple(second),
        "template": compile_template(content, trust="imported"),
        "order": order,
    }


def _is_small(settings: dict[str, Any]) -> bool:
    """True if the settings have few values, counting a value again wherever it occurs.

    In a YAML file a value of a few words can occur in itself millions of times, by aliases.
    """
    count = 0
    inner: list[Collection[Any]] = [settings.values()]
    while inner:
        values = inner.pop()
        count += len(values)
        if count > _MOST_SETTINGS:
            return False
        inner += [one.values() for one in values if type(one) is dict]
        inner += [one for one in values if type(one) is list]
    return True
