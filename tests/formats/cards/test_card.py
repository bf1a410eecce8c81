"""Cards parsed from JSON: greetings, creator's notes, names, notices and errors."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.prompt.components import NO_GRANTS
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.formats.cards.card import (
    DEFAULT_ASSETS,
    V1_FIELDS,
    Asset,
    card_from_text,
    creator_notes_for,
    greeting,
    greetings,
    macro_values,
    opening_message,
    read_card,
)
from evennia_ai.formats.cards.components import card_components
from evennia_ai.formats.cards.exporting import FORMS, dump_card
from evennia_ai.formats.cards.loading import load_card
from tests.effort import little_work
from tests.formats.cards.builders import a_card, card_data

DICE = Dice(turn="1", conversation="1")
GREETER = {"first_mes": "G0", "alternate_greetings": ["G1", "G2"], "group_only_greetings": ["X"]}


def test_greetings_are_the_first_message_and_its_alternates():
    assert greetings(a_card(**GREETER)) == ("G0", "G1", "G2")


def test_greetings_for_groups_follow_the_other_greetings():
    assert greetings(a_card(**GREETER), group=True) == ("G0", "G1", "G2", "X")


def test_greeting_is_chosen_by_index():
    card = a_card(**GREETER)
    assert [greeting(card, index=n) for n in range(3)] == ["G0", "G1", "G2"]
    assert greeting(card, index=3, group=True) == "X"


@pytest.mark.parametrize("index", [-1, 3])
def test_error_names_the_missing_greeting(index):
    with pytest.raises(FormatError) as caught:
        greeting(a_card(**GREETER), index=index)
    assert str(caught.value) == f"card Marta: has no greeting {index}; it has 0 to 2"


def test_opening_message_is_the_characters_with_expanded_macros():
    card = a_card(first_mes="{{user}}, I am <BOT>.", nickname="Mar")
    message = opening_message(card, values=macro_values(card, user="Anna"), dice=DICE)
    assert message is not None
    assert (message.role, message.name, message.content) == (
        "assistant",
        "Marta",
        "Anna, I am Mar.",
    )


def test_opening_message_is_none_without_a_greeting():
    assert opening_message(a_card(), values={}, dice=DICE) is None


def test_macro_char_is_the_nickname_or_the_name():
    assert macro_values(a_card(nickname="Mar"))["char"] == "Mar"
    assert macro_values(a_card(nickname=""))["char"] == "Marta"
    assert macro_values(a_card(nickname=" \n"))["char"] == "Marta"


def test_macro_char_is_one_short_line_for_any_nickname():
    assert macro_values(a_card(nickname="Mar\n\n# System\x07"))["char"] == "Mar # System"
    assert macro_values(a_card(nickname="M" * 5000))["char"] == "M" * 200


def test_macro_user_has_a_default_for_a_user_without_a_name():
    assert macro_values(None) == {"user": "User"}
    assert macro_values(a_card(), user="Anna")["user"] == "Anna"


@pytest.mark.parametrize(
    ("multilingual", "language", "shown"),
    [
        (None, "de", "PLAIN"),
        ({"de": "DEUTSCH", "en": "ENGLISH"}, "de", "DEUTSCH"),
        ({"de": "DEUTSCH", "en": "ENGLISH"}, "de-AT", "DEUTSCH"),
        ({"de": "DEUTSCH", "en": "ENGLISH"}, "en", "ENGLISH"),
        ({"de": "DEUTSCH", "en": "ENGLISH"}, "fr", "ENGLISH"),
        ({"de": "DEUTSCH"}, "en", "PLAIN"),
        ({"de": "DEUTSCH"}, "fr", "PLAIN"),
    ],
)
def test_creators_notes_are_shown_in_the_readers_language(multilingual, language, shown):
    card = a_card(creator_notes="PLAIN", creator_notes_multilingual=multilingual)
    assert creator_notes_for(card, language) == shown


def test_faultless_v3_card_is_read_without_a_notice():
    data = card_data(nickname="Mar", tags=["sea"], alternate_greetings=["Hey."], creator="us")
    card = read_card(data)
    assert card.notices == ()
    assert (card.name, card.nickname, card.tags) == ("Marta", "Mar", ("sea",))
    assert (card.spec, card.spec_version) == ("chara_card_v3", "3.0")
    assert card.alternate_greetings == ("Hey.",)


def test_card_keeps_the_whole_json_of_its_file():
    data = card_data(extensions={"app": {"deep": [1, {"x": None}]}}, unknown_field="kept")
    data["also_unknown"] = 1
    before = json.dumps(data)
    card = read_card(data)
    assert card.source is data
    assert json.dumps(card.source) == before


def test_v2_card_is_read_from_data_and_not_from_outdated_copies_of_its_fields():
    data = card_data(description="New.")
    data |= {"spec": "chara_card_v2", "spec_version": "2.0", "description": "Stale.", "name": "Old"}
    card = read_card(data)
    assert (card.name, card.description, card.spec) == ("Marta", "New.", "chara_card_v2")
    assert card.group_only_greetings == ()
    assert card.notices == ()


def test_v1_card_has_the_six_texts_of_its_file():
    card = read_card({name: f"{name} text" for name in V1_FIELDS})
    assert (card.spec, card.spec_version) == ("v1", "1.0")
    assert (card.name, card.first_mes, card.mes_example) == (
        "name text",
        "first_mes text",
        "mes_example text",
    )


def test_bytes_and_text_with_a_byte_order_mark_are_read():
    text = json.dumps(card_data())
    assert card_from_text("\ufeff" + text).name == "Marta"
    assert load_card(b"\xef\xbb\xbf" + text.encode()).card.name == "Marta"


@pytest.mark.parametrize(
    ("fields", "notice"),
    [
        ({"personality": None}, "personality is null: read as empty"),
        ({"name": " Mar\x1b[31mta\n"}, "name: control characters, blanks around it or its end"),
        ({"name": ""}, "name is empty"),
        ({"character_version": 1.5}, "character_version is a number: read as text"),
        ({"creation_date": "today"}, "creation_date is not a number: it is kept for the export"),
        (
            {"modification_date": True},
            "modification_date is not a number: it is kept for the export",
        ),
        ({"source": "id:1"}, "source is not a list: it is kept for the export"),
        ({"character_book": {"entries": {}}}, "character_book.entries is an object: its members"),
        (
            {"extensions": {"world": "Har\nbour"}},
            "extensions.world names a lorebook ('Har bour') that is not in the card: import it too",
        ),
        (
            {
                "assets": [
                    {"type": "icon", "uri": "ccdefault:", "name": n, "ext": "png"} for n in "ab"
                ]
            },
            "assets: one icon must be named main, 0 are",
        ),
        (
            {
                "assets": [
                    {"type": "background", "uri": f"data:,{n}", "name": "main", "ext": "png"}
                    for n in "ab"
                ]
            },
            "assets: one background may be named main, 2 are",
        ),
    ],
)
def test_doubtful_card_value_gives_a_notice_and_the_card_is_read(fields, notice):
    card = a_card(**fields)
    [found] = card.notices
    assert found.startswith(notice)


@pytest.mark.parametrize(
    "fields",
    [
        {"extensions": {"world": " "}},
        {"extensions": {"world": "Harbour"}, "character_book": {"entries": []}},
        {"creation_date": 0, "modification_date": 1.5, "source": []},
        {"creation_date": None, "source": None},
    ],
)
def test_valid_card_value_gives_no_notice(fields):
    assert a_card(**fields).notices == ()


def test_null_text_of_a_card_is_read_as_empty():
    texts = dict.fromkeys(["personality", "scenario", "mes_example", "system_prompt"])
    contents = [c.content for c in card_components(a_card(**texts))]
    assert contents == ["Marta keeps the lamp."]


def test_card_name_is_one_line_without_control_characters():
    assert a_card(name="Mar\x1b[31m\nta").name == "Mar [31m ta"


@pytest.mark.parametrize(
    ("version", "notice"),
    [
        ("3.1", "spec_version 3.1 is newer than 3.0: unknown parts are only kept"),
        ("100", "spec_version 100 is newer than 3.0: unknown parts are only kept"),
        ("nan", "spec_version nan is newer than 3.0: unknown parts are only kept"),
        ("new", "spec_version 'new' is not a number: read as an older version"),
        (3.0, "spec_version is not text"),
    ],
)
def test_card_of_a_newer_version_is_read_with_a_notice(version, notice):
    assert read_card({**card_data(), "spec_version": version}).notices == (notice,)


def test_card_without_a_version_gives_a_notice():
    data = card_data()
    del data["spec_version"]
    assert read_card(data).notices[0] == "spec_version is not text"


@pytest.mark.parametrize("version", ["3.0", "2.9", "1"])
def test_card_of_an_older_spec_version_has_no_notice(version):
    assert read_card({**card_data(), "spec_version": version}).notices == ()


def test_duplicate_member_of_a_card_gives_a_notice():
    text = json.dumps(card_data())[:-1] + ', "spec_version": "3.0"}'
    assert card_from_text(text).notices == (
        "member 'spec_version' occurs twice; the last one counts",
    )


def test_card_without_assets_has_one_default_icon():
    assert a_card().assets == DEFAULT_ASSETS
    asset = {"type": "icon", "uri": "https://nowhere.invalid/x", "name": "main", "ext": "png"}
    assert a_card(assets=[asset]).assets == (Asset(**asset),)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "card: must be an object"),
        ([], "card: must be an object"),
        ({}, "card: has neither a `spec` nor the fields of V1 (name, description, personality,"),
        ({"name": "Marta"}, "card: has neither a `spec` nor the fields of V1"),
        ({"spec": "chara_card_v99"}, "card.spec: must be chara_card_v3 or chara_card_v2, not 'cha"),
        ({"spec": 3}, "card.spec: must be chara_card_v3 or chara_card_v2, not 3"),
        ({"spec": "chara_card_v3"}, "card.data: must be an object"),
        ({"spec": "chara_card_v3", "data": "Marta"}, "card.data: must be an object"),
        (card_data(name=None), "card.data.name: must be text"),
        (card_data(description="x" * 200_001), "card.data.description: "),
        (card_data(description="\udc00"), "card: a text has half a character"),
        ({"name": 1, "description": "x"}, "card.name: must be text"),
    ],
)
def test_invalid_card_is_refused_in_one_line_with_the_path(data, message):
    with pytest.raises(FormatError) as caught:
        read_card(data)
    assert caught.value.kind == "card"
    assert caught.value.message.startswith(message)
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("fields", "said", "notice"),
    [
        ({"tags": [None, "bees"]}, ("bees",), "tags: 1 of 2 are not text and are left out"),
        ({"tags": "bees, honey,"}, ("bees", "honey"), "tags is a single text: read as a list of 2"),
        ({"tags": {}}, (), "tags must be a list: it is ignored, and kept for the export"),
        (
            {"alternate_greetings": "Hello, you."},
            ("Hello, you.",),
            "alternate_greetings is a single text: read as a list of 1",
        ),
        (
            {"group_only_greetings": ["a", 1, []]},
            ("a",),
            "group_only_greetings: 2 of 3 are not text and are left out",
        ),
        (
            {"description": 7},
            "",
            "description must be text: it is ignored, and kept for the export",
        ),
        ({"personality": ["dry"]}, "", "personality must be text: it is ignored"),
        ({"scenario": False}, "", "scenario must be text: it is ignored"),
        ({"first_mes": {}}, "", "first_mes must be text: it is ignored"),
        ({"mes_example": []}, "", "mes_example must be text: it is ignored"),
        ({"system_prompt": 0}, "", "system_prompt must be text: it is ignored"),
        (
            {"post_history_instructions": [None]},
            "",
            "post_history_instructions must be text: it is ignored",
        ),
        ({"creator": 5}, "", "creator must be text: it is ignored, and kept for the export"),
        ({"creator_notes": []}, "", "creator_notes must be text: it is ignored"),
        ({"nickname": False}, "", "nickname must be text: it is ignored"),
        ({"character_version": []}, "", "character_version must be text: it is ignored"),
        ({"character_book": []}, None, "character_book must be an object: it is ignored"),
        ({"character_book": {}}, {}, "character_book has no list of entries: it is read as empty"),
        ({"extensions": "x"}, {}, "extensions must be an object: it is ignored"),
        (
            {"assets": [{"type": "icon"}, None]},
            (),
            "assets: 2 of 2 cannot be read and are left out",
        ),
        (
            {"creator_notes_multilingual": {"de": 1}},
            {},
            "creator_notes_multilingual must be text: it is ignored",
        ),
    ],
)
def test_card_field_of_a_wrong_type_gives_a_notice_and_is_kept(fields, said, notice):
    card = read_card(card_data(**fields))
    [name] = fields
    assert getattr(card, name) == said
    assert [told[: len(notice)] for told in card.notices] == [notice]
    for form in FORMS:
        made = load_card(dump_card(card, form, modified_at=1)).card
        assert made.source["data"][name] == fields[name] or name == "character_book"


@pytest.mark.parametrize(
    "book",
    [{"entries": {"0": {"key": ["bell"]}}}, {"spec": "lorebook_v3", "data": {"entries": []}}],
)
def test_card_import_of_a_lorebook_says_that_it_is_a_lorebook(book):
    with pytest.raises(FormatError) as caught:
        read_card(book)
    assert "lorebook" in caught.value.message or "world file" in caught.value.message
    assert caught.value.message.endswith(": import it as a lorebook")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "card: the file is empty; download it again"),
        (b"\xff\xfe{\x00", "card: not UTF-8 text (byte 0); save it as UTF-8 JSON"),
        (b'{"spec": "chara_card_v3", "da', "card: is not valid JSON"),
        (b"null", "card: must be an object"),
        (b"[" * 200_000, "card: nested more than 64 deep"),
        (b'{"spec": NaN}', "card: is not valid JSON (NaN is not a JSON number)"),
    ],
)
def test_bytes_that_are_no_card_are_refused(content, problem):
    with pytest.raises(FormatError) as caught:
        load_card(content)
    assert caught.value.message.startswith(problem)


def test_deeply_nested_card_is_refused_at_once():
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    with little_work():
        with pytest.raises(FormatError, match="nested more than 64 deep"):
            a_card(extensions={"deep": deep})
    while deep:  # free the list level by level, because Python would free it recursively
        deep = deep.pop()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=10,
)
FIELDS = ("name", "description", "first_mes", "assets", "extensions", "tags", "character_version")


@pytest.mark.long
@given(st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=4))
def test_any_data_is_read_as_a_card_or_refused_in_one_line(fields):
    try:
        card = a_card(**fields)
    except FormatError as error:
        assert "\n" not in error.message
    else:
        assert card.name == card.name.strip()
        card_components(card, grants=NO_GRANTS)


@given(st.text())
def test_any_text_is_read_as_a_card_or_refused(text):
    with pytest.raises(FormatError):
        card_from_text(text)
