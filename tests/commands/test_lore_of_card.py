"""`lore` on the book inside a card: each edit is a revision of the card."""

import json
from unittest.mock import patch

import pytest

from evennia_ai.commands import background_work
from evennia_ai.engine.actors import trusted
from evennia_ai.engine.prompt.components import NO_GRANTS
from evennia_ai.formats.cards.card import card_from_text
from evennia_ai.formats.cards.exporting import dump_card
from evennia_ai.formats.cards.loading import load_card
from evennia_ai.formats.lorebooks.books import read_book
from evennia_ai.npc.views.parse_cache import own_book
from evennia_ai.store.authored import cards as store
from evennia_ai.store.authored import lorebooks
from evennia_ai.store.authored.files import json_file
from tests.commands.stage import hearing, one_line

BAD_INPUT = {
    "lore card:Tam": "Card Tam has no book yet; lore/create card:Tam/<entry> makes it",
    "lore card:nobody": "no approved card 'nobody'",
    "lore card:Mira/storm": "Lorebook 'card:Mira' has no entry 'storm'; there are card:Mira#0",
    "lore/create card:Mira": "name its first entry, lore/create card:Mira/<entry>",
    "lore/create card:nobody/herbs = herb: Green.": "no approved card nobody",
    "lore/create card:Mira/herbs = herb: Green.": "There is card:Mira#0 (herbs) already",
    "lore/assign card:Mira = game": "is used wherever the card is played",
    "lore/unassign card:Mira = game": "is used wherever the card is played",
    "lore/lock card:Mira = view:all()": "has no locks",
    "lore/lock card:Mira/herbs = view:all()": "has no locks",
    "lore/revisions card:Mira": "card/revisions Mira, card/revert Mira",
    "lore/revert card:Mira = 1": "card/revisions Mira, card/revert Mira",
    "lore/keys card:Mira/herbs = /(/": "not a regular expression",
    "lore/set card:Mira/herbs = chance often": "not a number",
    "lore/mode card:Mira = sticky": "no mode",
}


@pytest.fixture
def mira(stage):
    """Create a card with a book of one entry, and a card without a book."""
    stage.builds(
        "card/create Mira = Mira sells herbs.",
        "card/create Tam = Tam fishes.",
        "lore/create card:Mira/herbs = herb, cure: Mira grows them. She dries them.",
    )


def the_book(name="Mira"):
    return own_book(store.get_card(name))


def test_first_entry_creates_the_book_as_a_card_revision(stage):
    stage.builds("card/create Mira = Mira sells herbs.")
    told = one_line(stage.builds("lore/create card:mira/herbs = herb: Mira grows them."))
    assert "Created card:mira" in told or "Created card:Mira" in told
    assert "in the card's new book; keys: herb; place: after" in told
    [entry] = the_book().entries
    assert (entry.name, entry.keys, entry.template.source) == (
        "herbs",
        ("herb",),
        "Mira grows them.",
    )
    assert [one.action for one in store.CARDS.revisions("Mira")] == ["created", "updated"]
    assert lorebooks.LOREBOOKS.list_keys() == ()


def test_bad_input_gets_one_clear_line_and_changes_nothing(stage, mira):
    before = store.get_card("Mira"), store.get_card("Tam")
    for typed, words in BAD_INPUT.items():
        assert words in one_line(stage.builds(typed)), typed
        assert (store.get_card("Mira"), store.get_card("Tam")) == before, typed
        assert lorebooks.LOREBOOKS.list_keys() == (), typed


EDITS = {
    "lore/keys card:Mira/herbs = leaf": lambda e: e.keys == ("leaf",),
    "lore/secondary card:Mira/herbs = not any storm": lambda e: e.secondary_keys == ("storm",),
    "lore/depth card:Mira/herbs = bottom": lambda e: e.depth == 0,
    "lore/depth card:Mira/herbs = 2": lambda e: e.depth == 2,
    "lore/order card:Mira/herbs = 7": lambda e: e.order == 7,
    "lore/position card:Mira/0 = before": lambda e: e.position == "before",
    "lore/set card:Mira#0 = sticky 3": lambda e: e.timing.sticky == 3,
    "lore/off card:Mira/herbs": lambda e: not e.enabled,
}


@pytest.mark.req("S3-11")
@pytest.mark.parametrize("typed", EDITS)
def test_lore_set_changes_one_field_of_a_card_book_and_nothing_else_in_the_card(stage, mira, typed):
    before = card_from_text(store.get_card("Mira").source)
    told = one_line(stage.builds(typed))
    assert "card:Mira#0 (herbs): " in told
    assert "Revision 3." in told
    assert EDITS[typed](the_book().entries[0])
    after = card_from_text(store.get_card("Mira").source)
    assert (after.description, after.extensions) == (before.description, before.extensions)


def test_unchanged_value_makes_no_card_revision(stage, mira):
    assert "nothing was changed" in one_line(stage.builds("lore/keys card:Mira/herbs = herb, cure"))
    assert store.get_card("Mira").revision == 2


