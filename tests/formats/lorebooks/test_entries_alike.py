"""Entries that say the same are read once, and nobody can tell."""

from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.lorebook.decorators import NO_ICONS
from evennia_ai.engine.lorebook.entry import LoreEntry
from evennia_ai.formats.lorebooks import entries_alike
from evennia_ai.formats.lorebooks.books import read_book
from tests.engine.lorebook.builders import a_world_entry, an_entry

KEYS = st.lists(st.sampled_from(["moon", " sea ", "", "/a+/i", "{{char}}", "k" * 600]), max_size=3)
V3 = st.fixed_dictionaries(
    {
        "keys": KEYS,
        "content": st.sampled_from(["Lore.", "@@depth 2\nLore.", " @@role user", "{{user}} <BOT>"]),
    },
    optional={
        "insertion_order": st.sampled_from([1, 7, 2.5, "3", True]),
        "id": st.sampled_from([1, "one", "a\nb", 2.0]),
        "name": st.sampled_from(["", "Moon", None]),
        "comment": st.sampled_from(["", "Of the moon", None]),
        "priority": st.sampled_from([5, None]),
        "enabled": st.sampled_from([True, False, 1]),
        "selective": st.sampled_from([True, 1]),
        "secondary_keys": st.sampled_from([[], ["sea"], "sea, sky", "", 0, None]),
        "use_regex": st.sampled_from([True, False]),
        "extensions": st.sampled_from(
            [{}, {"depth": 3, "position": 4}, {"display_index": 3}, {"evennia_ai": {"priority": 9}}]
        ),
    },
)
WORLD = st.fixed_dictionaries(
    {"key": KEYS, "content": st.sampled_from(["Lore.", "@@depth 2\nLore."])},
    optional={
        "uid": st.integers(0, 3),
        "order": st.sampled_from([1, 7, "3"]),
        "keysecondary": st.sampled_from([[], ["sea"], None, "", 0]),
        "selective": st.booleans(),
        "displayIndex": st.integers(0, 9),
        "comment": st.sampled_from(["", "Moon"]),
        "disable": st.sampled_from([True, False, 0]),
        "position": st.sampled_from([0, 1, 4, 99]),
        "evennia_ai": st.sampled_from([{"priority": 4}, {"patterns": "none"}]),
    },
)


def told(entry: LoreEntry) -> dict[str, Any]:
    return {one.name: getattr(entry, one.name) for one in fields(entry)}


ANY = st.lists(V3, min_size=2, max_size=6) | st.lists(WORLD, min_size=2, max_size=6)
BOTH = st.lists(st.builds(lambda one, other: {**one, **other}, V3, WORLD), min_size=2, max_size=4)
UNREADABLE = st.sampled_from([None, "text", 5, [], {"content": 5}, {"content": [], "key": 5}])


@given(raws=ANY | BOTH | st.lists(V3 | WORLD | UNREADABLE, max_size=4), in_world=st.booleans())
def test_each_entry_is_what_it_would_be_alone(raws, in_world):
    reader = entries_alike.EntryReader(label="book", in_world=in_world, absent=NO_ICONS)
    twice = [*raws, *raws]
    owns = entries_alike.own_words(twice, in_world=in_world)
    for index, (raw, own) in enumerate(zip(twice, owns, strict=True)):
        alone = entries_alike.EntryReader(label="book", in_world=in_world, absent=NO_ICONS)
        how = {"index": index, "name": f"n{index}", "where": "here"}
        wanted, notices = alone.read(raw, None, **how)
        entry, found = reader.read(raw, own, **how)
        assert told(entry) == told(wanted)
        assert found == notices


def test_only_the_first_of_entries_that_are_alike_is_read_whole(monkeypatch):
    whole: list[str] = []
    read = entries_alike.read_fields

    def counted(raw, *, default_uid, **how):
        whole.append(default_uid)
        return read(raw, default_uid=default_uid, **how)

    monkeypatch.setattr(entries_alike, "read_fields", counted)
    raws = [a_world_entry(f"Lore {n}.", key=[f"key{n}"], uid=n, order=n) for n in range(20)]
    decorated = a_world_entry("@@depth 1\nLore.", key=["sea"], uid=20, order=20)
    assert len(read_book({"entries": [*raws, decorated]}).entries) == 21
    assert whole == ["0", "20"]


@pytest.mark.parametrize(
    ("member", "value", "problem"),
    [
        ("content", "half \ud800", "half a character"),
        ("comment", "half \ud800", "half a character"),
        ("displayIndex", 2**70, "a number is too large"),
        ("order", 2**70, "a number is too large"),
        ("sticky", float("inf"), "not finite"),
        ("group", {1: 2}, "name is not text"),
    ],
)
def test_err_what_is_no_plain_value_is_found_in_any_entry(member, value, problem):
    raws = [a_world_entry("Lore.", key=["moon"], uid=n, order=n) for n in range(3)]
    raws[2][member] = value
    with pytest.raises(FormatError, match=problem):
        read_book({"entries": raws})


def test_what_is_shared_many_times_is_looked_at_once():
    bomb: Any = []
    for _ in range(40):
        bomb = [bomb] * 2
    entries = [an_entry("Lore.", insertion_order=1, extensions={"bomb": bomb}) for _ in range(2)]
    assert len(read_book({"entries": entries}).entries) == 2
