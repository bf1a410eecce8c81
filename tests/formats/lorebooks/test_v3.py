"""Entries of Card V3 and V2 books, and what SillyTavern adds to them."""

import pytest

from evennia_ai.engine.lorebook.entry import (
    NO_GROUPS,
    NO_RECURSION,
    NO_TIMING,
    Grouping,
    LoreEntry,
    Recursion,
    Timing,
)
from evennia_ai.engine.prompt.conditions import CHARACTER_NAME, Condition
from evennia_ai.formats.lorebooks.books import read_book, unwrap_book
from evennia_ai.formats.lorebooks.conversion import as_v3, as_world
from tests.engine.lorebook.builders import a_book, an_entry


def read(content: str = "Lore.", **fields: object) -> LoreEntry:
    [entry] = a_book(an_entry(content, **fields)).entries
    return entry


def extended(**extensions: object) -> LoreEntry:
    return read(extensions=extensions)


def test_v2_entry_with_fewer_fields_is_read():
    [entry] = a_book({"keys": ["coin"], "content": "Lore."}).entries
    assert (entry.keys, entry.position, entry.order, entry.priority) == (
        ("coin",),
        "after",
        100,
        100,
    )
    assert (entry.enabled, entry.constant, entry.patterns, entry.chance) == (
        *(True, False),
        *("none", 100),
    )


def test_keys_of_a_v3_entry_are_kept_as_written():
    keys = ["", "  ", " coin ", "{{user}}", "coin,purse", "coin", "coin"]
    entry = read(keys=keys, selective=True, secondary_keys=keys)
    assert entry.keys == tuple(keys)
    assert entry.secondary_keys == tuple(keys)


@pytest.mark.parametrize(
    ("selective", "secondary", "counts"),
    [(True, ["sea"], True), (True, [], False), (False, ["sea"], False), (None, ["sea"], False)],
)
def test_secondary_keys_of_a_v3_entry_are_used_only_when_selective(selective, secondary, counts):
    entry = read(selective=selective, secondary_keys=secondary)
    assert entry.selective is counts
    assert entry.secondary_keys == tuple(secondary)


def test_secondary_keys_as_one_text_are_split_with_a_notice():
    book = a_book(an_entry("Lore.", selective=True, secondary_keys="red, blue"))
    assert book.entries[0].secondary_keys == ("red", "blue")
    assert book.notices == ("entry 0: secondary_keys is one text: split at its commas",)


def test_unknown_position_gives_a_notice_and_the_default():
    book = a_book(an_entry("Lore.", position="moon"))
    assert book.entries[0].position == "after"
    assert book.notices == ("entry 0: position 'moon' is unknown: after_char is used",)


def test_missing_priority_of_an_entry_equals_the_order():
    assert (read(insertion_order=7).order, read(insertion_order=7).priority) == (7, 7)
    assert (read(priority=3).order, read(priority=3).priority) == (100, 3)


@pytest.mark.parametrize(
    ("written", "order"), [("20", 20), (" -3 ", -3), ("2.5", 2.5), (4.0, 4), (None, 100)]
)
def test_numbers_of_a_v3_entry_may_be_texts(written, order):
    assert read(insertion_order=written).order == order


def test_converted_numbers_and_flags_give_notices():
    book = a_book(an_entry(insertion_order="20", priority=" 2.5", enabled=1, constant=0))
    assert book.notices == (
        "entry 0: insertion_order is a text: read as the number 20",
        "entry 0: priority is a text: read as the number 2.5",
        "entry 0: enabled is 1: read as true",
        "entry 0: constant is 0: read as false",
    )


def test_constant_secondary_and_excluded_keys_are_ignored_with_use_regex():
    book = a_book(
        an_entry(
            "@@exclude_keys walrus\n@@additional_keys sea\nLore.",
            use_regex=True,
            keys=["/a+/i"],
            constant=True,
            selective=True,
            secondary_keys=["sea"],
        )
    )
    [entry] = book.entries
    assert (entry.patterns, entry.constant, entry.selective) == ("all", False, False)
    assert (entry.gates.excluded, entry.gates.additional) == ((), (("sea",),))
    assert book.notices == ("entry 0: constant is ignored next to use_regex (Card V3)",)


def test_use_regex_from_sillytavern_makes_only_keys_between_slashes_regexes():
    book = a_book(an_entry(use_regex=True, constant=True, extensions={"position": 1}))
    [entry] = book.entries
    assert (entry.patterns, entry.constant) == ("by_form", True)
    assert book.notices == ()


def test_equal_notices_of_entries_are_merged():
    written = an_entry(insertion_order="7")
    odd = an_entry(position="between")
    book = a_book(*[written] * 30, odd, odd)
    flag, place = book.notices
    assert flag.startswith("entries 0, 1, 2, 3 and 26 more: insertion_order is a text")
    assert place == "entries 30, 31: position 'between' is unknown: after_char is used"


def test_no_key_is_a_regex_without_use_regex_except_from_sillytavern():
    assert read(keys=["/coin/"]).patterns == "none"
    assert read(use_regex=False, extensions={"position": 1}).patterns == "none"
    assert read(use_regex=None, extensions={"selectiveLogic": 0}).patterns == "by_form"


@pytest.mark.parametrize(
    ("number", "place"),
    [
        (0, "before"),
        (1, "after"),
        (2, "note_top"),
        (3, "note_bottom"),
        (4, "depth"),
        (5, "examples_before"),
        (6, "examples_after"),
        (7, "outlet"),
    ],
)
def test_position_in_extension_data_wins_over_the_v3_position(number, place):
    entry = read(position="before_char", extensions={"position": number, "outlet_name": "moods"})
    assert entry.position == place
    assert entry.depth == (4 if place == "depth" else None)
    assert entry.outlet == ("moods" if place == "outlet" else "")


