"""Agnai's memory books: translated fields, wildcards in keywords, and kept members."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.foreign.documents import MAX_ENTRIES
from evennia_ai.engine.lorebook.entry import Recursion
from evennia_ai.engine.lorebook.scan.regex.pattern import Pattern, read_pattern, search_patterns
from evennia_ai.formats.lorebooks.books import read_book
from evennia_ai.formats.lorebooks.conversion import as_v3, as_world
from evennia_ai.formats.lorebooks.other_programs import translate_book
from tests.effort import little_work
from tests.engine.lorebook.builders import a_scan, awake, texts
from tests.formats.lorebooks.test_books import JSON


def a_memory(entry="The toll is a penny.", **fields):
    """Return an entry of a memory book as Agnai writes it."""
    given = {"name": "the toll", "entry": entry, "keywords": ["toll"], "enabled": True}
    return {**given, "priority": 3, "weight": 7, **fields}


def a_memory_book(*entries, **more):
    head = {"kind": "memory", "_id": "b-1", "name": "Harbour", "userId": "u"}
    return {**head, "entries": list(entries), **more}


def read(**fields):
    [entry] = read_book(as_v3(a_memory_book(a_memory(**fields)))).entries
    return entry


def wakes(keyword, line, *, beside=()):
    book = as_v3(a_memory_book(a_memory(keywords=[keyword, *beside])))
    return bool(texts(awake(read_book(book), scan=a_scan(event=line))))


def test_translated_agnai_entry_has_the_same_settings_in_v3():
    entry = read(id=4)
    assert (entry.uid, entry.name, entry.keys) == ("4", "the toll", ("toll",))
    assert entry.template.source == "The toll is a penny."
    assert (entry.order, entry.priority) == (7, 3)
    assert (entry.enabled, entry.constant, entry.patterns) == (True, False, "none")
    assert (entry.match_whole_words, entry.case_sensitive) == (True, False)


def test_missing_settings_of_an_agnai_entry_get_the_usual_defaults():
    [entry] = read_book(as_v3(a_memory_book({"entry": "Lore.", "keywords": None}))).entries
    assert (entry.uid, entry.keys, entry.order, entry.priority) == ("0", (), 100, 100)
    assert (entry.name, entry.enabled, entry.position) == ("", True, "after")


@pytest.mark.parametrize(
    ("fields", "name", "value"),
    [
        ({"name": "", "comment": "fee"}, "name", "fee"),
        ({"enabled": False}, "enabled", False),
        ({"constant": True}, "constant", True),
        ({"position": "before_char"}, "position", "before"),
        ({"position": "elsewhere"}, "position", "after"),
        ({"secondaryKeys": ["sea"], "selective": True}, "secondary_keys", ("sea",)),
        ({"secondaryKeys": ["sea"], "selective": True}, "selective", True),
        ({"secondaryKeys": ["sea"]}, "selective", False),
        ({"selectiveLogic": 2}, "logic", "not_any"),
        ({"probability": 30, "useProbability": True}, "chance", 30),
        ({"probability": 30}, "chance", 100),
        ({"excludeRecursion": True}, "recursion", Recursion(excluded=True)),
    ],
)
def test_fields_of_other_programs_in_an_agnai_entry_are_read(fields, name, value):
    assert getattr(read(**fields), name) == value


def test_agnai_book_keeps_its_v3_settings():
    book = read_book(
        as_v3(
            a_memory_book(a_memory(), description="Of ships.", scanDepth=3, tokenBudget=90)
            | {"recursiveScanning": False}
        )
    )
    assert (book.label, book.scan_depth, book.token_budget) == ("Harbour", 3, 90)
    assert book.recursive is False


@pytest.mark.parametrize(
    ("keyword", "line", "woken"),
    [
        ("toll", "The TOLL, please", True),
        ("toll", "tolls", False),
        ("toll*", "tolls", True),
        ("toll*", "the Toll", True),
        ("toll*", "atoll", False),
        ("*toll", "an atoll", True),
        ("*toll", "atolls", False),
        ("*oll*", "tolls", True),
        ("t*l", "a tall toll", True),
        ("t*l", "a tall", True),
        ("t*l", "at all", False),
        ("t?ll", "tall", True),
        ("t?ll", "tll", False),
        ("t?ll", "ta11", False),
        ("?toll", "toll", False),
        ("?toll", "atoll", True),
        ("toll g*te", "the toll gäte", True),
        ("zöll*", "ZÖLLE", True),
        ("通行*", "这里通行税很高", True),
        ("t.ll*", "toll", False),
        ("c++*", "c++ is a language", True),
        ("a/b*", "a/b", True),
    ],
)
def test_star_in_an_agnai_keyword_matches_any_letters_and_a_question_mark_one(keyword, line, woken):
    assert wakes(keyword, line) is woken


@pytest.mark.parametrize("keyword", ["*", " ** "])
def test_keyword_of_only_stars_makes_the_entry_constant(keyword):
    entry = read(keywords=[keyword, "toll"])
    assert (entry.constant, entry.keys) == (True, ("toll",))


def test_keyword_that_looks_like_a_regular_expression_is_matched_literally():
    assert wakes("/t.ll/", "a /t.ll/ there")
    assert not wakes("/t.ll/", "toll")
    assert wakes("/t.ll/", "a /t.ll/ there", beside=["x*"])
    assert not wakes("/t.ll/", "toll", beside=["x*"])


@pytest.mark.parametrize("keyword", ["a*b", "a*b*c", "*a*b*", "a?b*c?d", "a" + "*b" * 20])
def test_wildcards_in_a_keyword_match_in_bounded_time(keyword):
    [key] = read(keywords=[keyword]).keys
    found = read_pattern(key)
    assert isinstance(found, Pattern)
    with little_work():
        assert search_patterns("a" * 20_000, [found]).places == {}


def test_too_long_agnai_keyword_becomes_no_regex_and_gives_a_notice():
    keyword = "?" * 1001
    made = as_v3(a_memory_book(a_memory(keywords=[keyword])))
    assert made["data"]["entries"][0]["keys"] == [keyword]
    assert read_book(made).notices == (
        "entry 0: a key of more than 1000 characters: it never matches",
    )


def test_whole_agnai_entry_and_the_books_other_members_are_kept():
    entry = a_memory(keywords=["t*", "*"], strange=[1, None])
    made = as_v3(a_memory_book(entry, extensions={"x": 1}), name="Other")
    assert (made["spec"], made["data"]["name"]) == ("lorebook_v3", "Harbour")
    assert made["data"]["extensions"]["agnai"] == {
        "kind": "memory",
        "_id": "b-1",
        "name": "Harbour",
        "userId": "u",
        "extensions": {"x": 1},
    }
    assert made["data"]["entries"][0]["extensions"]["agnai"] == entry
    assert as_v3(made) == made


def test_translated_agnai_book_survives_conversion_to_a_world_file_and_back():
    book = a_memory_book(a_memory(keywords=["t*"]), a_memory(priority=9, probability=5))
    assert as_v3(as_world(book)) == as_v3(book)
    priorities = [entry.priority for entry in read_book(as_world(book)).entries]
    assert priorities == [3, 9]


@pytest.mark.parametrize(
    ("book", "message"),
    [
        ({"kind": "memory"}, "book.entries: must be a list"),
        ({"kind": "memory", "entries": {}}, "book.entries: must be a list"),
        (a_memory_book(*[{}] * (MAX_ENTRIES + 1)), "book: has more than 100000 entries; split"),
    ],
)
def test_broken_agnai_book_is_refused_with_the_path_in_the_file(book, message):
    with pytest.raises(FormatError) as caught:
        as_v3(book)
    assert caught.value.message.startswith(message)
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("book", "notice"),
    [
        (a_memory_book(7), "entry 0: is never active: must be an object"),
        (a_memory_book(a_memory(["x"])), "entry 0: is never active: content must be text"),
        (a_memory_book(a_memory(keywords={})), "entry 0: keywords must be a list of texts"),
        (a_memory_book(a_memory(weight=[])), "entry 0: weight must be a number: it is ignored"),
        (a_memory_book(a_memory(), scanDepth=-1), "scanDepth must be 0 or more: it is ignored"),
    ],
)
def test_unreadable_settings_of_an_agnai_book_give_notices_and_are_kept(book, notice):
    assert notice in " | ".join(read_book(book).notices)
    kept = as_v3(book)["data"]["entries"]
    assert [one["extensions"]["agnai"] if isinstance(one, dict) else one for one in kept] == book[
        "entries"
    ]


# The first generated text makes Hypothesis build its table of characters, which takes a second.
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
FIELDS = st.sampled_from(
    [
        *a_memory(),
        *("constant", "secondaryKeys", "selective", "selectiveLogic", "position", "id"),
        *("probability", "useProbability", "excludeRecursion", "comment"),
    ]
)


@UNHURRIED
@given(
    st.dictionaries(FIELDS, JSON, max_size=6),
    st.lists(st.text("a*?/\\ [", max_size=8), max_size=4),
)
def test_any_agnai_book_is_translated_or_refused_in_one_line(fields, keywords):
    book = a_memory_book({"entry": "Lore.", "keywords": keywords} | fields)
    try:
        made = as_v3(book)
    except FormatError as error:
        assert "\n" not in error.message
    else:
        assert made["data"]["entries"][0]["extensions"]["agnai"] == book["entries"][0]
        assert as_v3(as_world(book)) == made


@UNHURRIED
@given(st.lists(st.text(max_size=8), max_size=4), st.text(max_size=20))
def test_every_agnai_keyword_becomes_a_valid_key(keywords, line):
    book = as_v3(a_memory_book(a_memory(keywords=[*keywords, "x*"])))
    result = awake(read_book(book), scan=a_scan(event=line))
    assert all("is no regular expression" not in verdict.reason for verdict in result.verdicts)


def test_ten_thousand_agnai_entries_are_translated_in_under_two_seconds():
    book = a_memory_book(*[a_memory(keywords=[f"key{n}*", "*"]) for n in range(10_000)])
    with little_work():
        assert len(translate_book(book, limit_entries=MAX_ENTRIES).book["entries"]) == 10_000
