"""`card/assign`, `card/unassign`, `card/greeting`: which card an NPC plays, and its greeting."""

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.store.authored import cards
from evennia_ai.store.authored import cards as store
from tests.commands.card_files import as_json, oren
from tests.commands.stage import one_line

BAD_INPUT = {
    "card/assign nobody = oren": "no card",
    "card/assign Oren Tallow = nobody": "no NPC called 'nobody'",
    "card/assign Oren Tallow = pim": "has no mind",
    "card/assign oren": "Usage",
    "card/assign oren =": "Usage",
    "card/assing oren = Oren Tallow": "There is no",
    "card/assign Oren Tallow/2 = oren": "without a number",
    "card/unassign": "Usage",
    "card/unassign Oren Tallow = nobody": "no NPC called 'nobody'",
    "card/unassign Oren Tallow = oren": "plays no card",
    "card/unassign oren = Oren Tallow": "Type this instead: card/unassign Oren Tallow = oren",
    "card/greeting": "Usage",
    "card/greeting nobody = 1": "no NPC called 'nobody'",
    "card/greeting oren": "plays no card",
    "card/greeting oren = 0": "plays no card",
}
BAD_GREETINGS = {
    "card/greeting oren =": "Usage",
    "card/greeting oren = 1": "has no greeting 1; it has 0, 2, 3",
    "card/greeting oren = 4": "has no greeting 4",
    "card/greeting oren = -1": "whole number",
    "card/greeting oren = first": "or off",
    "card/greeting oren = 99999999999999999999": "whole number",
}


@pytest.fixture
def card(stage, card_folder):
    """Approve Oren's card with all grants that a preview needs."""
    stage.builds("card/import oren", "card/approve Oren Tallow = fields, positions")
    return card_folder


def played(stage):
    return cards.assignment_of(str(stage.npc.id))


def test_assign_lets_the_npc_play_the_card(stage, card):
    told = one_line(stage.builds("card/assign oren tallow = oren"))
    assert "Oren plays the card Oren Tallow (revision 2, with the grants fields, positions)" in told
    assert played(stage).card == "Oren Tallow"


def test_assign_names_the_card_played_before(stage, card):
    stage.builds("card/import oren = Other", "card/approve Other")
    told = stage.builds("card/assign Other = oren", "card/assign Oren Tallow = oren")
    assert "from now on, no longer Other." in told


def test_assign_refuses_a_waiting_card(stage, card):
    stage.builds("card/import oren = Other")
    assert "card/approve Other/1" in one_line(stage.builds("card/assign Other = oren"))
    assert played(stage) is None


def test_assign_refuses_an_unreadable_card(stage, card):
    store.save_card("odd", '{"name": 7}', by=trusted("world"))
    assert "has neither" in one_line(stage.builds("card/assign odd = oren"))
    assert played(stage) is None


def test_unassign_leaves_the_npc_without_a_card(stage, card):
    told = stage.builds("card/assign Oren Tallow = oren", "card/unassign Oren Tallow = oren")
    assert "Oren no longer plays the card Oren Tallow" in told
    assert played(stage) is None


def test_the_assigned_card_is_in_the_preview_at_its_places(stage, card):
    stage.builds("card/assign Oren Tallow = oren")
    told = stage.builds("component/preview/full oren = When does the ferry sail?")
    assert "Oren Tallow mends nets." in told
    assert "The ferry sails at dusk." in told
    assert "@@depth" not in told


def test_a_new_revision_is_played_from_its_approval_on_and_not_before(stage, card):
    stage.builds("card/assign Oren Tallow = oren")
    (card / "oren.json").write_bytes(as_json(oren(description="She mends sails.")))
    stage.builds("card/import oren")
    assert "mends nets" in stage.builds("component/preview/full oren = Well?")
    stage.builds("card/approve Oren Tallow")
    assert "She mends sails." in stage.builds("component/preview/full oren = Well?")


def test_card_depth_of_99999_is_clamped_to_the_top_of_the_history(stage, card):
    stage.builds("card/assign Oren Tallow = oren")
    with stage.model("Aye.", "Aye."):
        for said in ("Oren, good morning.", "Oren, how are you?"):
            stage.player.at_say(said)
            stage.waited()
        prompt = stage.npc.ai.preview("When does the ferry sail?", stage.player)
    [at] = [n for n, m in enumerate(prompt.messages) if "sails at dusk" in m.content]
    assert prompt.messages[at].injected
    assert prompt.messages[at - 1].block == "ordered"
    after = [m.content for m in prompt.messages[at + 1 : at + 4]]
    assert after == ["Stay short.", "Oren, good morning.", "Aye."]


def test_greetings_are_listed_with_the_chosen_one_marked(stage, card):
    stage.builds("card/assign Oren Tallow = oren", "card/greeting oren = 2")
    lines = stage.builds("card/greeting oren").splitlines()
    assert lines[1:4] == [
        "    0  Mind the rope.",
        "*   2  Storm coming.",
        "    3  (groups) All aboard.",
    ]
    assert lines[4].startswith("Oren opens with greeting 2")


def test_a_greeting_is_set_and_switched_off(stage, card):
    told = stage.builds("card/assign Oren Tallow = oren", "card/greeting oren = 0")
    assert "with greeting 0: Mind the rope." in told
    assert played(stage).greeting == 0
    assert "opens with no greeting" in one_line(stage.builds("card/greeting oren = off"))
    assert played(stage).greeting is None


def test_greeting_command_says_that_a_greeting_is_for_groups(stage, card):
    told = stage.builds("card/assign Oren Tallow = oren", "card/greeting oren = 3")
    assert "where several may speak with greeting 3: All aboard." in told


def test_assign_of_another_card_resets_the_greeting(stage, card):
    stage.builds("card/assign Oren Tallow = oren", "card/greeting oren = 0")
    stage.builds("card/assign Oren Tallow = oren")
    assert played(stage).greeting is None


def test_greeting_that_does_not_exist_changes_nothing(stage, card):
    stage.builds("card/assign Oren Tallow = oren", "card/greeting oren = 0")
    for typed, words in BAD_GREETINGS.items():
        assert words in one_line(stage.builds(typed)), typed
        assert played(stage).greeting == 0, typed


def test_approval_of_another_file_resets_the_greeting(stage, card_folder):
    stage.builds("card/import oren = oren", "card/approve oren", "card/assign oren = oren")
    stage.builds("card/greeting oren = 0")
    (card_folder / "oren.json").write_bytes(as_json(oren(first_mes="EVIL")))
    told = " ".join(stage.builds("card/import oren = oren", "card/approve oren").split())
    assert "These NPCs no longer open with a greeting: Oren (#" in told
    assert "Oren opens with no greeting" in stage.builds("card/greeting oren")


def test_revert_names_npcs_whose_greeting_it_resets(stage, card_folder):
    stage.builds("card/import oren = oren", "card/approve oren", "card/assign oren = oren")
    (card_folder / "oren.json").write_bytes(as_json(oren(first_mes="New.")))
    stage.builds("card/import oren = oren", "card/approve oren", "card/greeting oren = 0")
    told = stage.builds("card/revert oren = 2", "yes")
    assert "These NPCs no longer open with a greeting: Oren (#" in told


def test_bad_input_gets_one_clear_line_and_changes_nothing(stage, card):
    for typed, words in BAD_INPUT.items():
        assert words in one_line(stage.builds(typed)), typed
        assert played(stage) is None, typed