def test_card_revision_shows_and_reverts_the_edit(stage, mira):
    stage.builds("lore/keys card:Mira/herbs = leaf")
    told = stage.builds("card/revisions Mira = 3").splitlines()
    assert told[2:] == ["its book:", "#0 (herbs) keys:", "- herb", "- cure", "+ leaf"]
    told = stage.builds("card/revert Mira = 2", "yes")
    assert "- leaf" in told.splitlines()
    assert the_book().entries[0].keys == ("herb", "cure")


def test_removed_entry_comes_back_by_card_revert(stage, mira):
    told = one_line(stage.builds("lore/remove card:Mira/herbs"))
    assert "card/revert Mira = 2 brings it back" in told
    assert the_book().entries == ()
    stage.builds("card/revert Mira = 2", "yes")
    assert len(the_book().entries) == 1


def test_the_whole_book_is_removed_after_a_question(stage, mira):
    stage.builds("lore/remove card:Mira", "no")
    assert the_book() is not None
    assert "Removed the book inside card:Mira" in stage.builds("lore/remove card:Mira", "yes")
    assert the_book() is None


def test_an_entry_is_written_in_the_editor(stage, mira):
    stage.builds("lore/edit card:Mira/herbs", ":DD", "She buys them.", ":wq")
    assert the_book().entries[0].template.source == "She buys them."
    assert store.get_card("Mira").revision == 3


def test_editor_refuses_to_overwrite_a_newer_change(stage, mira):
    stage.builds("lore/edit card:Mira/herbs", "She buys them.")
    store.CARDS.revoke("Mira", frozenset({"regex"}), by=trusted("Tam"))
    assert "was changed by Tam" in stage.builds(":wq")
    assert "dries" in the_book().entries[0].template.source


def test_book_of_a_card_is_listed_shown_and_linted(stage, mira):
    assert "Books inside cards: card:Mira" in stage.builds("lore")
    told = " ".join(stage.builds("lore card:Mira").split())
    assert "Lorebook card:Mira, revision 2, 1 entry" in told
    assert "card Mira, which 0 NPCs play" in told
    assert "Mira grows them. She dries them." in stage.builds("lore card:Mira/herbs")
    assert "card:Mira" in stage.builds("lore/lint card:Mira")


def test_npc_that_plays_the_card_uses_its_book(stage, mira):
    stage.builds("card/assign Mira = oren", "lore/set card:Mira/herbs = constant on")
    assert "herbs" in stage.builds("lore/test oren = What is a good cure?")
    assert "lore/edit card:Mira/0" in stage.builds("component oren")
    with stage.model("Sage."):
        stage.player.at_say("Oren, what is a good cure?")
        stage.waited()
    told = " ".join(stage.builds("lore/why oren = card:Mira/herbs").split())
    assert "is in message" in told


def test_an_export_holds_the_edited_book(stage, mira):
    stage.builds("lore/keys card:Mira/herbs = leaf", "lore/create card:Mira/tea = tea: Hot.")
    file = store.CARDS.revision_file("Mira", store.get_card("Mira").revision)
    written = json.loads(dump_card(load_card(file.content), "json", modified_at=1))
    book = written["data"]["character_book"]
    assert written["spec"] == "chara_card_v3"
    assert [entry["keys"] for entry in book["entries"]] == [["leaf"], ["tea"]]
    assert {"extensions", "enabled", "insertion_order", "use_regex"} <= book["entries"][1].keys()
    assert "spec" not in book


def test_book_of_a_card_can_be_moved_to_another_card(stage, mira, card_folder):
    told = one_line(stage.builds("lore/export card:Mira"))
    [path] = [one for one in card_folder.iterdir() if one.name != "oren.json"]
    assert path.name in told
    assert read_book(json.loads(path.read_text())).entries[0].keys == ("herb", "cure")
    stage.builds(f"lore/import {path.name} = card:Tam")
    assert the_book("Tam").entries[0].keys == ("herb", "cure")


def test_edit_keeps_the_grants_of_an_imported_card(stage, mira):
    store.save_card(
        "foreign",
        json.dumps({"name": "Ida", "description": "Ida rows."}),
        by=trusted("Ida"),
        grants=NO_GRANTS,
    )
    stage.builds("lore/create card:foreign/tide = tide: It turns.")
    after = store.get_card("foreign")
    assert after.grants == NO_GRANTS
    assert the_book("foreign").entries[0].keys == ("tide",)


def test_book_of_a_waiting_card_cannot_be_changed(stage):
    store.import_card(
        "waiting",
        json_file(json.dumps({"name": "Ida", "description": "Ida rows."})),
        by=trusted("Ida"),
    )
    told = one_line(stage.builds("lore/create card:waiting/tide = tide: It turns."))
    assert "no approved card waiting" in told
    assert "card/approve waiting" in one_line(stage.builds("lore card:waiting"))


def test_card_file_is_not_written_in_the_reactors_thread(stage, mira):
    with patch.object(background_work, "edited_card_file") as edited:
        with patch.object(background_work, "in_thread") as in_thread:
            stage.builds("lore/keys card:Mira/herbs = leaf")
        edited.assert_not_called()
        assert in_thread.call_count == 1


def test_book_of_a_card_is_refused_to_players(stage, mira):
    with hearing(stage.player):
        stage.player.execute_cmd("lore/keys card:Mira/herbs = leaf")
    assert store.get_card("Mira").revision == 2
