"""Exports of cards lose nothing, change only what they must, and can be read again."""

import io
import json
import zipfile
from dataclasses import fields as fields_of_class
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.lorebook.entry import LoreEntry
from evennia_ai.formats.cards.card import Asset, Card, read_card
from evennia_ai.formats.cards.components import character_book
from evennia_ai.formats.cards.exporting import FORMS, NOTICE, card_as_v3, dump_card, export_losses
from evennia_ai.formats.cards.loading import load_card
from evennia_ai.formats.cards.portrait import draw_portrait
from tests.conformance.card_cases import CASES
from tests.formats.cards.builders import card_data, lore
from tests.formats.cards.carriers import (
    SIGNATURE,
    a_picture,
    an_archive,
    an_asset,
    as_json,
    card_in_chunk,
    packed,
    part,
    picture,
    text,
)

ROOT = Path(__file__).parents[3]
NOW = 1_800_000_000
V2 = {**card_data(), "spec": "chara_card_v2", "spec_version": "2.0"}
V1 = {"name": "Marta", "description": "Keeps the lamp.", "avatar": "none", "fav": True}
JPEG = b"\xff\xd8\xff\xe0 pixels \xff\xd9"
PICTURE_ADDRESS = "embeded://assets/icon/images/main.png"
CARRIERS = {"json": as_json, "png": a_picture, "charx": an_archive}
IN_USE = {
    "tail": 1,
    "spec": "chara_card_v3",
    "data": {
        "zz": [1.5, None, True, 10**15, "\u0338\U0001f409\x7f"],
        **card_data(creation_date=1_700_000_000, source=["id:77"])["data"],
        "character_book": {
            "unknown": 0,
            "extensions": {"app": []},
            "entries": [lore("@@depth 2\n@@app_thing\n\nText.", priority=0, custom=[{}], id="7")],
        },
    },
    "spec_version": "3.0",
}


def _files(*folders: Path) -> list[Path]:
    return [path for folder in folders for path in sorted(folder.glob("*.json"))]


def _cards() -> list[Any]:
    """Return all demo cards, all cards of the conformance cases, and a few more."""
    demo = _files(ROOT / "world" / "demo" / "cards")
    named = [(path.stem, json.loads(path.read_bytes())) for path in demo]
    given = [(name, case["input"].get("card")) for name, case in CASES.items()]
    named += [(name, card) for name, card in given if _is_readable(card)]
    named += [("in use", IN_USE), ("v2", V2), ("v1", V1)]
    return [pytest.param(card, id=name) for name, card in named]


def _is_readable(card: Any) -> bool:
    try:
        card_as_v3(read_card(card), modified_at=NOW)
    except FormatError:
        return False
    return True


def dated(card: dict[str, Any]) -> dict[str, Any]:
    return {**card, "data": {**card["data"], "modification_date": NOW}}


def dumped(content: bytes, form: Any, **options: Any) -> bytes:
    return dump_card(load_card(content), form, modified_at=NOW, **options)


