"""Entries with equal settings: copies of one full reading are the same as full readings."""

from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.lorebook.decorators import NO_ICONS
from evennia_ai.engine.lorebook.entry import MAX_KEY, LoreEntry
from evennia_ai.formats.lorebooks.entry_reader import EntryReader
from tests.walks import walked

_TEXTS = ("", "the ferry", "@@depth 2\nFog.", "{{user}} waits.", None, 7, ["fog"])
_KEYS = (["ferry", "boat"], [], ["fog", 7], "fog, mist", None, [""], ["x" * (MAX_KEY + 1)])
_NUMBERS = (100, 5, 2.5, "7", True, None, "many")
_FLAGS = (True, False, 1, "false", None, "perhaps")
_EXTENSIONS = (
    {"display_index": 3, "position": 4, "depth": 2},
    {"display_index": 9, "position": 4, "depth": 2},
    {"evennia_ai": {"priority": 3}},
    {"evennia_ai": {"priority": "high"}},
    None,
    [],
)
# The values that each member of an entry may have, usual ones first. A list is shared by spellings.
_MEMBERS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("content", "comment", "name"), _TEXTS),
    **dict.fromkeys(("keys", "key", "secondary_keys", "keysecondary"), _KEYS),
    **dict.fromkeys(("order", "insertion_order", "priority", "displayIndex"), _NUMBERS),
    **dict.fromkeys(("id", "uid"), (3, "gate", "two\nlines", 2.0, None, True)),
    **dict.fromkeys(("enabled", "disable", "constant", "selective", "use_regex"), _FLAGS),
    "extensions": _EXTENSIONS,
    "evennia_ai": ({"priority": 3}, {"priority": "high"}, None),
}
_USUAL = {
    "world": ("uid", "key", "keysecondary", "comment", "content", "order", "selective"),
    "card": ("id", "keys", "secondary_keys", "name", "content", "insertion_order", "selective"),
}


@st.composite
def written_entries(draw: st.DrawFn) -> dict[str, Any]:
    """Entries in which most members have a usual value, and a few members are odd."""
    names = set(draw(st.sampled_from(sorted(_USUAL.values()))))
    names ^= draw(st.sets(st.sampled_from(sorted(_MEMBERS)), max_size=3))
    usual = {name: _MEMBERS[name][draw(st.integers(0, 1))] for name in sorted(names)}
    odd = draw(st.sets(st.sampled_from(sorted(names)), max_size=1)) if names else set()
    return usual | {name: draw(st.sampled_from(_MEMBERS[name])) for name in odd}


def a_reader(*, in_world: bool) -> EntryReader:
    return EntryReader(label="harbour", where="book", in_world=in_world, absent=NO_ICONS)


def attributes(entry: LoreEntry) -> dict[str, Any]:
    return {field.name: getattr(entry, field.name) for field in fields(LoreEntry)}


@given(st.lists(written_entries() | st.just(None), max_size=8), st.booleans())
def test_entry_is_the_same_whether_it_is_read_in_full_or_copied(
    raws: list[Any], in_world: bool
) -> None:
    reader = a_reader(in_world=in_world)
    for index, raw in enumerate(raws):
        entry, notices = reader.read(raw, name=str(index), index=index)
        alone, told = a_reader(in_world=in_world).read(raw, name=str(index), index=index)
        assert (attributes(entry), notices) == (attributes(alone), told)


@pytest.mark.parametrize("spelling", _USUAL)
def test_only_the_first_of_entries_with_equal_settings_is_read_in_full(spelling: str) -> None:
    usual = {name: _MEMBERS[name][0] for name in (*_USUAL[spelling], "constant")}
    own = [name for name in _USUAL[spelling] if name not in ("selective",)]
    reader = a_reader(in_world=spelling == "world")
    reader.read(usual, name="0", index=0)
    with walked() as walk:
        reader.read(usual | {name: _MEMBERS[name][1] for name in own[:1]}, name="1", index=1)
    assert "read_fields" not in {function for _, function in walk.functions}
    with walked() as walk:
        reader.read(usual | {"constant": False}, name="2", index=2)
    assert "read_fields" in {function for _, function in walk.functions}
