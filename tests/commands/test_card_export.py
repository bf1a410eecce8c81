"""`card/export`: a card as a new file in the card folder, with everything that it can hold."""

import pytest
from django.test import override_settings

from evennia_ai.engine.actors import trusted
from evennia_ai.formats.cards.loading import load_card
from evennia_ai.store.authored import cards as store
from tests.commands.card_files import OREN, as_json, oren
from tests.commands.stage import one_line
from tests.formats.cards.carriers import a_picture, an_archive
from tests.modes import is_open_to_others

BAD_INPUT = {
    "card/export": "Usage",
    "card/export nobody": "no card",
    "card/export oren =": "no kind of card file",
    "card/export oren = gif": "no kind of card file",
    "card/export oren = png without": "no kind of card file",
    "card/export oren = json with v2": "V2 copy",
    "card/export oren/9": "no revision of card 'oren' with number 9",
}


@pytest.fixture
def card(stage, card_folder):
    """Approve Oren's card."""
    stage.builds("card/import oren = oren", "card/approve oren")
    return card_folder


def files(folder):
    return sorted(path.name for path in folder.parent.rglob("*") if path.is_file())


def test_export_writes_a_new_file_of_the_imported_kind(stage, card):
    told = " ".join(stage.builds("card/export oren").split())
    assert f"Wrote card oren, revision 2, to oren-2.json in {card.name} (" in told
    assert not is_open_to_others(card / "oren-2.json")
    again = load_card((card / "oren-2.json").read_bytes())
    assert again.card.description == OREN["data"]["description"]
    assert (card / "oren.json").read_bytes() == as_json(OREN)


@pytest.mark.parametrize("form", ["json", "png", "charx", "PNG with V2"])
def test_a_card_is_written_in_each_form_and_can_be_imported_again(stage, card, form):
    stage.builds(f"card/export oren = {form}")
    name = f"oren{'-2' if form == 'json' else ''}.{form.split()[0].lower()}"
    assert load_card((card / name).read_bytes()).card.char == "Oren Tallow"
    assert "Import 1 of card back" in stage.builds(f"card/import {name} = back")


def test_a_picture_with_v2_holds_both_versions(stage, card):
    stage.builds("card/export oren = png with v2")
    content = (card / "oren.png").read_bytes()
    assert (content.count(b"ccv3\0"), content.count(b"chara\0")) == (1, 1)


def test_an_earlier_revision_is_written_by_its_number(stage, card):
    (card / "oren.json").write_bytes(as_json(oren(personality="kind")))
    stage.builds("card/import oren = oren", "card/approve oren")
    stage.builds("card/export oren/2", "card/export oren")
    written = [load_card((card / f"oren-{n}.json").read_bytes()) for n in (2, 3)]
    assert [found.card.personality for found in written] == ["gruff", "kind"]


def test_an_import_that_waits_is_written_by_its_number(stage, card):
    stage.builds("card/import oren = other", "card/export other/1")
    assert (card / "other.json").exists()


def test_export_names_what_the_file_cannot_hold(stage, card):
    (card / "oren.png").write_bytes(a_picture(OREN))
    stage.builds("card/import oren.png = pic", "card/approve pic")
    assert "the picture is left out" in stage.builds("card/export pic = json")


def test_an_archive_keeps_its_files(stage, card):
    (card / "oren.charx").write_bytes(an_archive(OREN, [("assets/other/map.txt", b"a map")]))
    stage.builds("card/import oren.charx = chest", "card/approve chest", "card/export chest")
    again = load_card((card / "chest.charx").read_bytes())
    assert [member.content for member in again.members] == [b"a map"]


@pytest.mark.parametrize("name", ["../../evil", "/etc/passwd", "a b|c", "...", "|r"])
def test_card_with_an_odd_name_is_written_inside_the_folder(stage, card, name):
    store.save_card(name, as_json(OREN).decode(), by=trusted("world"))
    before = files(card)
    stage.builds(f"card/export {name}")
    (written,) = set(files(card)) - set(before)
    assert (card / written).exists()
    assert not set(written) & set("/\\|. ") - {"."}


def test_export_into_a_missing_folder_is_refused(stage, card):
    with override_settings(EVENNIA_AI_CARD_FOLDER=str(card / "gone")):
        assert "Nothing can be written" in one_line(stage.builds("card/export oren"))


def test_bad_input_gets_one_clear_line_and_writes_nothing(stage, card):
    before = files(card)
    for typed, words in BAD_INPUT.items():
        assert words in one_line(stage.builds(typed)), typed
        assert files(card) == before, typed
