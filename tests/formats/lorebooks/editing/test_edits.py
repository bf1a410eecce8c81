"""Edits of lorebooks change only the edited members of the file's JSON, in both formats."""

import time
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.lorebook.entry import LoreEntry
from evennia_ai.formats.lorebooks.books import read_book
from evennia_ai.formats.lorebooks.editing.edits import (
    add_entry,
    change_entry,
    entry_settings,
    new_book,
    remove_entry,
)
from tests.engine.lorebook.builders import a_world_entry, an_entry


def a_v3(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"name": "Harbour", "extensions": {"app": 1}, "entries": list(entries), "other": [2]}


def a_world(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"entries": {str(n): entry for n, entry in enumerate(entries)}, "other": [2]}


BOOKS = {
    "v3": lambda **fields: a_v3(an_entry("Lore.", **fields)),
    "world": lambda **fields: a_world(a_world_entry("Lore.", **fields)),
}


def only(book: dict[str, Any]) -> LoreEntry:
    [entry] = read_book(book).entries
    return entry


def changed(book: dict[str, Any], **fields: Any) -> LoreEntry:
    before = deepcopy(book)
    after = change_entry(book, "0", fields)
    assert book == before
    return only(after)


def test_new_book_is_a_standalone_v3_lorebook():
    book = new_book("Harbour")
    assert book["spec"] == "lorebook_v3"
    assert (read_book(book).label, read_book(book).entries) == ("Harbour", ())


def test_entry_is_added_in_the_format_of_the_book():
    book, uid = add_entry(
        new_book("Harbour"), {"name": "toll", "keys": ["coin"], "content": "Two."}
    )
    assert uid == "0"
    [raw] = book["data"]["entries"]
    assert raw == {
        "keys": ["coin"],
        "content": "Two.",
        "extensions": {},
        "enabled": True,
        "insertion_order": 100,
        "use_regex": False,
        "id": 0,
        "name": "toll",
        "comment": "toll",
    }
    book, uid = add_entry(a_world(a_world_entry()), {"keys": ["coin"], "depth": 3, "sticky": 2})
    assert uid == "1"
    raw = book["entries"]["1"]
    assert (raw["key"], raw["position"], raw["depth"], raw["sticky"]) == (["coin"], 4, 3, 2)


def test_new_id_differs_from_all_ids_and_names():
    book, uid = add_entry(a_v3(an_entry(id=7), an_entry(id="x"), an_entry()), {})
    assert uid == "8"
    assert [entry.uid for entry in read_book(book).entries] == ["7", "x", "2", "8"]
    empty, uid = add_entry({"entries": {}}, {"content": "A."})
    assert (uid, empty["entries"]["0"]["content"]) == ("0", "A.")


def test_new_entries_do_not_share_list_objects():
    book, _ = add_entry(*[add_entry(new_book("a"), {})[0]], {})
    first, second = book["data"]["entries"]
    assert first["keys"] is not second["keys"]


def test_edit_keeps_unknown_members():
    book = a_v3(an_entry("Lore.", extensions={"app": {"x": 1}, "depth": 2}, strange=[1]))
    after = change_entry(book, "0", {"order": 5, "sticky": 3})
    assert {name: value for name, value in after.items() if name != "entries"} == {
        name: value for name, value in book.items() if name != "entries"
    }
    [raw] = after["entries"]
    assert raw["strange"] == [1]
    assert raw["extensions"] == {"app": {"x": 1}, "depth": 2, "sticky": 3}
    assert raw["insertion_order"] == 5


def test_v3_entry_gets_nonstandard_fields_in_sillytaverns_extensions():
    after = change_entry(
        a_v3(an_entry()),
        "0",
        {
            "depth": 2,
            "role": "user",
            "logic": "not_any",
            "chance": 40,
            "groups": ["a", "b"],
            "group_weight": 10,
            "recursion_level": 2,
            "sources": ["scenario", "room"],
            "match_whole_words": False,
            "clock": "turns",
        },
    )
    assert after["entries"][0]["extensions"] == {
        "position": 4,
        "depth": 2,
        "role": 1,
        "selectiveLogic": 2,
        "probability": 40,
        "useProbability": True,
        "group": "a,b",
        "group_weight": 10,
        "delay_until_recursion": 2,
        "match_scenario": True,
        "match_whole_words": False,
        "evennia_ai": {"sources": ["room"], "clock": "turns"},
    }


