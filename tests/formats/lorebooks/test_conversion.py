"""Lorebooks converted between V3 and world files: nothing is lost, the effect is the same."""

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evennia_ai.formats.lorebooks.books import read_book
from evennia_ai.formats.lorebooks.conversion import (
    as_v3,
    as_world,
    find_differences,
    is_same_json,
    is_world,
    restore_differences,
)
from evennia_ai.formats.lorebooks.editing.edits import change_entry, entry_settings
from tests.engine.lorebook.builders import a_world_entry, an_entry


def written(book: Any) -> str:
    return json.dumps(book, sort_keys=True)


def told(book: dict[str, Any]) -> list[dict[str, Any]]:
    return [entry_settings(entry) for entry in read_book(book).entries]


def test_book_already_in_the_wanted_format_is_unchanged_by_conversion():
    v3 = {"entries": [an_entry()], "strange": 1}
    world = {"entries": {"0": a_world_entry()}, "strange": 1}
    assert (as_v3(v3), as_world(world)) == (v3, world)


def test_world_file_becomes_a_standalone_v3_lorebook():
    book = as_v3(
        {
            "entries": {
                "3": a_world_entry(
                    "Lore.", uid=3, comment="toll", position=4, depth=2, sticky=3, selectiveLogic=2
                )
            }
        },
        name="Harbour",
    )
    assert (book["spec"], book["data"]["name"]) == ("lorebook_v3", "Harbour")
    [entry] = book["data"]["entries"]
    assert entry["id"] == 3
    assert entry["keys"] == ["coin"]
    assert (entry["enabled"], entry["use_regex"], entry["insertion_order"]) == (True, True, 100)
    known = {"position": 4, "depth": 2, "sticky": 3, "selectiveLogic": 2}
    assert known.items() <= entry["extensions"].items()


def test_v3_lorebook_becomes_a_world_file():
    entry = an_entry("Lore.", id=5, name="toll", extensions={"position": 4, "depth": 2, "app": 1})
    world = as_world({"spec": "lorebook_v3", "data": {"name": "Harbour", "entries": [entry]}})
    made = world["entries"]["5"]
    assert (made["uid"], made["key"], made["comment"]) == (5, ["coin"], "toll")
    assert (made["position"], made["depth"], made["disable"]) == (4, 2, False)
    assert made["extensions"] == {"app": 1}
    assert world["name"] == "Harbour"


def test_regex_keys_without_slashes_get_slashes_in_a_world_file():
    world = as_world({"entries": [an_entry(use_regex=True, keys=["a/b+", "/c/i"])]})
    assert world["entries"]["0"]["key"] == ["/a\\/b+/", "/c/i"]


def test_entries_whose_ids_are_out_of_order_keep_their_order():
    v3 = {"entries": [an_entry("A.", id=7), an_entry("B.", id=3), an_entry("C.", id="x")]}
    world = as_world(v3)
    assert [entry.template.source for entry in read_book(world).entries] == ["A.", "B.", "C."]
    assert as_v3(world) == v3


def test_book_is_restored_from_a_conversion_except_for_edited_members():
    world = {"entries": {"0": a_world_entry("A.", uid=0, order="20", strange=[1], vectorized=True)}}
    v3 = change_entry(as_v3(world), "0", {"content": "B.", "sticky": 2})
    back = as_world(v3)
    assert back["entries"]["0"] == {**world["entries"]["0"], "content": "B.", "sticky": 2} | {
        name: value for name, value in back["entries"]["0"].items() if name == "evennia_ai_v3"
    }


def test_entry_copied_between_conversions_is_kept():
    v3 = as_v3({"entries": {"a": a_world_entry("A.", uid="x")}})
    v3["data"]["entries"].append(deepcopy(v3["data"]["entries"][0]))
    assert [entry.template.source for entry in read_book(as_world(v3)).entries] == ["A.", "A."]
    world = as_world({"entries": {"a": an_entry("A."), "b": an_entry("B.")}})
    world["entries"]["7"] = deepcopy(world["entries"]["0"])
    assert sorted(entry.template.source for entry in read_book(as_v3(world)).entries) == [
        *("A.", "A.", "B."),
    ]


@pytest.mark.parametrize(
    "extra", [7, [], {"differences": 7}, {"differences": [7, {"at": []}, {"at": ["key"]}]}]
)
def test_malformed_recorded_differences_are_kept_and_ignored(extra):
    world = {"entries": {"0": a_world_entry("A.", evennia_ai_v3=extra)}, "evennia_ai_v3": extra}
    assert told(as_v3(world)) == told(world)
    v3 = {"entries": [an_entry("A.", extensions={"evennia_ai_world": extra})]}
    assert _alike(told(as_world(v3))) == _alike(told(v3))
    assert written(as_v3(as_world(v3))) == written(v3)