def archive(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as found:
        return {name: found.read(name) for name in found.namelist()}


def without_assets(card: Any) -> Any:
    """Return the JSON of a card without `assets`, in which an archive lists its picture."""
    return {**card, "data": {**card["data"], "assets": None}}


def in_a_picture(assets: tuple[Asset, ...]) -> tuple[Asset, ...]:
    """Return the assets of an archive's card as they are when it is exported as a picture."""
    return tuple(
        replace(asset, uri="ccdefault:") if asset.uri == PICTURE_ADDRESS else asset
        for asset in assets
    )


def test_there_are_enough_cards_for_the_round_trip_tests() -> None:
    assert len(_cards()) > 60


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("card", _cards())
def test_card_is_unchanged_after_any_chain_of_export_formats(card, carrier):
    found = load_card(CARRIERS[carrier](card))
    wanted = card_as_v3(found.card, modified_at=NOW)
    for form in FORMS:
        content = dump_card(found, form, modified_at=NOW)
        again = load_card(content)
        assert (again.carrier, without_assets(again.raw)) == (form, without_assets(wanted))
        assert in_a_picture(again.card.assets) == found.card.assets
        assert dump_card(again, form, modified_at=NOW) == content


@pytest.mark.parametrize("first", FORMS)
@pytest.mark.parametrize("second", FORMS)
def test_faultless_card_is_exported_with_every_value_in_the_same_order(first, second):
    content = dumped(dumped(as_json(IN_USE), first), second)
    found = load_card(content)
    assert json.dumps(found.raw) == json.dumps(dated(IN_USE))
    assert found.notices == ()


def test_exported_json_is_strict_utf_8():
    content = dumped(as_json(IN_USE), "json")
    assert "\U0001f409".encode() in content
    assert json.loads(content) == dated(IN_USE)


@pytest.mark.long
def test_large_card_is_exported_without_indentation_within_the_size_limit():
    card = card_data(extensions={"x": [[0]] * 300_000})
    content = dumped(as_json(card), "json")
    assert b"\n" not in content
    assert load_card(content).raw == dated(card)


def test_export_of_an_older_card_has_the_fields_that_v3_requires():
    book = {"entries": [{"keys": ["coin"], "content": "A coin.", "insertion_order": 5}]}
    v2 = {**V2, "data": {"name": "Marta", "description": None, "character_book": book}}
    made = json.loads(dumped(as_json(v2), "json"))
    assert (made["spec"], made["spec_version"]) == ("chara_card_v3", "3.0")
    assert set(card_data()["data"]) <= set(made["data"])
    assert made["data"]["group_only_greetings"] == []
    assert made["data"]["description"] == ""
    [entry] = made["data"]["character_book"]["entries"]
    assert entry == {
        "keys": ["coin"],
        "content": "A coin.",
        "insertion_order": 5,
        "extensions": {},
        "enabled": True,
        "use_regex": False,
    }


def test_v1_card_keeps_unknown_members():
    made = json.loads(dumped(as_json(V1), "json"))
    assert (made["data"]["avatar"], made["data"]["fav"]) == ("none", True)
    assert set(made) == {"spec", "spec_version", "data"}


def test_exported_values_are_converted_to_the_types_of_the_standard():
    entry = {"keys": ["a"], "content": "x", "enabled": 1, "insertion_order": "5", "constant": 0}
    entry |= {"secondary_keys": "b, c", "extensions": None, "case_sensitive": None}
    card = card_data(character_version=2, nickname=None, character_book={"entries": [entry]})
    made = json.loads(dumped(as_json({**card, "spec_version": 3.0}), "json"))
    assert (made["spec_version"], made["data"]["character_version"]) == ("3.0", "2")
    assert "nickname" not in made["data"]
    [entry] = made["data"]["character_book"]["entries"]
    assert (entry["enabled"], entry["insertion_order"], entry["constant"]) == (True, 5, False)
    assert (entry["secondary_keys"], entry["extensions"]) == (["b", "c"], {})


def test_sillytavern_entry_without_use_regex_keeps_its_regex_keys():
    entry = {"keys": ["/co+in/"], "content": "x", "extensions": {"position": 0}}
    made = json.loads(dumped(as_json(card_data(character_book={"entries": [entry]})), "json"))
    assert made["data"]["character_book"]["entries"][0]["use_regex"] is True


def test_book_of_named_entries_becomes_a_list():
    plain = {"keys": ["a"], "content": "x"}
    for entries, ids in (
        ({"10": plain, "2": {**plain, "id": None}, "b": {**plain, "id": 4}}, [2, 10, 4]),
        ({"9" * 5000: plain, "01": plain, "-1": plain}, ["9" * 5000, "01", "-1"]),
        ({"1": {"key": ["a"], "content": "x", "uid": 1}}, [1]),
    ):
        card = card_data(character_book={"entries": entries})
        made = json.loads(dumped(as_json(card), "json"))["data"]["character_book"]["entries"]
        assert [entry["id"] for entry in made] == ids
        assert [entry["keys"] for entry in made] == [["a"]] * len(ids)


@pytest.mark.parametrize(
    ("written", "exported"),
    [
        ({"position": 1}, {"position": "after_char"}),
        ({"position": 0}, {"position": "before_char"}),
        ({"position": 7}, {"position": 7}),
        ({"keys": "a, b"}, {"keys": ["a", "b"]}),
        ({"keys": [None, "a"]}, {"keys": [None, "a"]}),
        ({"keys": None}, {"keys": []}),
        ({"enabled": "false"}, {"enabled": False}),
        ({"enabled": "never"}, {"enabled": "never"}),
        ({"selective": True}, {"selective": True}),
        ({"selective": "false"}, {"selective": False}),
        ({"constant": True, "use_regex": True}, {"constant": True, "use_regex": True}),
        ({"constant": 1}, {"constant": True}),
        ({"case_sensitive": None}, {"case_sensitive": None}),
        ({"insertion_order": "7"}, {"insertion_order": 7}),
        ({"content": None}, {"content": ""}),
        ({"content": {"a": 1}}, {"content": {"a": 1}}),
        ({"comment": []}, {"comment": []}),
        ({"extensions": []}, {"extensions": []}),
    ],
)
def test_entry_is_exported_as_v3_and_unreadable_members_unchanged(written, exported):
    entry = {"keys": ["a"], "content": "x", **written}
    card = card_data(character_book={"entries": [entry, None]})
    made = json.loads(dumped(as_json(card), "json"))["data"]["character_book"]["entries"]
    assert {name: made[0][name] for name in exported} == exported
    assert made[1] is None


def test_export_changes_only_edited_members():
    card = replace(
        read_card(IN_USE),
        description="New.",
        tags=("sea", "lamp"),
        assets=(Asset(type="icon", uri="ccdefault:", name="main", ext="webp"),),
    )
    made = json.loads(dump_card(card, "json", modified_at=NOW))
    wanted = dated(IN_USE)
    wanted["data"] |= {
        "description": "New.",
        "tags": ["sea", "lamp"],
        "assets": [an_asset("ccdefault:", ext="webp")],
    }
    assert made == wanted


def test_edit_of_a_v1_card_is_exported():
    card = replace(read_card(V1), description="New.")
    assert json.loads(dump_card(card, "json", modified_at=NOW))["data"]["description"] == "New."


def test_card_that_was_made_without_a_file_is_exported_with_all_its_fields():
    card = Card(name="Tilda", description="Lamps.", alternate_greetings=("Hey.",))
    found = load_card(dump_card(card, "png", modified_at=NOW))
    assert replace(found.card, source={}) == card
    assert found.raw["data"]["tags"] == []


def test_creation_date_is_set_once_and_never_changed():
    made = dump_card(Card(name="Tilda"), "json", modified_at=NOW)
    assert json.loads(made)["data"]["creation_date"] == NOW
    later = json.loads(dump_card(load_card(made), "json", modified_at=NOW + 9))["data"]
    assert (later["creation_date"], later["modification_date"]) == (NOW, NOW + 9)
    assert "creation_date" not in json.loads(dumped(as_json(V2), "json"))["data"]


def test_edit_with_a_value_that_no_card_can_have_is_refused():
    with pytest.raises(FormatError, match=r"card.data.description: must have at most"):
        dump_card(replace(read_card(IN_USE), description="x" * 200_001), "json", modified_at=NOW)


def test_exported_picture_keeps_its_other_chunks_and_loses_its_old_cards():
    others = part(b"gAMA", b"\0\0\0\1"), text("Software", b"x"), part(b"tEXt", b"no keyword")
    stale = text("chara", as_json(V2)), packed("CCV3", b"{}"), text("Chara", b"x")
    content = picture(others[0], stale[0], text("ccv3", as_json(IN_USE)), behind=others[1:])
    made = dumped(content, "png")
    assert made.count(b"ccv3\0") == 1
    assert b"chara\0" not in made.lower()
    assert made.startswith(content[:33])
    for chunk in others:
        assert chunk in made
    with_stale = dump_card(
        load_card(content), "png", picture=picture(*stale), modified_at=NOW, with_v2=False
    )
    assert with_stale.lower().count(b"chara\0") == 0


def test_given_picture_replaces_the_cards_picture_and_any_card_inside_is_removed():
    given = picture(
        part(b"gAMA", b"\0\0\0\2"), text("ccv3", b"{}"), text("chara-ext-asset_:0", b"")
    )
    made = dumped(a_picture(IN_USE), "png", picture=given)
    assert part(b"gAMA", b"\0\0\0\2") in made
    assert b"asset_" not in made
    assert load_card(made).raw == dated(IN_USE)


def test_given_picture_that_is_no_png_is_refused():
    with pytest.raises(FormatError, match="card: not a PNG picture"):
        dumped(as_json(IN_USE), "png", picture=b"GIF89a")


def test_card_without_a_picture_gets_a_portrait_with_its_initials():
    made = dumped(as_json(IN_USE), "png")
    assert made.startswith(draw_portrait(IN_USE["data"]["name"])[:33])
    assert load_card(made).carrier == "png"
    assert list(archive(dumped(made, "charx"))) == ["card.json"]


def test_exported_picture_is_complete_when_the_imported_one_was_truncated():
    made = dumped(a_picture(IN_USE)[:-12], "png")
    assert made.endswith(b"IEND\xaeB`\x82")
    assert load_card(made).notices == ()


def test_v2_copy_has_a_note_that_names_it_a_copy_and_no_decorators():
    made = dumped(as_json(IN_USE), "png", with_v2=True)
    copy = card_in_chunk(made, "chara")
    assert (copy["spec"], copy["spec_version"]) == ("chara_card_v2", "2.0")
    assert copy["data"]["creator_notes"] == NOTICE
    assert copy["data"]["zz"] == IN_USE["data"]["zz"]
    [entry] = copy["data"]["character_book"]["entries"]
    assert entry["content"] == "Text."
    assert "use_regex" not in entry
    assert not {"source", "creation_date", "group_only_greetings"} & set(copy["data"])
    assert card_in_chunk(made, "ccv3") == dated(IN_USE)
    assert load_card(made).notices == ()


def test_v2_copy_keeps_the_creators_notes_and_is_rebuilt_at_each_export():
    content = as_json(card_data(creator_notes="Mine."))
    made = dumped(dumped(content, "png", with_v2=True), "png", with_v2=True)
    assert card_in_chunk(made, "chara")["data"]["creator_notes"] == f"{NOTICE}\n\nMine."
    assert card_in_chunk(made, "ccv3")["data"]["creator_notes"] == "Mine."
    assert b"chara" not in dumped(made, "png")


@pytest.mark.parametrize("form", ["json", "charx"])
def test_v2_copy_is_refused_in_exports_other_than_pictures(form):
    with pytest.raises(FormatError, match="only PNG files can hold a V2 copy, not "):
        dumped(as_json(IN_USE), form, with_v2=True)


def test_exported_archive_keeps_its_files_and_addresses():
    members = {
        "assets/icon/images/main.png": picture(),
        "module.risum": b"\0",
        "x_meta/0.json": b"{}",
    }
    assets = [
        an_asset("embeded://assets/icon/images/main.png"),
        an_asset("embeded://gone", name="x"),
    ]
    found = load_card(an_archive(card_data(assets=assets), members))
    made = archive(dump_card(found, "charx", modified_at=NOW))
    assert json.loads(made.pop("card.json"))["data"]["assets"] == assets
    assert made == members
    again = load_card(dump_card(found, "charx", modified_at=NOW))
    assert (again.assets, again.members, again.picture) == (
        *(found.assets, found.members, found.picture),
    )
    assert export_losses(found, "charx") == ()


def test_archive_members_get_ascii_names_and_assets_their_addresses():
    assets = [an_asset("embeded://b\u00e4r/\u7ea2.png"), an_asset("embeded://a.png", name="b")]
    members = {"b\u00e4r/\u7ea2.png": b"red", "a.png": b"a", "b\u00e4r/\u9f8d.png": b"dragon"}
    made = dumped(an_archive(card_data(assets=assets), members), "charx")
    assert all(name.isascii() for name in archive(made))
    found = load_card(made)
    assert [asset.content for asset in found.assets] == [b"red", b"a"]
    assert {member.content for member in found.members} == {b"red", b"a", b"dragon"}
    assert found.assets[1].asset.uri == "embeded://a.png"


def test_assets_of_a_picture_get_files_and_addresses_in_an_exported_archive():
    assets = [
        an_asset("__asset:0", type="emotion", name="S\u00e4d/..", ext=".PNG"),
        an_asset("__asset:1", type="emotion", name="S\u00fcd/..", ext="png"),
        an_asset("__asset:gone", type="x_other", name="gone", ext="bin"),
        an_asset("ccdefault:"),
    ]
    chunks = text("chara-ext-asset_:0", b"zero"), text("chara-ext-asset_1", b"one")
    content = a_picture(card_data(assets=assets), *chunks)
    made = dumped(content, "charx")
    found = load_card(made)
    assert [asset.asset.uri for asset in found.assets] == [
        "embeded://assets/emotion/images/S_d.png",
        "embeded://assets/emotion/images/S_d-2.png",
        "__asset:gone",
        PICTURE_ADDRESS,
    ]
    assert [asset.content for asset in found.assets] == [b"zero", b"one", None, picture()]
    assert found.picture == picture()
    assert load_card(dumped(content, "png")).assets == load_card(content).assets


def test_picture_is_unchanged_after_an_export_to_an_archive_and_back():
    content = a_picture(IN_USE, part(b"acTL", b"\0" * 8))
    made = dumped(content, "charx")
    assert list(archive(made)) == ["card.json", "assets/icon/images/main.png"]
    back = dumped(made, "png")
    assert without_assets(load_card(back).raw) == without_assets(
        load_card(content).raw | dated(IN_USE)
    )
    assert load_card(dumped(an_archive(IN_USE, before=JPEG), "charx")).picture == JPEG


def test_main_icon_of_an_archive_becomes_the_picture_when_exported_as_png():
    icon = picture(part(b"gAMA", b"\0\0\0\3"))
    assets = [an_asset("embeded://i.png")]
    made = dumped(an_archive(card_data(assets=assets), {"i.png": icon}), "png")
    assert part(b"gAMA", b"\0\0\0\3") in made


def test_export_losses_are_listed_for_each_file_format():
    sad = an_asset("embeded://s.png", type="emotion", name="sad")
    assets = [an_asset("embeded://i.png"), an_asset("data:,x", name="d"), sad]
    members = {"i.png": picture(), "s.png": b"sad", "module.risum": b"\0"}
    archived = load_card(an_archive(card_data(assets=assets), members))
    assert export_losses(archived, "png") == (
        "asset sad (emotion) is left out: a file of the form png cannot hold it",
        "other files of the archive (1) are left out: a file of the form png cannot hold it",
    )
    pictured = load_card(a_picture(IN_USE))
    assert export_losses(pictured, "json") == (
        "the picture is left out: a file of the form json cannot hold it",
    )
    assert export_losses(pictured, "png") == export_losses(pictured, "charx") == ()
    assert export_losses(load_card(dumped(as_json(IN_USE), "png")), "json") == ()
    jpeg = load_card(an_archive(IN_USE, before=JPEG))
    assert export_losses(jpeg, "png") == (
        "the picture is left out: a file of the form png cannot hold it",
    )
    assert export_losses(jpeg, "png", picture=SIGNATURE) == ()


def test_highly_compressible_member_is_stored_uncompressed():
    found = load_card(an_archive(IN_USE, {"even.bin": bytes(900_000)}))
    content = dump_card(found, "charx", modified_at=NOW)
    assert len(content) > 900_000
    assert load_card(content).members == found.members


VALUE = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-9, 9) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
ENTRY_MEMBERS = (
    *("keys", "key", "content", "extensions", "enabled", "insertion_order", "use_regex", "uid"),
    *("constant", "selective", "secondary_keys", "case_sensitive", "id", "priority", "disable"),
)
SOUND = {"keys": ["a"], "content": "@@depth 1\nx", "enabled": 0, "insertion_order": "7"}
ENTRY = st.dictionaries(st.sampled_from(ENTRY_MEMBERS), VALUE, max_size=3).map(
    lambda more: {**SOUND, **more}
)
NAME = st.text("ab012-\u00e9 ", max_size=3)
BOOK = st.fixed_dictionaries(
    {"entries": st.lists(ENTRY, max_size=3) | st.dictionaries(NAME, ENTRY, max_size=3)},
    optional={"extensions": VALUE, "name": VALUE, "unknown": VALUE},
)
FIELDS = ("description", "tags", "extensions", "assets", "nickname", "character_version", "source")


