"""Books as files have them: V3, V2, `lorebook_v3`, SillyTavern's world files, and broken ones."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.lorebook.books import MAX_ENTRIES, read_book
from evennia_ai.lorebook.foreign import check_plain, parse_json
from evennia_ai.prompt.errors import FormatError, NotYetError
from tests.lorebook.builders import a_book, a_world_entry, an_entry, awake, reasons, texts


def test_a_v3_book_is_read():
    book = read_book(
        {
            "name": "Harbour",
            "scan_depth": 3,
            "token_budget": 400,
            "recursive_scanning": False,
            "extensions": {"app": {"x": 1}},
            "entries": [an_entry("Lore.", id=7, comment="toll", name="other", priority=5)],
            "unknown": [1],
        }
    )
    assert (book.label, book.scan_depth, book.token_budget) == ("Harbour", 3, 400)
    assert book.notices == ()
    [entry] = book.entries
    assert (entry.uid, entry.name, entry.order, entry.priority) == ("7", "toll", 100, 5)
    assert entry.origin == "lore:Harbour#7"


def test_a_standalone_v3_file_is_its_data():
    book = read_book({"spec": "lorebook_v3", "data": {"entries": [an_entry("Lore.")]}})
    assert [entry.uid for entry in book.entries] == ["0"]
    assert book.label == "book"


def test_the_given_label_wins_over_the_book_s_name():
    assert read_book({"name": "own", "entries": []}, label="given").label == "given"


def test_a_v2_entry_needs_fewer_fields():
    book = read_book({"entries": [{"keys": ["coin"], "content": "Lore."}]})
    assert texts(awake(book)) == ["Lore."]


def test_a_world_file_is_read():
    book = read_book(
        {
            "entries": {
                "3": a_world_entry("A.", uid=3, comment="a", order=20, position=1),
                "4": a_world_entry("B.", uid=4, position=4, depth=2, role=1),
                "5": a_world_entry("C.", position=4, role=None, depth=None),
                "6": a_world_entry("D.", disable=True),
                "7": a_world_entry("E.", key=["COIN"], caseSensitive=True),
                "8": a_world_entry("F.", key=["oin"], matchWholeWords=False, scanDepth=1),
            }
        },
        label="world",
    )
    by_uid = {entry.uid: entry for entry in book.entries}
    assert list(by_uid) == ["3", "4", "5", "6", "7", "8"]
    assert (by_uid["3"].position, by_uid["3"].order, by_uid["3"].name) == ("after", 20, "a")
    assert (by_uid["4"].depth, by_uid["4"].role) == (2, "user")
    assert (by_uid["5"].depth, by_uid["5"].role) == (4, "system")
    assert not by_uid["6"].enabled
    assert by_uid["7"].case_sensitive
    assert by_uid["8"].scan_depth == 1
    assert texts(awake(book)) == ["A.", "B.", "C.", "F."]


def test_an_object_of_v3_entries_is_read_too():
    book = read_book({"entries": {"x": an_entry("Lore.")}})
    assert [(entry.uid, entry.keys) for entry in book.entries] == [("x", ("coin",))]


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"use_regex": True, "keys": ["/a+/i"]}, "regex keys"),
        ({"use_regex": True}, "regex keys"),
        ({"extensions": {"probability": 50, "useProbability": True}}, "chance"),
        ({"extensions": {"group": "weather"}}, "inclusion groups"),
        ({"extensions": {"sticky": 3}}, "timed effects"),
        ({"extensions": {"cooldown": 3}}, "timed effects"),
        ({"extensions": {"delay_until_recursion": True}}, "recursion"),
        ({"extensions": {"position": 2}}, "a place around the author's note"),
        ({"extensions": {"position": 7}}, "outlets"),
        ({"extensions": {"match_scenario": True}}, "scanning of card fields"),
        ({"keys": ["{{user}}"]}, "macros in keys"),
    ],
)
def test_an_entry_that_needs_what_is_not_there_is_silent_and_says_so(fields, what):
    result = awake(a_book(an_entry("Lore.", constant=True, **fields)))
    assert result.entries == ()
    [verdict] = result.verdicts
    assert verdict.reason.startswith(f"needs {what}")
    assert verdict.reason.endswith(", which this version does not have")


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"key": ["/coin/i"]}, "regex keys"),
        ({"probability": 30, "useProbability": True}, "chance"),
        ({"delay": 2}, "timed effects"),
        ({"characterFilter": {"names": ["Oren"], "tags": []}}, "filters"),
        ({"selectiveLogic": 9}, "selectiveLogic 9"),
        ({"position": 5}, "a place around the examples"),
        ({"ignoreBudget": True}, "a place outside the budget"),
    ],
)
def test_the_same_holds_for_world_files(fields, what):
    book = read_book({"entries": {"0": a_world_entry("Lore.", constant=True, **fields)}})
    assert reasons(awake(book))["book#0"].startswith(f"- needs {what}")


def test_harmless_fields_of_other_engines_do_not_silence_an_entry():
    extensions = {
        "probability": 100,
        "useProbability": True,
        "group": "",
        "sticky": None,
        "cooldown": 0,
        "exclude_recursion": True,
        "prevent_recursion": True,
        "position": 0,
        "character_filter": {"names": [], "tags": []},
    }
    assert texts(awake(a_book(an_entry("Lore.", extensions=extensions)))) == ["Lore."]


def test_a_pattern_without_the_flag_is_a_plain_key():
    book = a_book(an_entry("Lore.", keys=["/coin/"]))
    assert texts(awake(book)) == []


def test_sillytavern_s_blanket_regex_flag_is_cleared_with_a_notice():
    book = a_book(an_entry("Lore.", use_regex=True, constant=True, extensions={"position": 1}))
    assert texts(awake(book)) == ["Lore."]
    assert "use_regex is set, but no key is a /pattern/" in book.notices[0]


def test_secondary_keys_as_one_text_are_split_with_a_notice():
    book = a_book(an_entry("Lore.", selective=True, secondary_keys="red, blue"))
    assert book.entries[0].secondary_keys == ("red", "blue")
    assert book.notices == ("entry 0: secondary_keys is one text: split at its commas",)


def test_an_unknown_position_is_noticed_and_the_entry_kept():
    book = a_book(an_entry("Lore.", position="moon"))
    assert texts(awake(book)) == ["Lore."]
    assert book.notices == ("entry 0: position 'moon' is not known: after_char counts",)


def test_recursion_of_a_book_is_named_as_missing():
    book = a_book(recursive_scanning=True)
    assert book.notices == ("recursive_scanning: entries do not wake entries in this version",)


def test_empty_keys_are_no_keys():
    assert a_book(an_entry(keys=["", "  ", " coin "])).entries[0].keys == ("coin",)


def test_entries_of_one_id_are_both_kept():
    book = a_book(an_entry("A.", id=1), an_entry("B.", id=1))
    assert texts(awake(book)) == ["A.", "B."]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "book: must be an object with `entries`"),
        ([], "book: must be an object with `entries`"),
        ({}, "book: has no `entries`; a book is an object with them"),
        ({"spec": "lorebook_v3", "data": []}, "book: has no `entries`"),
        ({"entries": "x"}, "book.entries: must be a list or an object"),
        ({"entries": None}, "book.entries: must be a list or an object"),
        ({"entries": [an_entry(), "no entry"]}, "book.entries[1]: must be an object"),
        ({"entries": {"a\nb": 1}}, "book.entries[a b]: must be an object"),
        ({"entries": [an_entry(keys="coin")]}, "book.entries[0].keys: must be a list"),
        ({"entries": [an_entry(keys=[1])]}, "book.entries[0].keys[0]: must be text"),
        (
            {"entries": [an_entry(enabled="false")]},
            "book.entries[0].enabled: must be true or false",
        ),
        (
            {"entries": [an_entry(insertion_order="1")]},
            "book.entries[0].insertion_order: must be a n",
        ),
        (
            {"entries": [an_entry(insertion_order=True)]},
            "book.entries[0].insertion_order: must be a",
        ),
        ({"entries": [an_entry(content=None)]}, "book.entries[0].content: must be text"),
        ({"entries": [an_entry(id=[])]}, "book.entries[0].id: must be a number"),
        ({"entries": [], "scan_depth": -1}, "book.scan_depth: "),
        ({"entries": [], "scan_depth": "4"}, "book.scan_depth: must be a whole number"),
        ({"entries": [an_entry(insertion_order=float("nan"))]}, "book: a number is not finite"),
        ({"entries": [an_entry(insertion_order=10**30)]}, "book: a number is too large"),
        ({"entries": [an_entry("\ud800")]}, "book: a text has half a character"),
        ({"entries": {1: an_entry()}}, "book: a member's name is not text"),
        ({"entries": [an_entry("x" * 200_001)]}, "book.entries[0].content: "),
        ({"entries": [{}] * (MAX_ENTRIES + 1)}, "book: has more than 100000 entries; split it"),
    ],
)
def test_err_a_broken_book_is_refused_in_one_line_that_names_the_place(data, message):
    with pytest.raises(FormatError) as caught:
        read_book(data)
    assert caught.value.kind == "book"
    assert caught.value.message.startswith(message)
    assert "\n" not in caught.value.message
    assert len(caught.value.message) < 400


@pytest.mark.parametrize(
    ("data", "name"),
    [
        ({"lorebookVersion": 5, "entries": []}, "NovelAI"),
        ({"kind": "memory", "entries": []}, "Agnai"),
        ({"type": "risu", "data": []}, "RisuAI"),
    ],
)
def test_err_formats_that_are_not_read_yet_are_refused_by_name(data, name):
    with pytest.raises(NotYetError, match=f"a lorebook of {name} is not supported yet"):
        read_book(data)


def test_err_an_unknown_attachment_is_refused():
    with pytest.raises(FormatError, match="unknown attach 'moon'; known: chat, "):
        read_book({"entries": []}, attach="moon")


def test_err_a_book_nested_without_end_is_refused():
    extensions: dict[str, object] = {}
    extensions["self"] = extensions
    with pytest.raises(FormatError, match="nested more than 64 deep"):
        a_book(an_entry(extensions=extensions))


def test_aliases_that_multiply_cost_nothing():
    bomb: list[object] = []
    for _ in range(40):
        bomb = [bomb] * 10
    started = time.perf_counter()
    assert a_book(an_entry(extensions={"bomb": bomb})).entries
    assert time.perf_counter() - started < 1


def test_five_thousand_entries_are_read_and_judged_quickly():
    entries = [an_entry("Lore.", keys=[f"key{n}", f"other {n}", "x" * 500]) for n in range(5000)]
    started = time.perf_counter()
    book = a_book(*entries)
    result = awake(book)
    assert time.perf_counter() - started < 5
    assert len(result.verdicts) == 5000


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner, max_size=3)
    ),
    max_leaves=12,
)
FIELDS = st.sampled_from(
    [
        *("keys", "content", "enabled", "insertion_order", "id", "extensions", "constant"),
        *("position", "secondary_keys", "selective", "priority", "key", "order", "use_regex"),
    ]
)


@given(st.dictionaries(FIELDS, JSON, max_size=6))
def test_whatever_an_entry_holds_it_is_read_or_refused_in_one_line(fields):
    try:
        book = read_book({"entries": [fields]})
    except FormatError as error:
        assert "\n" not in error.message
    else:
        assert len(awake(book).verdicts) == 1


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no valid JSON (Expecting value at line 1, column 1)"),
        ('{"a": 1,}', "no valid JSON"),
        ('{"a": NaN}', "no valid JSON (NaN is no number of JSON)"),
        ('{"a": -Infinity}', "no valid JSON (-Infinity is no number of JSON)"),
        ('{"a": 1e999}', "a number is not finite"),
        ('{"a": ' + "1" * 5000 + "}", "no valid JSON (Exceeds the limit"),
        ('"\\ud800"', "a text has half a character"),
        ("[" * 100_000, "nested more than 64 deep; make it flatter"),
        ("[" * 70 + "]" * 70, "nested more than 64 deep; make it flatter"),
        ('{"a": 1} {"b": 2}', "no valid JSON (Extra data at line 1, column 10)"),
    ],
)
def test_err_text_that_is_no_strict_json_is_refused(text, problem):
    with pytest.raises(FormatError) as caught:
        parse_json(text, kind="card", where="x.json")
    assert caught.value.message.startswith(f"x.json: {problem}")


@pytest.mark.req("S3-08")
@pytest.mark.parametrize("unit", ["[],", "0,", '"a",', '{"a":[]},', "[[[]]],"])
def test_a_million_values_are_looked_at_in_linear_time(unit):
    started = time.perf_counter()
    value, _ = parse_json(f"[{unit * 300_000}1]", kind="card", where="x.json")
    assert len(value) == 300_001
    assert time.perf_counter() - started < 3


def test_a_value_that_holds_itself_is_too_deep():
    loop: list[object] = []
    loop.append({"again": loop})
    with pytest.raises(FormatError, match="nested more than 64 deep"):
        check_plain(loop, kind="card", where="x")


def test_a_byte_order_mark_passes_and_members_written_twice_are_noticed():
    value, notices = parse_json('\ufeff{"a": 1, "b": 2, "a": 3}', kind="card", where="x")
    assert value == {"a": 3, "b": 2}
    assert notices == ("member 'a' is there twice; the last counts",)


@pytest.mark.parametrize(
    ("fields", "counting"), [({}, ()), ({"selective": True}, ("sea",)), ({"selective": False}, ())]
)
def test_second_keys_of_a_world_file_count_only_where_it_is_selective(fields, counting):
    entry = {"uid": 0, "key": ["dragon"], "keysecondary": ["sea"], "content": "C.", **fields}
    assert read_book({"entries": {"0": entry}}).entries[0].secondary_keys == counting
