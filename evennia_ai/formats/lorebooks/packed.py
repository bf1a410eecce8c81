"""Lorebooks as packed text: read once, kept, and ready again in a fraction of the time.

Reading a book of ten thousand entries and indexing its keys takes a good part of a second. The
packed text has the results in the form in which a turn uses them: the index of the keys, and
columns of what differs between the entries. An entry is made when it is first used.

Entries that differ only in their columns share a model. The packed text has no model, but the JSON
of one of these entries, which is read again by the ordinary reader. So the settings of an entry
have no second format.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any, Final, overload

from evennia_ai.engine.lorebook.book import (
    DELAY_LEVELS,
    HANDING_ON,
    UIDS,
    Lorebook,
    delay_levels_of,
    handing_on,
)
from evennia_ai.engine.lorebook.decorators import NO_ICONS
from evennia_ai.engine.lorebook.entry import LoreEntry
from evennia_ai.engine.lorebook.rules import ActivationRules
from evennia_ai.engine.lorebook.scan.key_index import index_from_json, keep_index, stored_index
from evennia_ai.engine.prompt.templates.template import compile_template
from evennia_ai.formats.lorebooks.books import entries_in_order, is_world_file, unwrap_book
from evennia_ai.formats.lorebooks.entry_reader import EntryReader

VERSION: Final = 1
"""The version of the format. Raise it with any change to it."""

_COLUMNS: Final = ("uid", "name", "keys", "secondary_keys", "order", "priority")
_OWN: Final = frozenset({*_COLUMNS, "index", "origin", "template"})
_SHARED: Final = tuple(one.name for one in fields(LoreEntry) if one.name not in _OWN)
_settings_of: Final = attrgetter(*_SHARED)
_OF_BOOK: Final = ("scan_depth", "token_budget", "recursive", "mode", "notices")
_MOST_MODELS: Final = 1_000


class PackedEntries(Sequence[LoreEntry]):
    """The entries of a packed book. Each is made when it is first used, and then kept."""

    def __init__(
        self, columns: Mapping[str, Any], models: Sequence[LoreEntry], *, label: str
    ) -> None:
        self._columns = [columns[name] for name in (*_COLUMNS, "text", "model")]
        self._settings = [dict(zip(_SHARED, _settings_of(one), strict=True)) for one in models]
        self._label = label
        self._made: dict[int, LoreEntry] = {}

    def __len__(self) -> int:
        return len(self._columns[0])

    @overload
    def __getitem__(self, index: int) -> LoreEntry: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[LoreEntry, ...]: ...
    def __getitem__(self, index: int | slice) -> LoreEntry | tuple[LoreEntry, ...]:
        if isinstance(index, slice):
            return tuple(map(self.__getitem__, range(*index.indices(len(self)))))
        known = self._made.get(index)
        if known is not None:
            return known
        at = range(len(self))[index]
        uid, name, keys, second, order, priority, text, model = (one[at] for one in self._columns)
        made = LoreEntry(
            uid=uid,
            index=at,
            origin=f"lore:{self._label}#{uid}",
            name=name,
            keys=tuple(keys),
            secondary_keys=tuple(second),
            order=order,
            priority=priority,
            template=compile_template(text, trust="imported"),
            **self._settings[model],
        )
        return self._made.setdefault(at, made)  # entries are compared by identity


def pack_book(book: Lorebook, data: Any, *, rules: ActivationRules) -> str | None:
    """Return a lorebook with its index for these rules as packed text.

    None if that would not help: keys have macros, or most entries have settings of their own.

    Args:
        book: The lorebook that was read from `data`, without an attachment or grants.
        data: The JSON value of the book's file.
        rules: The rules by which its index was made.
    """
    index = stored_index(book, rules=rules)
    if index is None:
        return None
    settings = [_settings_of(one) for one in book.entries]
    # The entries that the reader copied share the objects of their settings. Unlike equality,
    # identity tells 1 and 1.0 apart.
    numbers: dict[tuple[int, ...], int] = {}
    model = [numbers.setdefault(tuple(map(id, one)), len(numbers)) for one in settings]
    if len(numbers) > max(_MOST_MODELS, len(model) // 4):
        return None
    listed = entries_in_order(unwrap_book(data)["entries"])
    firsts = [model.index(number) for number in range(len(numbers))]
    raws, is_world = [listed[first] for first in firsts], is_world_file(data)
    # A refusal for the whole book, for example, is not in the JSON of an entry.
    again = map(_settings_of, _read_models(raws, in_world=is_world))
    if any(settings[first] != one for first, one in zip(firsts, again, strict=True)):
        return None
    packed = {
        "book": {name: getattr(book, name) for name in _OF_BOOK},
        "in_world": is_world,
        "models": raws,
        "columns": {
            **{name: [getattr(one, name) for one in book.entries] for name in _COLUMNS},
            "text": [one.template.source for one in book.entries],
            "model": model,
        },
        "delay_levels": delay_levels_of(book),
        "handing_on": handing_on(book),
        "index": index.to_json(),
    }
    return json.dumps(packed, ensure_ascii=False)


def unpack_book(packed: str, *, label: str, rules: ActivationRules) -> Lorebook:
    """Return the lorebook that `pack_book` packed, with its index for the same rules.

    Raises:
        ValueError: The text is no JSON, or a regular expression in it cannot run here.
    """
    value = json.loads(packed)
    models = _read_models(value["models"], in_world=value["in_world"])
    entries = PackedEntries(value["columns"], models, label=label)
    settings = {**value["book"], "notices": tuple(value["book"]["notices"])}
    book = Lorebook(label=label, entries=entries, **settings)
    book.of_entries[UIDS] = value["columns"]["uid"]
    book.of_entries[DELAY_LEVELS] = value["delay_levels"]
    book.of_entries[HANDING_ON] = value["handing_on"]
    keep_index(book, index_from_json(value["index"], entries, rules=rules), rules=rules)
    return book


def _read_models(raws: Sequence[Any], *, in_world: bool) -> list[LoreEntry]:
    reader = EntryReader(label="", where="book", in_world=in_world, absent=NO_ICONS)
    return [reader.read(raw, name=name, index=0)[0] for name, raw in raws]