FAULTLESS_ENTRY = st.fixed_dictionaries(
    {
        "keys": st.lists(st.text(max_size=4), max_size=2),
        "content": st.text("@depth 1\nx", max_size=12),
        "extensions": st.dictionaries(st.text(max_size=4), VALUE, max_size=2),
        "enabled": st.booleans(),
        "insertion_order": st.integers(-9, 9) | st.floats(-9, 9),
        "use_regex": st.booleans(),
    },
    optional={
        **dict.fromkeys(("constant", "selective", "case_sensitive"), st.booleans()),
        **dict.fromkeys(("name", "comment"), st.text(max_size=4)),
        "secondary_keys": st.lists(st.text(max_size=4), max_size=2),
        "priority": st.integers(-9, 9),
        "id": st.integers(0, 9) | st.text(max_size=4),
        "position": st.sampled_from(["before_char", "after_char"]),
        "unknown": VALUE,
    },
)


@given(entries=st.lists(FAULTLESS_ENTRY, max_size=3), edited=st.booleans())
def test_faultless_lore_entry_is_exported_unchanged(
    entries: list[dict[str, Any]], edited: bool
) -> None:
    card = read_card(card_data(character_book={"extensions": {}, "entries": entries}))
    if edited:
        card = replace(card, personality="Dry.")
    assert card_as_v3(card, modified_at=NOW)["data"]["character_book"]["entries"] == entries


