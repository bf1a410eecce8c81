"""`card/create`, `set`, `edit`, `spawn` and `despawn`: a character that is written in the game."""

import json

import pytest
from django.test import override_settings
from evennia.utils.create import create_object
from evennia.utils.search import search_object

from evennia_ai.commands.setup.card.command import CmdCard
from evennia_ai.engine.prompt.components import ALL_GRANTS
from evennia_ai.formats.cards.card import card_from_text
from evennia_ai.formats.cards.exporting import dump_card
from evennia_ai.formats.cards.limits import DEFAULT_LIMITS
from evennia_ai.formats.cards.loading import load_card
from evennia_ai.formats.cards.png import replace_cards
from evennia_ai.formats.cards.writing import WORDS
from evennia_ai.store.authored import cards as store
from tests.commands.card_files import OREN
from tests.commands.stage import one_line

BAD_INPUT = {
    "card/create": "Usage",
    "card/create mira = Another.": "A card 'Mira' already exists",
    "card/create Wynn Wynn repairs clocks": "card/create Wynn = Wynn repairs clocks",
    "card/create Mira/2": "no / before a number at its end",
    "card/edit": "Usage",
    "card/edit nobody/description = x": "no card 'nobody'",
    "card/edit Mira = x": "Name a field of the card",
    "card/edit Mira/colour = red": "'colour' is not a field of a card: name",
    "card/edit Mira/greeting/3 = x": "greeting/1 adds one",
    "card/edit Mira/name =": "A card must have a name",
    "card/spawn": "Usage",
    "card/spawn nobody": "no card 'nobody'",
    "card/spawn Mira/1": "without a number",
    "card/revisions Mira = 9": "no revision of card 'Mira' with number 9",
    "card/revisions Mira = first": "whole number",
}


def bare(content):
    """Return a PNG file without the card in it."""
    return replace_cards(content, (), keep_assets=False, limits=DEFAULT_LIMITS)


@pytest.fixture
def mira(stage):
    return stage.builds("card/create Mira = Mira sells herbs. She is kind.")


def flat(told):
    """Return several lines as one."""
    return " ".join(told.split())


def card_of(name="Mira"):
    return card_from_text(store.get_card(name).source)


def test_long_name_is_created_when_an_equals_sign_follows_it(stage):
    assert "Created card Tom of the Long Bridge" in one_line(
        stage.builds("card/create Tom of the Long Bridge =")
    )


def test_created_card_is_usable_at_once(stage, mira):
    assert "Created card Mira, revision 1." in one_line(mira)
    card = card_of()
    assert (card.name, card.description, card.creator) == (
        "Mira",
        "Mira sells herbs. She is kind.",
        "Mara",
    )
    stored = store.get_card("Mira")
    assert stored.grants == ALL_GRANTS
    assert store.CARDS.waiting("Mira") == ()
    assert "created by Mara" in stage.builds("card mira")


def test_a_character_from_nothing_to_its_first_answer_takes_three_commands(stage, mira):
    told = one_line(stage.builds("card/spawn mira"))
    (npc,) = search_object("Mira", exact=True)
    assert f"Mira (#{npc.id}) is here now and plays the card Mira." in told
    assert npc.location == npc.home == stage.room
    assert store.assignment_of(npc.ai.ref).card == "Mira"
    with stage.model("Sage, for the cough.") as model:
        stage.builder.execute_cmd("say Mira, what is that?")
        stage.waited()
    assert "Mira sells herbs." in " ".join(one.content for one in model.requests[0].messages)


def test_spawned_npc_opens_with_the_first_message(stage, mira):
    stage.builds("card/edit mira/first_message = Careful.", "card/spawn mira = Old Mira")
    (npc,) = search_object("Old Mira", exact=True)
    assert store.assignment_of(npc.ai.ref).greeting == 0


def test_spawned_npc_has_the_typeclass_of_the_setting(stage, mira):
    with override_settings(EVENNIA_AI_NPC_TYPECLASS="tests.commands.test_operating.Silent"):
        stage.builds("card/spawn mira")
    assert type(search_object("Mira", exact=True)[0]).__name__ == "Silent"


def test_a_typeclass_without_a_mind_is_refused(stage, mira):
    with override_settings(EVENNIA_AI_NPC_TYPECLASS="evennia.objects.objects.DefaultCharacter"):
        told = one_line(stage.builds("card/spawn mira"))
    assert "which has no mind" in told
    assert not search_object("Mira", exact=True)


def test_missing_typeclass_is_refused(stage, mira):
    with override_settings(EVENNIA_AI_NPC_TYPECLASS="world.nowhere.Nobody"):
        told = one_line(stage.builds("card/spawn mira"))
    assert "names world.nowhere.Nobody, which does not exist" in told
    assert not search_object("Mira", exact=True)


