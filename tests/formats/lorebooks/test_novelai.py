"""NovelAI's lorebooks: translated fields, notices, and kept members."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.foreign.documents import MAX_ENTRIES
from evennia_ai.formats.lorebooks.books import read_book
from evennia_ai.formats.lorebooks.conversion import as_v3, as_world
from evennia_ai.formats.lorebooks.other_programs import translate_book
from tests.effort import little_work
from tests.engine.lorebook.builders import a_scan, awake, texts
from tests.formats.lorebooks.test_books import JSON


def a_novel_entry(text="The ferry sails at dusk.", **fields):
    """Return a lore entry as NovelAI writes it."""
    config = {"prefix": "", "suffix": "\n", "tokenBudget": 2048, "reservedTokens": 0}
    return {
        "text": text,
        "contextConfig": {**config, "budgetPriority": 400, "insertionPosition": -1},
        "displayName": "the ferry",
        "id": "5f-1",
        "keys": ["ferry"],
        "searchRange": 1000,
        "enabled": True,
        "forceActivation": False,
        "keyRelative": False,
        "nonStoryActivatable": False,
        "category": "",
        "loreBiasGroups": [],
        **fields,
    }


def a_novel_book(*entries, **more):
    settings = {"orderByKeyLocations": False}
    return {
        "lorebookVersion": 5,
        "entries": list(entries),
        "settings": settings,
        "categories": [],
    } | more


def read(**fields):
    [entry] = read_book(as_v3(a_novel_book(a_novel_entry(**fields)))).entries
    return entry


def doubts(**fields):
    found = translate_book(a_novel_book(a_novel_entry(**fields)), limit_entries=9)
    return found.doubts.get(0, ())


def test_translated_novelai_entry_has_the_same_settings_in_v3():
    entry = read(contextConfig={"budgetPriority": 250})
    assert (entry.uid, entry.name, entry.keys) == ("5f-1", "the ferry", ("ferry",))
    assert entry.template.source == "The ferry sails at dusk."
    assert (entry.order, entry.priority) == (250, 250)
    assert (entry.enabled, entry.constant, entry.patterns) == (True, False, "none")
    assert (entry.match_whole_words, entry.case_sensitive) == (True, False)
    assert (entry.position, entry.depth, entry.scan_depth) == ("after", None, None)


def test_missing_settings_of_a_novelai_entry_get_novelais_defaults():
    book = a_novel_book({"text": "Lore.", "contextConfig": None, "keys": None})
    [entry] = read_book(as_v3(book)).entries
    assert (entry.uid, entry.name, entry.keys) == ("0", "", ())
    assert (entry.order, entry.priority, entry.enabled) == (400, 400, True)


def test_always_active_novelai_entry_is_constant_even_with_regex_keys():
    assert read(forceActivation=True).constant
    assert read(forceActivation=True, keys=["/a/"]).constant


def test_novelai_key_is_a_whole_word_in_any_case_or_a_regex_by_its_form():
    entry = a_novel_entry(keys=["ferry", "/sh?ips?/i"])
    book = read_book(as_v3(a_novel_book(entry)))
    assert book.entries[0].patterns == "by_form"
    for line in ("the FERRY!", "two Ships"):
        assert texts(awake(book, scan=a_scan(event=line))) == ["The ferry sails at dusk."]
    assert texts(awake(book, scan=a_scan(event="a ferryman"))) == []


def test_use_regex_is_set_when_all_novelai_keys_are_regexes():
    def use_regex(*keys):
        return as_v3(a_novel_book(a_novel_entry(keys=list(keys))))["data"]["entries"][0][
            "use_regex"
        ]

    assert [use_regex("/a/", "/b/i"), use_regex("/a/", "b"), use_regex()] == [True, False, False]


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"searchRange": 500}, "searchRange 500 counts characters"),
        ({"keyRelative": True}, "keyRelative is not supported"),
        ({"advancedConditions": [{"type": "x"}]}, "advancedConditions are not supported"),
        ({"contextConfig": {"prefix": "Note: "}}, "prefix and suffix of contextConfig are not"),
        ({"keys": ["ferry & dusk"]}, "a key with '&' is a single phrase here"),
    ],
)
def test_unsupported_settings_of_novelai_are_reported(fields, told):
    [doubt] = doubts(**fields)
    assert doubt.startswith(told)


def test_novelai_entry_with_usual_settings_has_no_notices():
    assert doubts() == ()


def test_disabled_novelai_category_disables_its_entries():
    book = a_novel_book(
        a_novel_entry(category="sea"),
        a_novel_entry(category="land"),
        categories=[
            {"id": "sea", "name": "The sea", "enabled": False, "categoryDefaults": {}},
            {"id": "land", "name": "The land", "enabled": True},
        ],
    )
    assert [entry.enabled for entry in read_book(as_v3(book)).entries] == [False, True]
    told = translate_book(book, limit_entries=9).notices
    assert told == ("category 'The sea' is switched off, and its entries with it",)


def test_whole_novelai_entry_and_the_books_other_members_are_kept():
    entry = a_novel_entry(strange=[1, None])
    made = as_v3(a_novel_book(entry, more={"x": 1}), name="Harbour")
    assert (made["spec"], made["data"]["name"]) == ("lorebook_v3", "Harbour")
    kept = made["data"]["extensions"]["novelai"]
    assert kept == {
        "lorebookVersion": 5,
        "settings": {"orderByKeyLocations": False},
        "categories": [],
        "more": {"x": 1},
    }
    assert made["data"]["entries"][0]["extensions"]["novelai"] == entry
    assert as_v3(made) == made


def test_translated_novelai_book_survives_conversion_to_a_world_file_and_back():
    book = a_novel_book(a_novel_entry(keys=["/a/", "b"]), a_novel_entry(enabled=False))
    assert as_v3(as_world(book)) == as_v3(book)
    worlds = as_world(book)["entries"].values()
    assert [(each["key"], each["disable"]) for each in worlds] == [
        (["/a/", "b"], False),
        (["ferry"], True),
    ]


@pytest.mark.parametrize(
    ("book", "message"),
    [
        (a_novel_book(*[{}] * (MAX_ENTRIES + 1)), "book: has more than 100000 entries; split"),
        (a_novel_book(a_novel_entry("\ud800")), "book: a text has half a character"),
    ],
)
def test_broken_novelai_book_is_refused_with_the_path_in_the_file(book, message):
    with pytest.raises(FormatError) as caught:
        as_v3(book)
    assert caught.value.message.startswith(message)
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("book", "notice"),
    [
        (a_novel_book("no entry"), "entry 0: is never active: must be an object"),
        (a_novel_book(a_novel_entry(7)), "entry 5f-1: is never active: content must be text"),
        (
            a_novel_book(a_novel_entry("x" * 200_001)),
            "entry 5f-1: is never active: content must have at most",
        ),
        (a_novel_book(a_novel_entry(keys={})), "entry 5f-1: keys must be a list of texts"),
        (
            a_novel_book(a_novel_entry(contextConfig={"budgetPriority": "high"})),
            "entry 5f-1: contextConfig.budgetPriority must be a number: it is ignored",
        ),
        (a_novel_book(a_novel_entry(enabled="on")), "entry 5f-1: enabled must be true or false"),
        (a_novel_book(a_novel_entry(), categories={}), "categories must be a list: it is ignored"),
    ],
)
def test_unreadable_settings_of_a_novelai_book_give_notices(book, notice):
    assert [told[: len(notice)] for told in read_book(book).notices] == [notice]


def test_book_of_another_structure_is_not_read_as_novelais():
    assert translate_book({"lorebookVersion": 5, "entries": {}}, limit_entries=9) is None
    framed = {"spec": "lorebook_v3", "lorebookVersion": 5, "entries": []}
    assert translate_book(framed, limit_entries=9) is None


# The first generated text makes Hypothesis build its table of characters, which takes a second.
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
FIELDS = st.sampled_from([*a_novel_entry(), "advancedConditions"])


@UNHURRIED
@given(st.dictionaries(FIELDS, JSON, max_size=6), st.none() | st.lists(JSON, max_size=2))
def test_any_novelai_book_is_translated_or_refused_in_one_line(fields, categories):
    book = a_novel_book({"text": "Lore."} | fields, categories=categories)
    try:
        made = as_v3(book)
    except FormatError as error:
        assert "\n" not in error.message
    else:
        assert made["data"]["entries"][0]["extensions"]["novelai"] == book["entries"][0]
        assert as_v3(as_world(book)) == made


def test_ten_thousand_novelai_entries_are_translated_in_under_two_seconds():
    book = a_novel_book(*[a_novel_entry(keys=[f"key{n}", "/a/"], id=n) for n in range(10_000)])
    with little_work():
        found = translate_book(book, limit_entries=MAX_ENTRIES)
        assert len(found.book["entries"]) == 10_000