@pytest.mark.parametrize("assets", [False, 7, "x", {"type": "icon"}, None, [{"uri": []}, 3]])
def test_assets_that_are_no_list_are_exported_unchanged(assets: Any) -> None:
    raw = {"spec": "chara_card_v3", "spec_version": "3.0", "data": card_data(assets=assets)["data"]}
    found = load_card(as_json(raw))
    for form in FORMS:
        first = load_card(dump_card(found, form, modified_at=NOW))
        again = load_card(dump_card(first, form, modified_at=NOW))
        assert again.card == first.card
        if not isinstance(assets, list | None):
            assert again.card.source["data"]["assets"] == assets


@example(book={"entries": {"": {**SOUND, "uid": 0}}}, fields={}, spec="chara_card_v3")
@given(
    book=BOOK | st.none(),
    fields=st.dictionaries(st.sampled_from(FIELDS), VALUE, max_size=3),
    spec=st.sampled_from(["chara_card_v3", "chara_card_v2", None]),
)
def test_any_card_is_exported_as_the_same_card_or_refused(book, fields, spec):
    data = card_data(**fields, character_book=book)["data"]
    raw = {"spec": spec, "spec_version": "x", "data": data} if spec else data
    try:
        found = load_card(as_json(raw))
        made = [dump_card(found, form, modified_at=NOW) for form in FORMS]
    except FormatError:
        return
    wanted = card_as_v3(found.card, modified_at=NOW)
    assert [load_card(content).raw for content in made] == [wanted] * len(FORMS)
    assert card_as_v3(load_card(made[0]).card, modified_at=NOW) == wanted
    assert card_in_chunk(dump_card(found, "png", with_v2=True, modified_at=NOW), "chara")
    again = load_card(made[0]).card
    books = [character_book(card) for card in (found.card, again)]
    then, now = (
        [_effective_values(entry) for entry in book.entries] if book else [] for book in books
    )
    assert now == then


def _effective_values(entry: LoreEntry) -> dict[str, Any]:
    """Return all values of a lore entry that have an effect on the prompt."""
    told = {field.name: getattr(entry, field.name) for field in fields_of_class(entry)}
    return {**told, "template": entry.template.source}
