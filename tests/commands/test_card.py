"""The command `card`: importing from the one folder, showing, assigning."""

import json

import pytest
from django.test import override_settings

from evennia_ai.store import card_assignments
from evennia_ai.store import cards as store
from tests.commands.stage import on_screen, one_line

OREN = {
    "spec": "chara_card_v3",
    "spec_version": "3.0",
    "data": {
        "name": "Oren Tallow",
        "description": "{{char}} mends nets.",
        "personality": "gruff",
        "first_mes": "Mind the rope.",
        "post_history_instructions": "Stay short.",
        "character_book": {
            "entries": [
                {
                    "keys": ["ferry"],
                    "content": "@@depth 99999\nThe ferry sails at dusk.",
                    "enabled": True,
                    "insertion_order": 1,
                    "extensions": {},
                    "use_regex": False,
                    "comment": "the ferry",
                }
            ]
        },
    },
}
BAD_FILES = {
    "broken.json": (b"{", "JSON"),
    "list.json": (b"[]", "object"),
    "nan.json": (b'{"name": NaN, "description": ""}', "NaN"),
    "empty.json": (b"", "JSON"),
    "latin.json": (b'{"name": "\xe9", "description": ""}', "UTF-8"),
    "other.json": (b'{"spec": "chara_card_v9", "data": {}}', "chara_card_v3"),
    "nameless.json": (b'{"spec": "chara_card_v2", "data": {"name": ""}}', "name"),
    "picture.png": (b"\x89PNG\r\n\x1a\nrest", "not supported yet"),
    "deep.json": (b"[" * 100_000, "deep"),
}

NO_CARD_FILES = (
    "../secret.json",
    "../secret",
    "..",
    ".",
    "cards/oren.json",
    "/etc/passwd",
    "./oren.json",
    "..\\secret.json",
    "oren.json/",
    "link.json",
    "sub",
    "nothing.json",
    "~",
    "*.json",
    "oren.json\x00",
)
BAD_INPUT = {
    "card/assign oren = nobody": "no card",
    "card/assign nobody = Oren Tallow": "no NPC called 'nobody'",
    "card/assign pim = Oren Tallow": "has no mind",
    "card/assign oren": "Usage",
    "card/assign oren =": "Usage",
    "card/assing oren = Oren Tallow": "no switch",
    "card oren = Oren Tallow": "card/assign",
    "card nobody": "no card",
    "card/import oren =": "Usage",
    "card/import oren = \x07": "printable",
}


@pytest.fixture
def folder(stage, tmp_path):
    cards = tmp_path / "cards"
    cards.mkdir()
    (cards / "oren.json").write_text(json.dumps(OREN), encoding="utf-8")
    (tmp_path / "secret.json").write_text(json.dumps(OREN), encoding="utf-8")
    with override_settings(EVENNIA_AI_CARD_FOLDER=str(cards)):
        yield cards


def test_import_stores_the_file_to_the_letter(stage, folder):
    told = stage.builds("card/import oren.json")
    stored = store.get_card("Oren Tallow")
    assert stored.source == (folder / "oren.json").read_text(encoding="utf-8")
    assert "Card Oren Tallow, revision 2, spec chara_card_v3" in told


def test_import_tells_what_the_card_injects_by_depth(stage, folder):
    assert "the ferry: depth 99999, role system" in stage.builds("card/import oren")


def test_import_of_the_same_file_again_changes_nothing(stage, folder):
    stage.builds("card/import oren", "card/import oren")
    assert store.get_card("Oren Tallow").revision == 2


def test_import_under_another_name(stage, folder):
    stage.builds("card/import oren = The net mender")
    assert store.card_names() == ("The net mender",)


def test_import_replaces_the_card_whose_name_differs_only_in_case(stage, folder):
    stage.builds("card/import oren.json = oren tallow")
    assert "Card oren tallow, revision" in stage.builds("card/import oren.json")
    assert store.card_names() == ("oren tallow",)


def test_import_without_a_file_lists_the_folder(stage, folder):
    told = stage.builds("card/import")
    assert "oren.json" in told
    assert "secret.json" not in told
    assert store.card_names() == ()


def test_import_reads_no_file_outside_its_folder(stage, folder):
    (folder / "link.json").symlink_to(folder.parent / "secret.json")
    (folder / "sub.json").mkdir()
    for name in NO_CARD_FILES:
        assert one_line(stage.builds(f"card/import {name}")), name
        assert store.card_names() == (), name