def test_field_is_written_in_the_spelling_of_the_entry():
    book = a_v3(an_entry(extensions={"scanDepth": 3, "scan_depth": 5}))
    after = change_entry(book, "0", {"scan_depth": 7})
    assert after["entries"][0]["extensions"] == {"scanDepth": 7, "scan_depth": 7}


FIELDS = {
    "name": "toll",
    "content": "Other lore.",
    "keys": ["ferry", "boat"],
    "constant": True,
    "enabled": False,
    "position": "note_top",
    "role": "assistant",
    "order": 7.5,
    "priority": 3,
    "case_sensitive": True,
    "match_whole_words": False,
    "scan_depth": 0,
    "chance": 0,
    "ignore_budget": True,
    "first_to_go": True,
    "sticky": 2,
    "cooldown": 3,
    "delay": 4,
    "groups": ["weather", "moods"],
    "logic": "all",
    "patterns": "all",
    "secondary_keys": ["sea"],
    "recursion_excluded": True,
    "recursion_prevented": True,
    "recursion_level": 2,
    "depth": 9,
    "outlet": "moods",
    "mention": {"side": "after", "message": "oldest"},
    "movement": True,
}


@pytest.mark.parametrize("kind", BOOKS)
@pytest.mark.parametrize("name", FIELDS)
def test_each_field_can_be_changed_and_nothing_else_changes(kind, name):
    book = BOOKS[kind]()
    entry = only(change_entry(book, "0", {name: FIELDS[name]}))
    implied = {
        "depth": {"position"},
        "outlet": {"position"},
        "mention": {"position"},
        "order": {"priority"},
        "secondary_keys": {"selective"},
    }
    left = FIELDS.keys() - {name, *implied.get(name, ())}
    was, now = entry_settings(only(book)), entry_settings(entry)
    assert now[name] == FIELDS[name]
    assert {other: now[other] for other in left} == {other: was[other] for other in left}


@pytest.mark.parametrize("kind", BOOKS)
def test_evennia_ai_fields_are_changed_and_removed(kind):
    book = change_entry(
        BOOKS[kind](sticky=1),
        "0",
        {
            "anchor": {"component": "scenario", "side": "before"},
            "npcs": ["oren"],
            "groups": ["g"],
            "group_cooldown": 2,
            "when": [{"fact": "weather", "test": "is_any", "values": ["fog"]}],
        },
    )
    entry = only(book)
    assert (entry.position, len(entry.conditions), entry.grouping.cooldown) == ("anchor", 2, 2)
    back = change_entry(
        book, "0", {"anchor": None, "npcs": None, "when": [], "group_cooldown": None}
    )
    assert "evennia_ai" not in str(back)
    assert only(back).conditions == ()


@pytest.mark.parametrize("kind", BOOKS)
@pytest.mark.parametrize("fields", [{"mention": None}, {"position": "after"}, {"outlet": "moods"}])
def test_position_next_to_a_mention_is_removed_by_another_position(kind, fields):
    book = change_entry(BOOKS[kind](), "0", {"position": "at_mention"})
    assert only(book).position == "at_mention"
    after = change_entry(book, "0", fields)
    assert only(after).position == fields.get(
        "position", "outlet" if "outlet" in fields else only(BOOKS[kind]()).position
    )
    assert "at_mention" not in str(after)


@pytest.mark.parametrize("kind", BOOKS)
def test_entry_is_unchanged_after_setting_and_removing_a_field(kind):
    book = BOOKS[kind]()
    fields = {"depth": 3, "role": "user", "chance": 30, "groups": ["g"], "sticky": 2}
    there = change_entry(book, "0", fields)
    back = change_entry(there, "0", {**dict.fromkeys(fields), "position": None})
    before, after = entry_settings(only(book)), entry_settings(only(back))
    assert after == before