def test_spawned_npc_can_be_deleted_by_builders_only(stage, mira):
    stage.builds("card/spawn mira")
    (npc,) = search_object("Mira", exact=True)
    assert npc.access(stage.builder, "delete")
    assert not npc.access(stage.player, "delete")
    assert not npc.access(stage.player, "get")


def test_set_writes_a_field_and_shows_the_difference(stage, mira):
    told = stage.builds("card/edit mira/description = Mira sells herbs. She is tired.")
    assert told.splitlines() == [
        "Wrote description of card Mira, revision 2; played by nobody.",
        "  Mira sells herbs.",
        "- She is kind.",
        "+ She is tired.",
    ]
    assert card_of().description == "Mira sells herbs. She is tired."


def test_setting_the_same_text_makes_no_revision(stage, mira):
    stage.builds("card/edit mira/creator_notes = For the coast.")
    told = stage.builds("card/edit mira/creator_notes = For the coast.")
    assert "has this text already; nothing was changed." in told
    assert store.get_card("Mira").revision == 2


@pytest.mark.req("S0-28")
def test_set_warns_if_a_text_names_what_is_said(stage, mira):
    moved = "which changes with every message: in the layout cache it is placed after the history"
    made = flat(stage.builds("card/create Zed = Zed heard {{lastMessage}}."))
    assert f"char_description: names {{{{lastMessage}}}}, {moved}" in made

    written = flat(stage.builds("card/edit Mira/system_prompt = Obey {{speaker}}."))
    assert f"card_system_prompt: names {{{{speaker}}}}, {moved}" in written
    later = flat(stage.builds("card/edit Mira/personality = Dry."))
    assert "which changes" not in later


def test_set_without_text_shows_the_field_and_without_field_all(stage, mira):
    assert stage.builds("card mira/description").splitlines() == [
        "description of card Mira:",
        "Mira sells herbs. She is kind.",
    ]
    listed = stage.builds("card/edit mira").splitlines()
    assert listed[0] == "Card Mira, revision 1; card/edit Mira/<field> = <text>"
    assert "    30  description       Mira sells herbs. She is kind." in listed
    assert "     -  scenario" in [line.rstrip() for line in listed]


def test_help_names_every_card_field(stage):
    assert [word for word in WORDS if word not in CmdCard.__doc__] == []


def test_a_card_with_a_slash_in_its_name_is_written(stage):
    stage.builds("card/create Mira/the elder", "card/edit mira/the elder/scenario = At home.")
    assert card_of("Mira/the elder").scenario == "At home."


def test_an_edit_keeps_the_grants_and_all_else_of_an_imported_card(stage, card_folder):
    stage.builds("card/import oren", "card/approve Oren Tallow = fields")
    stage.builds("card/edit oren tallow/personality = kind")
    card = store.get_card("Oren Tallow")
    assert card.grants == {"fields"}
    raw = json.loads(card.source)["data"]
    assert raw["personality"] == "kind"
    assert raw["character_book"]["entries"] == OREN["data"]["character_book"]["entries"]


def test_an_edited_picture_keeps_its_pixels(stage, card_folder):
    source = load_card(card_folder / "oren.json")
    (card_folder / "oren.png").write_bytes(dump_card(source, "png", modified_at=1))
    stage.builds("card/import oren.png = oren", "card/approve oren")
    before = store.CARDS.revision_file("oren", 2)
    stage.builds("card/edit oren/personality = kind")
    after = store.CARDS.revision_file("oren", 3)
    assert after.carrier == "png"
    assert load_card(after.content).card.personality == "kind"
    assert bare(after.content) == bare(before.content)


def test_a_chosen_greeting_stays_where_its_number_means_the_same(stage, card_folder):
    stage.builds("card/import oren = oren", "card/approve oren", "card/assign oren = oren")
    stage.builds("card/greeting oren = 2", "card/edit oren/greeting/2 = Fog coming.")
    assert store.assignment_of(stage.npc.ai.ref).greeting == 2
    stage.builds("card/edit oren/greeting/1 =")
    assert store.assignment_of(stage.npc.ai.ref).greeting is None


def test_the_editor_writes_a_field(stage, mira):
    stage.builds("card/edit mira/description", "And old.", ":wq")
    assert card_of().description == "Mira sells herbs. She is kind.\nAnd old."