def test_a_bad_file_gets_one_clear_line_and_stores_nothing(stage, folder):
    for name, (content, words) in BAD_FILES.items():
        (folder / name).write_bytes(content)
        assert words.lower() in one_line(stage.builds(f"card/import {name}")).lower(), name
        assert store.card_names() == (), name


def test_a_file_over_the_limit_is_refused_by_its_size(stage, folder):
    (folder / "big.json").write_bytes(b" " * 5000)
    with override_settings(EVENNIA_AI_MAX_SOURCE_CHARACTERS=1000):
        told = stage.builds("card/import big.json")
    assert "EVENNIA_AI_MAX_SOURCE_CHARACTERS" in told
    assert store.card_names() == ()


def test_a_file_of_too_many_characters_is_refused_before_it_is_read_as_a_card(stage, folder):
    (folder / "big.json").write_bytes(b"[" * 2000)
    with override_settings(EVENNIA_AI_MAX_SOURCE_CHARACTERS=1000):
        told = stage.builds("card/import big.json")
    assert "has 2000 characters and the limit is 1000" in told
    assert store.card_names() == ()


def test_a_byte_order_mark_is_no_part_of_the_card(stage, folder):
    (folder / "bom.json").write_bytes(b"\xef\xbb\xbf" + json.dumps(OREN).encode())
    stage.builds("card/import bom.json")
    assert store.get_card("Oren Tallow").source.startswith("{")


def test_the_bare_command_lists_the_cards(stage, folder):
    assert "no cards yet" in stage.builds("card")
    stage.builds("card/import oren")
    assert "Oren Tallow" in stage.builds("card")


def test_one_card_is_shown_in_whatever_case_its_name_is_written(stage, folder):
    stage.builds("card/import oren")
    told = stage.builds("card oren tallow")
    assert "mends nets" in told
    assert "after history" in told


def test_assign_lets_the_npc_play_the_card(stage, folder):
    stage.builds("card/import oren")
    told = stage.builds("card/assign oren = oren tallow")
    assert "Oren plays the card Oren Tallow" in told
    assert card_assignments.card_of(str(stage.npc.id)).name == "Oren Tallow"


def test_the_assigned_card_is_in_the_preview_at_its_places(stage, folder):
    stage.builds("card/import oren", "card/assign oren = Oren Tallow")
    told = stage.builds("component/preview oren = When does the ferry sail?")
    assert "Oren Tallow mends nets." in told
    assert "The ferry sails at dusk." in told
    assert "@@depth" not in told


def test_a_cards_depth_of_99999_lands_at_the_top_of_the_history_and_nowhere_else(stage, folder):
    stage.builds("card/import oren", "card/assign oren = Oren Tallow")
    with stage.model("Aye.", "Aye."):
        for said in ("Oren, good morning.", "Oren, how are you?"):
            stage.player.at_say(said)
            stage.waited()
        prompt = stage.npc.ai.preview("When does the ferry sail?", stage.player)
    [at] = [n for n, m in enumerate(prompt.messages) if "sails at dusk" in m.content]
    assert prompt.messages[at].injected
    assert prompt.messages[at - 1].block == "ordered"
    assert [m.content for m in prompt.messages[at + 1 : at + 3]] == ["Oren, good morning.", "Aye."]


def test_bad_input_gets_one_clear_line_and_changes_nothing(stage, folder):
    stage.builds("card/import oren")
    for typed, words in BAD_INPUT.items():
        assert words.lower() in one_line(stage.builds(typed)).lower(), typed
        assert store.card_names() == ("Oren Tallow",), typed
        assert card_assignments.card_of(str(stage.npc.id)) is None, typed


def test_a_hostile_card_is_shown_as_it_is(stage, folder):
    evil = json.loads(json.dumps(OREN))
    evil["data"]["name"] = "|rOren|n {x} |lclook|ltgo|le"
    evil["data"]["description"] = "$eval(1+1) \x1b[2J |r |lclook|ltgo|le"
    (folder / "evil.json").write_text(json.dumps(evil), encoding="utf-8")
    sent = stage.sent(stage.builder, "card/import evil", "card", "card/import")
    assert "\x1b" not in sent
    assert "|rOren|n {x}" in on_screen(sent)
    assert "$eval(1+1) \\x1b[2J |r" in on_screen(sent)
    assert "|lc" not in on_screen(sent)


def test_a_card_with_a_book_that_cannot_be_read_says_so_at_import(stage, folder):
    broken = json.loads(json.dumps(OREN))
    broken["data"]["character_book"] = {"entries": 3}
    (folder / "broken.json").write_text(json.dumps(broken), encoding="utf-8")
    assert "its lorebook will be left out" in stage.builds("card/import broken")