@pytest.mark.parametrize(
    ("content", "fields", "after"),
    [
        ("@@depth 4\nL", {"depth": 2}, "@@depth 2\nL"),
        ("@@app_only 4\r\n@@@depth 3\r\nL", {"depth": 2}, "@@app_only 4\r\n@@@depth 2\r\nL"),
        ("@@reverse_depth 1\nL", {"depth": 2}, "L"),
        ("@@position after_desc\n@@activate\nL", {"depth": 2}, "@@activate\nL"),
        ("@@depth 4\n@@@role user\n@@activate\nL", {"position": "note_top"}, "@@activate\nL"),
        ("@@depth 4\n@@depth 5\nL", {"position": "before"}, "L"),
        ("@@position after_desc\nL", {"position": "before"}, "@@position before_desc\nL"),
        ("@@depth 4\nL", {"position": "depth"}, "@@depth 4\nL"),
        ("@@role user\nL", {"role": "system"}, "@@role system\nL"),
        ("@@role user\nL", {"role": None}, "L"),
        ("@@scan_depth 9\nL", {"scan_depth": 2}, "@@scan_depth 2\nL"),
        ("@@nope 1\n@@@depth 2\n@@scan_depth 2\nL", {"order": 2}, None),
    ],
)
def test_decorator_that_overrides_a_field_changes_with_the_field(content, fields, after):
    book = change_entry(a_v3(an_entry(content)), "0", fields)
    assert book["entries"][0]["content"] == (content if after is None else after)


def test_decorators_of_new_content_agree_with_new_fields():
    entry = changed(BOOKS["v3"](), content="@@depth 4\nL", depth=1)
    assert (entry.depth, entry.template.source) == (1, "L")


def test_regex_keys_stay_regex_keys_after_an_edit_adds_sillytavern_data():
    book = a_v3(an_entry(use_regex=True, keys=["a+"]))
    entry = changed(book, sticky=2, chance=40)
    assert (entry.patterns, entry.chance) == ("all", 40)


def test_entry_is_removed_and_the_others_keep_their_ids():
    book = a_v3(an_entry("A."), an_entry("B."), an_entry("C."), an_entry("D.", id="d"))
    after = remove_entry(book, "1")
    assert [(entry.uid, entry.template.source) for entry in read_book(after).entries] == [
        *(("0", "A."), ("2", "C.")),
        ("d", "D."),
    ]
    world = remove_entry(a_world(a_world_entry("A."), a_world_entry("B.")), "0")
    assert list(world["entries"]) == ["1"]
    listed = remove_entry({"entries": [a_world_entry("A."), a_world_entry("B.", uid=None)]}, "0")
    assert [entry.uid for entry in read_book(listed).entries] == ["1"]


def test_edit_of_a_large_book_takes_little_more_work_than_reading_the_book():
    book = a_v3(*[an_entry(f"Lore {n}.", keys=[f"key{n}"]) for n in range(10_000)])
    started = time.process_time()
    read_book(book)
    reading = time.process_time() - started
    after = change_entry(book, "9999", {"order": 7})
    assert time.process_time() - started - reading < 3 * reading
    assert after["entries"][0] is book["entries"][0]


def test_entries_with_the_same_id_are_edited_by_the_unique_ids_that_reading_gives():
    book = a_v3(an_entry("A.", id=1), an_entry("B.", id=1))
    after = change_entry(book, "1 (2)", {"content": "C."})
    assert [raw["content"] for raw in after["entries"]] == ["A.", "C."]


def test_entry_whose_name_has_control_characters_is_changed_by_its_id():
    book = {"entries": {"a\nb": a_world_entry("Lore.", uid=None)}}
    changed = change_entry(book, only(book).uid, {"content": "Other lore."})
    assert only(changed).template.source == "Other lore."
    assert list(changed["entries"]) == ["a\nb"]


def test_edit_of_an_unknown_entry_is_refused_with_similar_ids():
    book = a_v3(an_entry(id="harbour"), an_entry(id="ferry"))
    with pytest.raises(FormatError, match=r"there is no entry 'harbor'; there is harbour"):
        remove_entry(book, "harbor")
    with pytest.raises(FormatError, match=r"there is no entry '9'; the book is empty"):
        change_entry(new_book("a"), "9", {})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"cooldwn": 1}, "entry: unknown field 'cooldwn'; it may be cooldown"),
        ({"depth": -1}, "entry.depth: must be a whole number, 0 or more, not -1"),
        ({"depth": True}, "entry.depth: must be a whole number, 0 or more, not True"),
        ({"keys": "coin"}, "entry.keys: must be a list of at most 1000 texts"),
        ({"keys": None}, "entry.keys: must be a list of at most 1000 texts"),
        ({"chance": 101}, "entry.chance: must be a number from 0 to 100, not 101"),
        ({"position": "moon"}, "entry.position: must be one of before, after, note_top,"),
        ({"groups": ["a,b"]}, "entry.groups: must be a list of names, without commas"),
        ({"name": "a\nb"}, "entry.name: must be one line of at most 300 characters"),
        ({"npcs": "oren"}, "entry 0.extensions.evennia_ai.npcs: must be a list of at most 100"),
        (
            {"anchor": {"component": "x", "side": 1}},
            "entry 0.extensions.evennia_ai.anchor.side: must be one",
        ),
        ({"position": "before", "depth": 3}, "entry.depth: would still be None: something else"),
        ({"patterns": "all", "constant": True}, "entry.constant: would still be False: "),
        ({"content": "x" * 200_001}, "entry.content: must be a text of at most 200000 characters"),
    ],
)
def test_edit_of_an_invalid_field_is_refused_and_nothing_changes(fields, message):
    book = BOOKS["v3"]()
    before = deepcopy(book)
    with pytest.raises(FormatError) as caught:
        change_entry(book, "0", fields)
    assert caught.value.message.startswith(message)
    assert "\n" not in caught.value.message
    assert book == before


