"""Reading lorebook files: V3, V2, `lorebook_v3`, SillyTavern's world files, and broken ones."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.foreign.documents import MAX_ENTRIES, check_plain, parse_json
from evennia_ai.engine.lorebook.entry import Timing
from evennia_ai.formats.lorebooks.books import MAX_BOOK_KEYS, read_book
from evennia_ai.formats.lorebooks.conversion import as_v3
from tests.effort import little_work
from tests.engine.lorebook.builders import a_book, a_world_entry, an_entry


def test_v3_book_is_read():
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


def test_standalone_v3_file_is_read_from_its_data():
    book = read_book({"spec": "lorebook_v3", "data": {"entries": [an_entry("Lore.")]}})
    assert [entry.uid for entry in book.entries] == ["0"]
    assert book.label == "book"


def test_given_label_replaces_the_books_name():
    assert read_book({"name": "own", "entries": []}, label="given").label == "given"


def test_v3_book_with_an_object_of_entries_is_read():
    book = read_book({"entries": {"x": an_entry("Lore.")}})
    assert [(entry.uid, entry.keys) for entry in book.entries] == [("x", ("coin",))]


@pytest.mark.parametrize("written", [True, False, None])
def test_book_decides_about_recursion(written):
    book = a_book(recursive_scanning=written)
    assert book.recursive is written
    assert book.notices == ()


def test_rules_decide_about_recursion_when_the_book_does_not():
    assert a_book().recursive is None


def test_entries_of_an_object_are_in_javascripts_order():
    names = ["b", "10", "2", "01", "-1", "a", "4294967295", "0"]
    book = read_book({"entries": {name: a_world_entry() for name in names}})
    assert [entry.uid for entry in book.entries] == [
        *("0", "2", "10"),
        *("b", "01", "-1", "a", "4294967295"),
    ]
    assert [entry.index for entry in book.entries] == list(range(8))


def test_entries_with_the_same_id_are_both_kept():
    book = a_book(an_entry("A.", id=1), an_entry("B.", id=1))
    assert [entry.uid for entry in book.entries] == ["1", "1 (2)"]
    assert book.entries[1].origin == "lore:book#1 (2)"


def test_book_with_too_many_keys_keeps_the_keys_of_its_first_entries():
    entries = [an_entry(keys=["k"] * 1000) for _ in range(MAX_BOOK_KEYS // 1000)]
    book = a_book(*entries, an_entry("@@activate\nLore.", keys=["one"], constant=True))
    assert book.notices == (
        "the book has more than 300000 keys: split it; its last entries are never active",
    )
    assert book.entries[-2].refused is None
    assert book.entries[-1].refused == "the book has more than 300000 keys: split it"
    assert book.entries[-1].keys == ()


def test_keys_in_decorators_count_towards_the_key_limit_of_a_book():
    keys = ",".join(["k"] * 1000)
    content = f"@@additional_keys {keys}\n" * 40
    book = a_book(*[an_entry(content) for _ in range(8)])
    assert [entry.refused is None for entry in book.entries] == [True] * 7 + [False]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "book: must be an object with `entries`"),
        ([], "book: must be an object with `entries`"),
        ({}, "book: has no `entries`; a book is an object with them"),
        ({"spec": "lorebook_v3", "data": []}, "book: has no `entries`"),
        ({"entries": "x"}, "book.entries: must be a list or an object"),
        ({"entries": None}, "book.entries: must be a list or an object"),
        ({"entries": [an_entry(insertion_order=float("nan"))]}, "book: a number is not finite"),
        ({"entries": [an_entry(insertion_order=10**30)]}, "book: a number is too large"),
        ({"entries": [an_entry("\ud800")]}, "book: a text has half a character"),
        ({"entries": {1: an_entry()}}, "book: a member's name is not text"),
        ({"entries": [{}] * (MAX_ENTRIES + 1)}, "book: has more than 100000 entries; split it"),
    ],
)
def test_broken_book_is_refused_in_one_line_with_the_path(data, message):
    with pytest.raises(FormatError) as caught:
        read_book(data)
    assert caught.value.kind == "book"
    assert caught.value.message.startswith(message)
    assert "\n" not in caught.value.message
    assert len(caught.value.message) < 400


@pytest.mark.parametrize(
    ("written", "notice", "said"),
    [
        ({"keys": "coin, sea"}, "keys is one text: split at its commas", {"keys": ("coin", "sea")}),
        (
            {"keys": [1, None, "sea", True]},
            "keys has items that are not text: 2 that are neither text nor number are left out",
            {"keys": ("1", "sea")},
        ),
        ({"keys": [5]}, "keys has items that are not text: numbers are read as texts", {}),
        ({"keys": None}, "keys is null: read as missing", {"keys": ()}),
        ({"keys": {}}, "keys must be a list of texts: it is ignored", {"keys": ()}),
        ({"enabled": "false"}, "enabled is 'false': read as false", {"enabled": False}),
        ({"enabled": "never"}, "enabled must be true or false: it is ignored", {"enabled": True}),
        ({"enabled": None}, "enabled is null: read as missing", {"enabled": True}),
        ({"insertion_order": "x"}, "insertion_order must be a number: it is ignored", {}),
        ({"insertion_order": True}, "insertion_order must be a number: it is ignored", {}),
        ({"content": None}, "content is null: read as missing", {"refused": None}),
        ({"id": []}, "id must be a number or a text: it is ignored", {"uid": "0"}),
        ({"comment": []}, "comment must be text: it is ignored", {"name": ""}),
        ({"position": 0}, "position is 0: read as before_char", {"position": "before"}),
        ({"position": 1}, "position is 1: read as after_char", {"position": "after"}),
        ({"position": 4}, "position '4' is unknown: after_char is used", {"position": "after"}),
        ({"constant": "yes"}, "constant must be true or false: it is ignored", {"constant": False}),
        ({"use_regex": 2}, "use_regex must be true or false: it is ignored", {"patterns": "none"}),
        ({"priority": []}, "priority must be a number: it is ignored", {"priority": 100}),
        ({"secondary_keys": {}}, "secondary_keys must be a list of texts: it is ignored", {}),
        ({"extensions": []}, "extensions must be an object: it is ignored", {}),
        (
            {"content": 5},
            "is never active: content must be text",
            {"refused": "content must be text"},
        ),
        ({"content": "x" * 200_001}, "is never active: content must have at most", {}),
    ],
)
def test_entry_field_of_a_wrong_type_gives_a_notice_and_the_rest_is_read(written, notice, said):
    book = a_book({**an_entry(), **written}, an_entry("The other."))
    assert [told.removeprefix("entry 0: ")[: len(notice)] for told in book.notices] == [notice]
    assert {name: getattr(book.entries[0], name) for name in said} == said
    assert book.entries[1].is_usable


@pytest.mark.parametrize("written", ["no entry", None, 7, [], True])
@pytest.mark.parametrize("listed", [list, dict])
def test_entry_that_is_not_an_object_is_refused_with_its_uid_in_the_notice(written, listed):
    entries: object = [an_entry(), written] if listed is list else {"0": an_entry(), "1": written}
    book = read_book({"entries": entries})
    assert [(one.uid, one.refused) for one in book.entries] == [
        ("0", None),
        ("1", "must be an object"),
    ]
    assert book.notices == ("entry 1: is never active: must be an object",)


@pytest.mark.parametrize(
    ("head", "notice"),
    [
        ({"scan_depth": -1}, "scan_depth must be 0 or more: it is ignored"),
        ({"scan_depth": "deep"}, "scan_depth must be a number: it is ignored"),
        ({"token_budget": []}, "token_budget must be a number: it is ignored"),
        ({"recursive_scanning": "no"}, "recursive_scanning must be true or false: it is ignored"),
        ({"name": 5}, "name must be text: it is ignored"),
    ],
)
def test_unreadable_setting_of_a_book_gives_a_notice(head, notice):
    assert read_book({"entries": [], **head}).notices == (notice,)


def test_numbers_of_a_book_may_be_texts():
    book = read_book({"entries": [], "scan_depth": "4", "recursive_scanning": 1})
    assert (book.scan_depth, book.recursive, book.notices) == (4, True, ())


BOTH = {"key": ["world"], "keys": ["card"], "order": 1, "insertion_order": 2, "uid": 7, "id": 8}
CARD_ONLY = {"keys": ["card"], "insertion_order": 2, "id": 8, "enabled": False}


@pytest.mark.parametrize(
    ("frame", "written", "keys", "order", "uid"),
    [
        ("world", BOTH, ("world",), 1, "7"),
        ("card", BOTH, ("card",), 2, "8"),
        ("list", BOTH, ("card",), 2, "8"),
        ("world", {**BOTH, "key": []}, (), 1, "7"),
        ("world", {"key": ["world"], "insertion_order": 2, "id": 8}, ("world",), 2, "8"),
        ("card", {"key": ["world"], "insertion_order": 2, "id": 8}, ("world",), 2, "8"),
        ("card", {"keys": ["card"], "order": 1, "uid": 7}, ("card",), 1, "7"),
        ("world", {"keys": ["card"], "order": 1, "uid": 7}, ("card",), 1, "7"),
        ("world", CARD_ONLY, ("card",), 2, "8"),
    ],
)
def test_entry_spelling_of_the_file_wins_and_the_other_spelling_fills_gaps(
    frame, written, keys, order, uid
):
    entry = {"content": "Lore.", **written}
    book = {
        "world": {"entries": {"a": entry}},
        "card": {"spec": "lorebook_v3", "data": {"entries": {"a": entry}}},
        "list": {"entries": [entry]},
    }[frame]
    [read] = read_book(book).entries
    assert (read.keys, read.order, read.uid) == (keys, order, uid)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ({"position": "before_char"}, {"position": "before"}),
        ({"position": "after_char"}, {"position": "after"}),
        ({"role": "user", "position": 4}, {"role": "user"}),
        ({"enabled": False}, {"enabled": False}),
        ({"disable": False, "enabled": False}, {"enabled": True}),
        ({"secondary_keys": ["sea"], "selective": True}, {"secondary_keys": ("sea",)}),
        ({"name": "The mill"}, {"name": "The mill"}),
        ({"extensions": {"position": 4, "depth": 2}}, {"position": "depth", "depth": 2}),
        ({"position": 1, "extensions": {"position": 4}}, {"position": "after"}),
        ({"extensions": {"sticky": "3", "group": 7}}, {"timing": Timing(sticky=3)}),
    ],
)
def test_world_entry_in_the_cards_spelling_has_the_same_settings(written, said):
    book = read_book({"entries": {"0": {"key": ["coin"], "content": "Lore.", **written}}})
    assert book.notices == ()
    assert {name: getattr(book.entries[0], name) for name in said} == said


@pytest.mark.parametrize(
    ("data", "source"),
    [
        ({"lorebookVersion": 5, "entries": [{"text": "N.", "searchRange": 1}]}, "N."),
        ({"kind": "memory", "entries": [{"entry": "A.", "keywords": ["x*"]}]}, "A."),
        ({"type": "risu", "data": [{"content": "@@priority 1\nR.", "mode": "child"}]}, "R."),
    ],
)
def test_books_of_other_programs_are_recognised_by_content(data, source):
    book = read_book(data, label="given")
    [entry] = book.entries
    assert (entry.origin, entry.template.source) == ("lore:given#0", source)
    assert [entry.template.source for entry in read_book(as_v3(data)).entries] == [source]


def test_unsupported_feature_of_another_program_gives_a_notice():
    off = {"id": "c", "name": "Sea", "enabled": False}
    entries = [{"text": "A."}, {"text": "B.", "id": "b", "keyRelative": True}]
    book = read_book({"lorebookVersion": 5, "entries": entries, "categories": [off]})
    assert book.notices == (
        "category 'Sea' is switched off, and its entries with it",
        "entry b: keyRelative is not supported: the text is at its place, not next to its key",
    )


def test_spec_lorebook_v3_wins_over_members_of_other_programs():
    data = {"entries": [an_entry("V.")]}
    book = read_book({"spec": "lorebook_v3", "type": "risu", "kind": "memory", "data": data})
    assert [entry.template.source for entry in book.entries] == ["V."]


def test_book_with_an_unknown_attachment_is_refused():
    with pytest.raises(FormatError, match="unknown attach 'moon'; known: chat, "):
        read_book({"entries": []}, attach="moon")


def test_endlessly_nested_book_is_refused():
    extensions: dict[str, object] = {}
    extensions["self"] = extensions
    with pytest.raises(FormatError, match="nested more than 64 deep"):
        a_book(an_entry(extensions=extensions))


def test_values_that_occur_many_times_are_checked_in_linear_time():
    bomb: list[object] = []
    for _ in range(40):
        bomb = [bomb] * 10
    with little_work():
        assert a_book(an_entry(extensions={"bomb": bomb})).entries


def test_ten_thousand_entries_are_read_in_under_two_seconds():
    entries = [an_entry("Lore.", keys=[f"key{n}", f"other {n}", "x" * 500]) for n in range(10_000)]
    with little_work():
        assert len(a_book(*entries).entries) == 10_000


@pytest.mark.long
def test_ten_thousand_hostile_entries_are_read_in_bounded_time():
    content = "@@additional_keys " + "a," * 50 + "\n" + "@@@depth x\n" * 5 + "{{user" * 2
    entry = a_world_entry(content, key=["", "   ", "/(a+)+$/", "k" * 2000], uid="same")
    with little_work(4):
        book = read_book({"entries": dict.fromkeys(map(str, range(10_000)), entry)})
    assert len({entry.uid for entry in book.entries}) == 10_000
    assert len(book.notices) < 30


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
        *("evennia_ai", "depth", "role", "sticky", "group", "probability", "characterFilter"),
        *("delayUntilRecursion", "triggers", "scanDepth", "selectiveLogic", "keysecondary"),
    ]
)


@given(st.dictionaries(FIELDS, JSON, max_size=6))
def test_any_entry_is_read_or_refused_in_one_line(fields):
    try:
        book = read_book({"entries": [fields]})
    except FormatError as error:
        assert "\n" not in error.message
    else:
        assert len(book.entries) == 1


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is not valid JSON (Expecting value at line 1, column 1)"),
        ('{"a": 1,}', "is not valid JSON"),
        ('{"a": NaN}', "is not valid JSON (NaN is not a JSON number)"),
        ('{"a": -Infinity}', "is not valid JSON (-Infinity is not a JSON number)"),
        ('{"a": 1e999}', "a number is not finite"),
        ('{"a": ' + "1" * 5000 + "}", "is not valid JSON (Exceeds the limit"),
        ('"\\ud800"', "a text has half a character"),
        ("[" * 100_000, "nested more than 64 deep; make it flatter"),
        ("[" * 70 + "]" * 70, "nested more than 64 deep; make it flatter"),
        ('{"a": 1} {"b": 2}', "is not valid JSON (Extra data at line 1, column 10)"),
    ],
)
def test_text_that_is_not_strict_json_is_refused(text, problem):
    with pytest.raises(FormatError) as caught:
        parse_json(text, kind="card", where="x.json")
    assert caught.value.message.startswith(f"x.json: {problem}")


@pytest.mark.long
@pytest.mark.req("S3-08")
@pytest.mark.parametrize("unit", ["[],", "0,", '"a",', '{"a":[]},', "[[[]]],"])
def test_million_values_are_checked_in_linear_time(unit):
    with little_work(3):
        value, _ = parse_json(f"[{unit * 300_000}1]", kind="card", where="x.json")
        assert len(value) == 300_001


def test_error_says_nested_too_deeply_when_a_value_contains_itself():
    loop: list[object] = []
    loop.append({"again": loop})
    with pytest.raises(FormatError, match="nested more than 64 deep"):
        check_plain(loop, kind="card", where="x")


def test_byte_order_mark_is_accepted_and_duplicate_members_give_notices():
    value, notices = parse_json('\ufeff{"a": 1, "b": 2, "a": 3}', kind="card", where="x")
    assert value == {"a": 3, "b": 2}
    assert notices == ("member 'a' occurs twice; the last one counts",)


def test_notices_name_the_first_duplicate_members_and_count_the_others():
    twice = ", ".join(f'"{n}": 1, "{n}": 2' for n in range(50_000))
    _, notices = parse_json(f"[{{{twice}}}, {{{twice}}}]", kind="card", where="x")
    assert notices[9] == "member '9' occurs twice; the last one counts"
    assert notices[10:] == ("99980 more members occur twice; the last of each counts",)


def test_entry_without_an_id_gets_its_name_on_one_line_as_id():
    [entry] = read_book({"entries": {"a\x1b[2J\nb": {"key": ["coin"], "content": "A."}}}).entries
    assert entry.uid == "a [2J b"


@pytest.mark.long
@pytest.mark.parametrize("member", ["keys", "key", "keysecondary"])
def test_million_wrong_keys_give_one_notice(member):
    book = {"entries": [{"uid" if member != "keys" else "id": 1, member: [None] * 300_000}]}
    tracemalloc.start()
    try:
        [notice] = read_book(book).notices
        assert "300000 that are neither text nor number are left out" in notice
        assert tracemalloc.get_traced_memory()[1] < 30_000_000
    finally:
        tracemalloc.stop()
