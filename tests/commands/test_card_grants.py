"""`card/grant` and `card/revoke`: what a card may do, who granted it, and what it could use."""

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.store.authored import cards as store
from evennia_ai.store.authored.files import json_file
from tests.commands.card_files import as_json, hostile, oren
from tests.commands.stage import on_screen, one_line

BAD_INPUT = {
    "card/grant": "Usage",
    "card/grant oren =": "Usage",
    "card/grant nobody = fields": "no card 'nobody'",
    "card/grant oren/1 = fields": "without a number",
    "card/gr oren = fields": "several switches",
    "card/revoke oren": "Usage",
    "card/revoke oren =": "Usage",
    "card/revoke nobody = fields": "no card 'nobody'",
    "card/revoke oren = roles": "none of these grants, only fields",
    "card/grant oren = fields": "already",
}


@pytest.fixture
def card(stage, card_folder):
    """Approve Oren's card with the grant to be placed before the history."""
    stage.builds("card/import oren = oren", "card/approve oren = fields")
    return card_folder


def grants():
    return store.get_card("oren").grants


def test_grant_is_added_to_existing_grants(stage, card):
    told = stage.builds("card/grant oren = roles")
    assert "Card oren may now:\n  roles " in told
    assert grants() == {"fields", "roles"}


def test_grant_is_recorded_with_its_giver(stage, card):
    ben = stage.person("Ben", permission="Builder")
    stage.sent(ben, "card/grant oren = roles")
    newest = store.CARDS.revisions("oren")[-1]
    assert (newest.action, newest.changed_by) == ("granted", "Ben")


def test_grant_names_the_file_it_was_given_to(stage, card):
    ben = stage.person("Ben", permission="Builder")
    (card / "oren.json").write_bytes(as_json(oren(personality="false")))
    stage.sent(ben, "card/import oren = oren", "card/approve oren")
    told = stage.builds("card oren", "card/grant oren = roles")
    assert "of the file that was imported by Ben" in told


def test_revoke_changes_nothing_on_a_card_without_grants(stage, card):
    stage.builds("card/revoke oren = fields")
    told = one_line(stage.builds("card/revoke oren = fields"))
    assert "no grant at all; nothing was changed." in told


def test_a_revoked_grant_is_gone_at_once(stage, card):
    told = stage.builds("card/revoke oren = fields, roles")
    assert "Card oren may no longer:\n  fields " in told
    assert grants() == frozenset()


def test_grant_without_value_lists_grants_givers_and_uses(stage, card):
    told = " ".join(stage.builds("card/grant oren").split())
    for grant in ("fields", "system_prompt", "after_history", "positions", "regex"):
        assert f" {grant} its " in told
    assert "* fields its description, personality, scenario and examples" in told
    assert "(given by Mara," in told
    assert "never what is recorded the card has no use for it" in told
    assert "here: 1 lore entry speaks as system or assistant" in told


def test_listing_grants_changes_nothing(stage, card):
    stage.builds("card/grant oren")
    assert store.CARDS.newest_number("oren") == 2


def test_grants_table_of_a_hostile_card_fits_the_screen(stage, card):
    (card / "vex.json").write_bytes(as_json(hostile()))
    stage.builds("card/import vex", "card/approve Vex")
    told = on_screen(stage.sent(stage.builder, "card/grant Vex"))
    assert max(map(len, told.splitlines())) <= 78


def test_unknown_grant_lists_grants_and_changes_nothing(stage, card):
    told = stage.builds("card/grant oren = roles, everything")
    assert "'everything' is no grant" in told
    assert "lore_budget    its lore has the budget that it asks" in told
    assert grants() == {"fields"}


def test_grant_is_refused_for_a_waiting_card(stage, card):
    stage.builds("card/import oren = ben")
    assert "card/approve ben/1" in one_line(stage.builds("card/grant ben = roles"))


def test_bad_input_gets_one_clear_line_and_changes_nothing(stage, card):
    for typed, words in BAD_INPUT.items():
        assert words in one_line(stage.builds(typed)), typed
        assert store.CARDS.newest_number("oren") == 2, typed


def test_grant_is_refused_if_another_file_was_approved_meanwhile(stage, card):
    stage.builds("card oren")
    other = store.import_card("oren", json_file(as_json(hostile()).decode()), by=trusted("Ben"))
    store.CARDS.approve("oren", other, grants=frozenset(), by=trusted("Ben"))

    told = one_line(stage.builds("card/grant oren = fields"))
    assert "Card oren has another file than the one you saw last" in told
    assert grants() == set()

    stage.builds("card oren", "card/grant oren = fields")
    assert grants() == {"fields"}