def test_unknown_position_in_extension_data_gives_a_notice_and_is_ignored():
    book = a_book(an_entry(position="before_char", extensions={"position": 9}))
    assert book.entries[0].position == "before"
    assert book.notices == ("entry 0: position 9 is unknown: the usual place is used",)


@pytest.mark.parametrize(
    ("extensions", "name", "value"),
    [
        ({"selectiveLogic": 3}, "logic", "all"),
        ({"selective_logic": 1}, "logic", "not_all"),
        ({"scan_depth": 2}, "scan_depth", 2),
        ({"scan_depth": -2}, "scan_depth", 0),
        ({"match_whole_words": False}, "match_whole_words", False),
        ({"case_sensitive": True}, "case_sensitive", True),
        ({"ignore_budget": True}, "ignore_budget", True),
        ({"position": 4, "depth": -3}, "depth", 0),
        ({"position": 4, "role": 2}, "role", "assistant"),
        ({"position": 4, "role": None}, "role", "system"),
        ({"probability": 30, "useProbability": True}, "chance", 30),
        ({"probability": "30"}, "chance", 30),
        ({"probability": 30, "useProbability": False}, "chance", 100),
        ({"probability": 300}, "chance", 100),
        ({"probability": None}, "chance", 100),
        ({"exclude_recursion": True}, "recursion", Recursion(excluded=True)),
        ({"preventRecursion": True}, "recursion", Recursion(prevented=True)),
        ({"delay_until_recursion": True}, "recursion", Recursion(delay_level=1)),
        ({"delay_until_recursion": "2"}, "recursion", Recursion(delay_level=2)),
        ({"delay_until_recursion": False}, "recursion", NO_RECURSION),
        (
            {"sticky": 3, "cooldown": 2.5, "delay": 1},
            "timing",
            Timing(sticky=3, cooldown=3, delay=1),
        ),
        ({"sticky": None, "cooldown": 0}, "timing", NO_TIMING),
        ({"group": ""}, "grouping", NO_GROUPS),
        (
            {"group": " g,  H h,,", "group_override": True, "group_weight": None},
            "grouping",
            Grouping(names=(" g", "H h"), written=" g,  H h,,", preferred=True),
        ),
        (
            {"group": "g", "groupWeight": 0, "use_group_scoring": False},
            "grouping",
            Grouping(names=("g",), written="g", weight=0, scored=False),
        ),
        ({"match_scenario": True, "match_creator_notes": False}, "sources", {"scenario"}),
        (
            {"character_filter": {"isExclude": False, "names": ["Oren"], "tags": []}},
            "conditions",
            (Condition(fact=CHARACTER_NAME, test="is_any", values=("Oren",)),),
        ),
        ({"vectorized": True, "automation_id": "x", "display_index": 3}, "refused", None),
    ],
)
def test_sillytaverns_extension_data_is_read_in_both_spellings(extensions, name, value):
    assert getattr(extended(**extensions), name) == value


def test_case_flag_of_the_standard_wins_over_extension_data():
    assert read(case_sensitive=False, extensions={"case_sensitive": True}).case_sensitive is False


def test_extension_data_of_a_wrong_type_gives_a_notice():
    book = a_book(
        an_entry(
            extensions={
                "position": "top",
                "group_weight": [],
                "groupWeight": {},
                "sticky": 2,
                "weight": "heavy",
            }
        )
    )
    [entry] = book.entries
    assert (entry.position, entry.timing.sticky, entry.refused) == ("after", 2, None)
    assert book.notices == (
        "entry 0: extensions.position must be a number: it is ignored",
        "entry 0: extensions.groupWeight must be a number: it is ignored",
        "entry 0: extensions.group_weight must be a number: it is ignored",
    )


@pytest.mark.parametrize(
    ("lines", "name", "value"),
    [
        ("@@probability 30", "chance", 30),
        ("@@end", "depth", 0),
        ("@@match_full_word", "match_whole_words", True),
        ("@@match_partial_word", "match_whole_words", False),
        ("@@priority 7", "priority", 7),
        ("@@unrecursive", "recursion", Recursion(prevented=True)),
        ("@@no_recursive_search", "recursion", Recursion(excluded=True)),
        ("@@exclude_keys_all sea, sky", "secondary_keys", ("sea", "sky")),
        ("@@exclude_keys_all sea, sky", "logic", "not_all"),
        ("@@frobnicate 1\n@@@probability 30", "chance", 30),
        ("@@probability 30\n@@role user", "role", "user"),
    ],
)
def test_risuais_decorators_work_in_an_entry_of_a_card(lines, name, value):
    book = a_book(an_entry(f"{lines}\nLore."))
    [entry] = book.entries
    assert (getattr(entry, name), entry.template.source) == (value, "Lore.")
    assert not [notice for notice in book.notices if "not known" in notice]
    [there] = read_book(as_world({"entries": [an_entry(f"{lines}\nLore.")]})).entries
    assert getattr(there, name) == value
    world = as_world({"entries": [an_entry(f"{lines}\nLore.", id=0)]})
    assert unwrap_book(as_v3(world))["entries"] == [an_entry(f"{lines}\nLore.", id=0)]


def test_risuai_decorator_line_does_not_make_plain_keys_regexes():
    entry = an_entry("@@probability 30\nLore.", use_regex=True, keys=["a+"])
    assert a_book(entry).entries[0].patterns == "all"