MIXED = {
    "one entry in both": {"0": {**an_entry(), **a_world_entry(uid=0)}},
    "an entry of each": {"0": a_world_entry(uid=0), "1": an_entry(id=1)},
    "null in it": {"0": a_world_entry(uid=0), "1": None},
    "a wrong order": {"0": a_world_entry(uid=0, order="first")},
    "no text": {"0": a_world_entry(uid=0, content={"a": 1})},
    "our own data": {"0": a_world_entry(uid=0, evennia_ai=5)},
    "a wrong extension": {"0": a_world_entry(uid=0, extensions=[])},
}


@pytest.mark.parametrize("entries", MIXED.values(), ids=MIXED.keys())
def test_world_file_with_unreadable_fields_is_restored_from_v3(entries):
    world = {"entries": entries}
    made = as_v3(world)
    assert as_world(made) == world
    both = (read_book(world).entries, read_book(made).entries)
    assert [(e.uid, e.keys, bool(e.refused)) for e in both[0]] == [
        (e.uid, e.keys, bool(e.refused)) for e in both[1]
    ]


def test_world_entries_among_those_of_a_cards_book_become_v3_entries():
    made = as_v3({"entries": [an_entry(id=3), a_world_entry(uid=4, key=["mill"])]})
    assert [(one["id"], one["keys"]) for one in made["entries"]] == [(3, ["coin"]), (4, ["mill"])]


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 200) | st.sampled_from([1.0, 2.5]) | st.text("ab/"),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("ab", max_size=2), inner),
    max_leaves=4,
)
FLAG = st.none() | st.booleans() | st.sampled_from([0, 1])
NUMBER = st.none() | st.integers(0, 300) | st.sampled_from(["20", " 3", 2.5, 4.0])
TEXTS = st.lists(st.sampled_from(["coin", "", " ", "/a+/i", "a/b", "{{user}}"]), max_size=3)
CONTENT = st.sampled_from(["", "Lore.", "@@depth 3\nLore.", "@@position scenario\n@@role user\nL"])
ID = st.integers(0, 9) | st.sampled_from(["x", "7", "", 2.0])
OWN = st.none() | st.fixed_dictionaries(
    {},
    optional={
        "clock": st.sampled_from(["turns", "seconds", None]),
        "npcs": st.lists(st.sampled_from(["oren", "!mara"]), max_size=2),
        "patterns": st.sampled_from(["none", "by_form", "all"]),
        "outlet": st.just("moods"),
        "priority": st.integers(0, 9),
    },
)
UNKNOWN = st.dictionaries(st.sampled_from(["strange", "a", "Extra"]), PLAIN, max_size=2)
APP = {
    "position": st.none() | st.integers(-1, 8),
    "depth": NUMBER.filter(lambda value: value != 2.5),
    "role": st.none() | st.integers(0, 3),
    "sticky": NUMBER,
    "group": st.none() | st.sampled_from(["", "g", "g, h"]),
    "probability": NUMBER,
    "useProbability": FLAG,
    "selectiveLogic": st.none() | st.integers(0, 4),
}
WORLD_ENTRY = st.fixed_dictionaries(
    {"key": st.none() | TEXTS},
    optional={
        **APP,
        "uid": ID,
        "keysecondary": st.none() | TEXTS,
        "comment": st.none() | st.text("ab", max_size=2),
        "content": st.none() | CONTENT,
        "constant": FLAG,
        "selective": FLAG,
        "order": NUMBER,
        "disable": FLAG,
        "caseSensitive": FLAG,
        "scanDepth": NUMBER,
        "delayUntilRecursion": FLAG | NUMBER,
        "characterFilter": st.none() | st.just({"isExclude": True, "names": ["Oren"]}),
        "evennia_ai": OWN,
        "extensions": PLAIN,
        "vectorized": PLAIN,
    },
)
V3_ENTRY = st.fixed_dictionaries(
    {"keys": TEXTS},
    optional={
        "content": CONTENT,
        "enabled": st.booleans(),
        "insertion_order": NUMBER,
        "use_regex": FLAG,
        "constant": FLAG,
        "case_sensitive": FLAG,
        "name": st.none() | st.text("ab", max_size=2),
        "comment": st.none() | st.text("ab", max_size=2),
        "id": ID,
        "priority": NUMBER,
        "position": st.none() | st.sampled_from(["before_char", "after_char", "moon"]),
        "selective": FLAG,
        "secondary_keys": st.none() | TEXTS | st.just("a, b"),
        "extensions": st.none()
        | st.builds(
            lambda *parts: {name: value for part in parts for name, value in part.items()},
            UNKNOWN,
            st.fixed_dictionaries({}, optional=APP),
            st.fixed_dictionaries({}, optional={"depth": PLAIN, "scan_depth": PLAIN}),
            st.fixed_dictionaries({}, optional={"scanDepth": PLAIN, "evennia_ai": OWN}),
        ),
    },
)
SHARED = st.fixed_dictionaries(
    {},
    optional={
        "name": st.none() | st.just("Harbour"),
        "scan_depth": st.none() | st.integers(0, 4),
        "recursive_scanning": st.none() | st.booleans(),
        "extensions": st.none() | st.dictionaries(st.sampled_from(["a", "b"]), PLAIN, max_size=2),
        "strange": PLAIN,
    },
)
NAMES = st.sampled_from(["0", "1", "2", "7", "10", "x", "01"])


