"""RisuAI's lorebooks: translated fields and `@@` lines, and kept members."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.foreign.documents import MAX_ENTRIES
from evennia_ai.engine.lorebook.entry import Recursion
from evennia_ai.formats.lorebooks.books import read_book
from evennia_ai.formats.lorebooks.conversion import as_v3, as_world
from evennia_ai.formats.lorebooks.other_programs import read_risu_lines, translate_book
from tests.effort import little_work
from tests.engine.lorebook.builders import a_scan, awake, texts
from tests.formats.lorebooks.test_books import JSON


def a_risu_entry(content="The bell rings in fog.", **fields):
    """Return a lore entry as RisuAI writes it."""
    given = {"key": "bell, fog", "comment": "the bell", "content": content, "mode": "normal"}
    more = {"insertorder": 5, "alwaysActive": False, "secondkey": "", "selective": False}
    return {**given, **more, **fields}


def a_risu_book(*entries, **more):
    return {"type": "risu", "ver": 1, "data": list(entries), **more}


def read(content="The bell rings in fog.", **fields):
    [entry] = read_book(as_v3(a_risu_book(a_risu_entry(content, **fields)))).entries
    return entry


def doubts(content, **fields):
    book = a_risu_book(a_risu_entry(content, **fields))
    found = translate_book(book, limit_entries=9)
    return (*found.doubts.get(0, ()), *read_book(as_v3(book)).notices)


def test_translated_risuai_entry_has_the_same_settings_in_v3():
    entry = read(id="r-1")
    assert (entry.uid, entry.name, entry.keys) == ("r-1", "the bell", ("bell", "fog"))
    assert entry.template.source == "The bell rings in fog."
    assert (entry.order, entry.priority) == (5, 5)
    assert (entry.enabled, entry.constant, entry.patterns) == (True, False, "none")
    assert (entry.case_sensitive, entry.match_whole_words, entry.chance) == (None, None, 100)


def test_missing_settings_of_a_risuai_entry_get_the_usual_defaults():
    [entry] = read_book(as_v3(a_risu_book({"content": "Lore.", "key": None}))).entries
    assert (entry.uid, entry.keys, entry.order, entry.priority) == ("0", (), 100, 100)


@pytest.mark.parametrize(
    ("fields", "name", "value"),
    [
        ({"alwaysActive": True}, "constant", True),
        ({"mode": "constant"}, "constant", True),
        ({"mode": "multiple"}, "constant", False),
        ({"secondkey": "sea, ,mist", "selective": True}, "secondary_keys", ("sea", "mist")),
        ({"secondkey": "sea", "selective": True}, "selective", True),
        ({"secondkey": "sea"}, "selective", False),
        ({"extentions": {"risu_case_sensitive": True}}, "case_sensitive", True),
        ({"extentions": {"risu_case_sensitive": "x"}}, "case_sensitive", None),
        ({"activationPercent": 40}, "chance", 40),
        ({"activationPercent": 400}, "chance", 100),
        ({"insertorder": "20"}, "order", 20),
    ],
)
def test_risuai_field_becomes_the_setting_with_the_same_meaning(fields, name, value):
    assert getattr(read(**fields), name) == value


@pytest.mark.parametrize(
    ("written", "keys"),
    [
        ("/bells?/i", ("/bells?/i",)),
        ("/a{1,3}/, /b,c/i", ("/a{1,3}/", "/b,c/i")),
        ("bells?", ("/bells?/",)),
        ("/a{1,3}/, b/c, ,", ("/a{1,3}/", "/b\\/c/")),
        ("/a,b", ("/\\/a/", "/b/")),
        ("", ()),
    ],
)
def test_all_risuai_keys_are_regexes_with_use_regex(written, keys):
    entry = read(key=written, useRegex=True)
    assert (entry.keys, entry.patterns) == (keys, "by_form")


def test_always_active_risuai_entry_with_regex_keys_stays_active():
    assert read(key="/a/", useRegex=True, alwaysActive=True).constant


def test_risuai_folders_are_kept_and_are_no_entries():
    folder = a_risu_entry("", key="\uf000folder:f", comment="Harbour", mode="folder")
    bare = {"key": "\uf000folder:g"}
    made = as_v3(a_risu_book(folder, a_risu_entry(folder="f"), bare))
    [entry] = made["data"]["entries"]
    assert entry["comment"] == "the bell"
    assert made["data"]["extensions"]["risuai"]["data"] == [folder, bare]


def test_risuai_child_entry_has_its_own_text_with_a_notice():
    [doubt] = doubts("Its own.", mode="child")
    assert doubt.startswith("mode child is not supported")


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("@@probability 30", "chance", 30),
        ("@@probability 30 %", "chance", 30),
        ("@@priority 9", "priority", 9),
        ("@@priority -9", "priority", -9),
        ("@@match_full_word", "match_whole_words", True),
        ("@@match_partial_word", "match_whole_words", False),
        ("@@unrecursive", "recursion", Recursion(prevented=True)),
        ("@@recursive", "recursion", Recursion()),
        ("@@no_recursive_search", "recursion", Recursion(excluded=True)),
        ("@@exclude_keys_all sea, mist", "secondary_keys", ("sea", "mist")),
        ("@@exclude_keys_all sea, mist", "logic", "not_all"),
        ("@@end", "depth", 0),
        ("@@end", "position", "depth"),
        ("@@depth 3", "depth", 3),
        ("@@exclude_keys sea", "decorators", (("exclude_keys", ("sea",)),)),
    ],
)
def test_risuai_line_becomes_a_field_and_is_removed(line, name, value):
    entry = read(f"{line}\n\nThe bell.")
    assert getattr(entry, name) == value
    assert entry.template.source == "The bell."
    assert doubts(f"{line}\nThe bell.") == ()


def test_decorators_win_over_fields_of_a_risuai_entry():
    entry = read("@@probability 10\n@@priority 1\nThe bell.", activationPercent=90)
    assert (entry.chance, entry.priority, entry.order) == (10, 1, 5)


def test_exclude_keys_all_needs_every_key_to_keep_an_entry_inactive():
    content = "@@exclude_keys_all sea, mist\nThe bell."
    book = read_book(as_v3(a_risu_book(a_risu_entry(content))))
    for line, found in (("bell", 1), ("bell sea", 1), ("bell sea mist", 0)):
        assert len(texts(awake(book, scan=a_scan(event=line)))) == found


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("@@inject_lore toll\nT.", "@@inject_lore is unknown; it is ignored"),
        ("@@inject_at main\nT.", "@@inject_at is unknown; it is ignored"),
        ("@@position pt_x\nT.", "@@position needs one of before_desc"),
        ("@@probability often\nT.", "@@probability is unknown; it is ignored"),
        (
            "@@priority 1\n@@priority 2\nT.",
            "@@priority is ignored: an earlier line sets the same field",
        ),
        ("@@match_full_word\n@@match_partial_word\nT.", "@@match_partial_word is ignored: a"),
        ("@@@probability 5\nT.", "@@probability 5 has no decorator above it"),
    ],
)
def test_ignored_risuai_line_gives_a_notice(content, told):
    found = doubts(content)
    assert any(told in each for each in found), found
    assert read(content).template.source == "T."


def test_exclude_keys_all_next_to_secondary_keys_gives_a_notice():
    content = "@@exclude_keys_all sea\nT."
    entry = read(content, secondkey="mist", selective=True)
    assert (entry.secondary_keys, entry.logic) == (("mist",), "any")
    assert doubts(content, secondkey="mist", selective=True) == (
        "@@exclude_keys_all is ignored next to secondary keys",
    )


@pytest.mark.parametrize(
    ("content", "left", "said"),
    [
        ("@@inject_at x\n@@@probability 5\nT.", "T.", {"chance": 5}),
        ("@@probability 5\n@@@depth 1\nT.", "T.", {"chance": 5}),
        ("@@probability x\n\n@@@depth 1\nT.", None, {}),
        ("@@depth 1\n@@@probability 5\nT.", None, {}),
        ("@@depth x\n@@@probability 5\n@@role user\nT.", "@@role user\nT.", {"chance": 5}),
        ("\r\n@@end\r\n@@depth 2\r\nT.", "@@depth 2\r\nT.", {"at_the_end": True}),
        ("T.\n@@probability 5", None, {}),
    ],
)
def test_fallback_lines_of_risuai_follow_the_rules_of_card_v3(content, left, said):
    head = read_risu_lines(content)
    assert (head.content, head.said) == (content if left is None else left, said)


def test_whole_risuai_entry_and_the_books_other_members_are_kept():
    entry = a_risu_entry("@@probability 5\nT.", loreCache=None, bookVersion=2)
    made = as_v3(a_risu_book(entry, more=1), name="Harbour")
    assert (made["spec"], made["data"]["name"]) == ("lorebook_v3", "Harbour")
    assert made["data"]["extensions"]["risuai"] == {"type": "risu", "ver": 1, "data": [], "more": 1}
    [told] = made["data"]["entries"]
    assert told["content"] == "T."
    assert told["extensions"]["risuai"] == entry
    assert as_v3(made) == made


def test_translated_risuai_book_survives_conversion_to_a_world_file_and_back():
    book = a_risu_book(a_risu_entry("@@end\n@@unrecursive\nT.", useRegex=True, key="a+"))
    assert as_v3(as_world(book)) == as_v3(book)
    world = as_world(book)["entries"]["0"]
    assert (world["key"], world["position"], world["depth"]) == (["/a+/"], 4, 0)
    assert world["preventRecursion"] is True


@pytest.mark.parametrize(
    ("book", "message"),
    [
        (a_risu_book(*[{}] * (MAX_ENTRIES + 1)), "book: has more than 100000 entries; split"),
    ],
)
def test_broken_risuai_book_is_refused_with_the_path_in_the_file(book, message):
    with pytest.raises(FormatError) as caught:
        as_v3(book)
    assert caught.value.message.startswith(message)
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("book", "notice"),
    [
        (a_risu_book(7), "entry 0: is never active: must be an object"),
        (a_risu_book(a_risu_entry(7)), "entry 0: is never active: content must be text"),
        (a_risu_book(a_risu_entry(key=["a"])), "entry 0: key must be text: it is ignored"),
        (a_risu_book(a_risu_entry(insertorder="x")), "entry 0: insertorder must be a number"),
        (a_risu_book(a_risu_entry(extentions=[])), "entry 0: extentions must be an object"),
    ],
)
def test_unreadable_settings_of_a_risuai_book_give_notices(book, notice):
    assert [told[: len(notice)] for told in read_book(book).notices] == [notice]


def test_risuai_export_other_than_a_lorebook_is_no_book():
    assert translate_book({"type": "risu", "data": {}}, limit_entries=9) is None


# The first generated text makes Hypothesis build its table of characters, which takes a second.
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
FIELDS = st.sampled_from(
    [*a_risu_entry(), "id", "useRegex", "activationPercent", "extentions", "folder"]
)
HEADS = st.lists(
    st.sampled_from(
        [
            *("@@probability 5", "@@@priority 2", "@@end", "@@depth 1", "@@@role user", ""),
            *("@@exclude_keys_all a, b", "@@recursive", "@@unknown", "@@@", "@@probability x"),
        ]
    ),
    max_size=6,
).map("\n".join)


@UNHURRIED
@given(st.dictionaries(FIELDS, JSON, max_size=5), HEADS, st.text("a,/[\\ ", max_size=9))
def test_any_risuai_book_is_translated_or_refused_in_one_line(fields, head, key):
    book = a_risu_book({"content": f"{head}\nT.", "key": key} | fields)
    try:
        made = as_v3(book)
    except FormatError as error:
        assert "\n" not in error.message
    else:
        assert all(
            entry["extensions"]["risuai"] == book["data"][0] for entry in made["data"]["entries"]
        )
        assert as_v3(as_world(book)) == made


@pytest.mark.parametrize("unit", ["@@probability x\n", "@@a\n@@@b\n", "@@priority 1\n", "\n"])
def test_many_leading_risuai_lines_are_read_in_linear_time(unit):
    content = "@@a\n" + unit * (150_000 // len(unit)) + "T."
    with little_work():
        read_risu_lines(content)


@pytest.mark.parametrize("unit", ["/a,", "/,", "a,", "\\/,", "   ", "/a/"])
def test_long_risuai_keys_are_split_in_linear_time(unit):
    book = a_risu_book(a_risu_entry(key="/" + unit * 100_000, useRegex=True))
    with little_work():
        assert translate_book(book, limit_entries=9) is not None


def test_ten_thousand_risuai_entries_are_translated_in_under_two_seconds():
    content = "@@probability 5\n@@depth 2\nT."
    book = a_risu_book(*[a_risu_entry(content, key=f"a{n}, b") for n in range(10_000)])
    with little_work():
        assert len(translate_book(book, limit_entries=MAX_ENTRIES).book["entries"]) == 10_000