def test_saving_over_another_builders_edit_is_refused(stage, mira):
    stage.builds("card/edit mira/description", "And old.")
    stage.sent(stage.person("Tam", permission="Builder"), "card/edit mira/nickname = M")
    told = one_line(stage.builds(":w"))
    assert "card 'Mira' was changed by Tam while you edited it (you saw revision 1" in told
    assert card_of().description == "Mira sells herbs. She is kind."


def test_revision_shows_what_it_changed(stage, mira):
    stage.builds("card/edit mira/tags = herbs, coast", "card/edit mira/personality = gruff")
    told = stage.builds("card/revisions mira = 2").splitlines()
    assert told[0].startswith("Revision 2 of card Mira, updated by Mara, ")
    assert told[1:] == [
        "Compared with revision 1:",
        "tags:",
        "+ herbs",
        "+ coast",
    ]


def test_reverting_shows_what_it_changes(stage, mira):
    stage.builds("card/edit mira/personality = gruff")
    told = stage.builds("card/revert mira = 1", "yes").splitlines()
    assert told[1:4] == ["Compared with revision 2:", "personality:", "- gruff"]
    assert card_of().personality == ""


def test_card_switches_are_refused_to_players(stage, mira):
    assert "not available" in stage.plays("card/create Evil = Obey me.")
    assert store.CARDS.list_keys() == ("Mira",)


@pytest.mark.parametrize(("line", "told"), BAD_INPUT.items())
def test_card_writing_errors_change_nothing(stage, mira, line, told):
    before = len(store.CARDS.revisions("Mira"))
    assert told in one_line(stage.builds(line))
    assert len(store.CARDS.revisions("Mira")) == before
    assert store.CARDS.list_keys() == ("Mira",)


def test_spawn_asks_first_when_the_name_is_taken(stage, mira):
    stage.builds("card/spawn mira")
    [first] = search_object("Mira", exact=True)
    for answer, count in (("no", 1), ("", 1), ("yes", 2)):
        told = flat(stage.builds("card/spawn mira", answer))
        assert f"An NPC called Mira exists already (#{first.id})." in told
        assert ("No NPC was created." in told) == (count == 1)
        assert len(search_object("Mira", exact=True)) == count


@pytest.mark.parametrize("name", ["MIRA", "mira", "  Mira  ", "|rMira|n"])
def test_spawn_sees_a_taken_name_however_it_is_written(stage, mira, name):
    stage.builds("card/spawn mira")
    assert "exists already" in flat(stage.builds(f"card/spawn mira = {name}", "no"))


def test_spawn_asks_nothing_when_only_a_player_or_a_thing_has_the_name(stage, mira):
    create_object("evennia.objects.objects.DefaultObject", key="Mira", location=stage.room)
    assert "is here now and plays" in flat(stage.builds("card/spawn mira"))


def test_despawn_deletes_the_npc_after_a_yes_and_keeps_the_card(stage, mira):
    stage.builds("card/spawn mira")
    [npc] = search_object("Mira", exact=True)
    ref, label = npc.ai.ref, f"Mira (#{npc.id})"
    assert f"{label} stays." in flat(stage.builds("card/despawn mira", "no"))
    assert list(search_object("Mira", exact=True)) == [npc]
    assert f"{label} is deleted." in flat(stage.builds("card/despawn mira", "yes"))
    assert not search_object("Mira", exact=True)
    assert (store.assignment_of(ref), store.players_of("Mira")) == (None, ())
    assert store.get_card("Mira").revision == 1


def test_despawn_refuses_what_it_may_not_delete(stage, mira):
    stage.builds("card/spawn mira")
    [npc] = search_object("Mira", exact=True)
    refused = {
        "card/despawn": "Usage",
        "card/despawn mira = now": "takes no '='",
        "card/despawn nobody": "no NPC called 'nobody'",
        "card/despawn Pim": "has no mind",
        "card/despawn oren": "plays no card",
    }
    for typed, words in refused.items():
        assert words in flat(stage.builds(typed)), typed
    other = stage.person("Nora", permission="Builder")
    npc.locks.add("delete:false();control:false()")
    assert "does not let you delete it" in flat(stage.sent(other, "card/despawn mira", "yes"))
    npc.locks.add("delete:all()")
    npc.at_object_delete = lambda: False
    told = flat(stage.builds("card/despawn mira", "yes"))
    assert "own code refused to delete Mira" in told
    assert store.assignment_of(npc.ai.ref) is not None
    del npc.at_object_delete


def test_component_command_lists_both_npcs_when_two_have_the_typed_name(stage, mira):
    stage.builds("card/spawn mira", "card/spawn mira", "yes")
    first, second = (f"Mira (#{one.id})" for one in search_object("Mira", exact=True))
    told = flat(stage.builds("component mira"))
    assert f"'mira' could be {first}, {second}; name one as" in told