def _merged(part: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    return {**more, **part}


def _book(entries: Any) -> st.SearchStrategy[dict[str, Any]]:
    bare = st.builds(lambda head, listed: {**head, "entries": listed}, SHARED, entries)
    framed = st.builds(
        lambda book, more: {"spec": "lorebook_v3", "data": book, **more}, bare, UNKNOWN
    )
    return bare | framed


def _listed(entry: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    full = st.builds(_merged, entry, UNKNOWN)
    return st.lists(full, min_size=1, max_size=3) | st.dictionaries(
        NAMES, full, min_size=1, max_size=3
    )


@given(_book(_listed(WORLD_ENTRY)), st.sampled_from(["", "Given"]))
def test_world_file_is_restored_from_v3(book, name):
    before = deepcopy(book)
    v3 = as_v3(book, name=name)
    assert not is_world(v3)
    assert told(v3) == told(book)
    assert written(as_world(v3)) == written(book)
    assert book == before


@given(_book(_listed(V3_ENTRY)))
@example({"spec": "lorebook_v3", "data": {"entries": []}, "spec_version": "1.0"})
def test_v3_book_is_restored_from_a_world_file(book):
    before = deepcopy(book)
    world = as_world(book)
    assert is_world(world)
    assert _alike(told(world)) == _alike(told(book))
    assert written(as_v3(world)) == written(book)
    assert book == before


def _alike(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the values of a book that must be equal in both formats.

    The setting for regular expressions is left out, because the formats have different ones.
    """
    return [
        {name: value for name, value in entry.items() if name not in ("keys", "patterns")}
        for entry in entries
    ]


def test_recorded_difference_has_the_member_and_both_values():
    assert find_differences({"a": 1, "b": 2}, {"b": "2", "c": 3}) == [
        {"at": ["a"], "rebuilt": 1},
        {"at": ["b"], "original": "2", "rebuilt": 2},
        {"at": ["c"], "original": 3},
    ]


def test_members_of_extensions_are_compared_one_by_one():
    found = find_differences({"extensions": {"a": 1, "b": 1}}, {"extensions": {"a": 1, "b": 2}})
    assert found == [{"at": ["extensions", "b"], "original": 2, "rebuilt": 1}]


@pytest.mark.parametrize(("one", "other"), [(1, True), (1, 1.0), (0, False), ("1", 1), ([], {})])
def test_json_values_of_different_types_differ(one, other):
    assert not is_same_json(one, other)


def test_member_edited_after_the_conversion_keeps_its_edit():
    found = find_differences({"a": 1, "b": 1}, {"a": 2, "b": 2})
    assert restore_differences({"a": 1, "b": 5}, found) == {"a": 2, "b": 5}


VALUES = st.none() | st.booleans() | st.integers(0, 2) | st.lists(st.integers(0, 1), max_size=2)
OBJECTS = st.dictionaries(st.sampled_from(["a", "b", "c"]), VALUES)
WITH_INSIDE = OBJECTS | st.builds(
    lambda part, inside: {**part, "extensions": inside}, OBJECTS, OBJECTS | VALUES
)


@given(WITH_INSIDE, WITH_INSIDE)
def test_restoring_all_differences_gives_the_original(rebuilt, original):
    assert is_same_json(restore_differences(rebuilt, find_differences(rebuilt, original)), original)


@given(WITH_INSIDE, VALUES | st.lists(VALUES | OBJECTS | st.fixed_dictionaries({"at": VALUES})))
def test_malformed_recorded_difference_is_ignored(value, found):
    assert restore_differences(value, found) == value