BROKEN = {"entries": ["x", {"keys": [None, "mill"], "content": 5, "id": {}}], "scan_depth": "deep"}


def test_book_with_unreadable_fields_is_edited_and_keeps_them():
    book, uid = add_entry(BROKEN, {"keys": ["sea"]})
    assert (uid, book["entries"][:2], book["scan_depth"]) == ("2", BROKEN["entries"], "deep")
    book = change_entry(BROKEN, "1", {"order": 7})
    assert book["entries"] == ["x", {**BROKEN["entries"][1], "insertion_order": 7}]
    book = change_entry(book, "1", {"content": "The mill is old.", "keys": ["mill"]})
    assert read_book(book).entries[1].is_usable
    assert remove_entry(book, "0")["entries"] == [book["entries"][1] | {"id": 1}]


def test_value_in_place_of_an_entry_can_only_be_removed():
    with pytest.raises(
        FormatError, match="entry 0: it is not an object and has no fields; remove it"
    ):
        change_entry(BROKEN, "0", {"order": 7})


def test_edit_that_makes_the_book_unreadable_is_refused():
    with pytest.raises(FormatError, match="half a character"):
        add_entry(new_book("a"), {"content": "\ud800"})


SOME_FIELDS = st.fixed_dictionaries({}, optional={k: st.just(v) for k, v in FIELDS.items()})
CONTENTS = st.lists(
    st.sampled_from(
        [
            *("@@depth 3", "@@@depth 4", "@@position before_desc", "@@role user", "@@nope"),
            *("@@reverse_depth 1", "@@activate", "@@@scan_depth 2", "", "Lore."),
        ]
    ),
    max_size=7,
).map("\n".join)


@given(st.sampled_from(sorted(BOOKS)), CONTENTS, SOME_FIELDS)
def test_any_edit_is_applied_or_refused(kind, content, fields):
    fields.pop("content", None)
    book = change_entry(BOOKS[kind](), "0", {"content": content})
    before = deepcopy(book)
    try:
        after = entry_settings(only(change_entry(book, "0", fields)))
    except FormatError as error:
        assert "would still be" in error.message
    else:
        assert {name: after[name] for name in fields} == fields
    assert book == before


@pytest.mark.parametrize(
    "book",
    [
        {"lorebookVersion": 5, "entries": [{"text": "Lore.", "id": "x"}]},
        {"kind": "memory", "entries": [{"entry": "Lore.", "id": "x"}]},
        {"type": "risu", "data": [{"content": "Lore.", "id": "x"}]},
    ],
)
def test_book_of_another_program_becomes_v3_when_edited(book):
    added, _ = add_entry(book, {"content": "New."})
    changed = change_entry(added, "x", {"content": "Other."})
    assert [entry.template.source for entry in read_book(changed).entries] == ["Other.", "New."]
    assert changed["spec"] == "lorebook_v3"
    assert [entry.uid for entry in read_book(remove_entry(book, "x")).entries] == []


@pytest.mark.parametrize("kind", BOOKS)
def test_edit_that_a_decorator_overrides_is_refused(kind):
    book = change_entry(BOOKS[kind](), "0", {"content": "@@ignore_on_max_context\nLore."})
    assert only(book).first_to_go
    with pytest.raises(FormatError, match=r"entry\.first_to_go: would still be True"):
        change_entry(book, "0", {"first_to_go": False})
