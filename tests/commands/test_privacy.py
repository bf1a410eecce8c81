"""`ai off`, `ai on` and `ignore`: what players decide about NPCs for themselves."""

import pytest
from evennia.utils.create import create_account

from evennia_ai.commands.persona import CmdPersona
from evennia_ai.commands.privacy import CmdPrivacy
from evennia_ai.npc.senses import choices


@pytest.fixture
def played(stage):
    """The stage, on which Pim and Mara belong to accounts."""
    for who in (stage.player, stage.builder):
        who.account = create_account(f"player of {who.key}", "", "a-password-of-a-test")
    stage.builder.account.permissions.add("Builder")
    return stage


def test_ai_off_and_on_are_commands_of_every_player(played):
    assert "no NPC hears or sees you" in played.plays("ai off")
    assert choices.has_opted_out(played.player)
    assert not choices.has_opted_out(played.builder)
    assert "hear and see you again" in played.plays("AI ON")
    assert not choices.has_opted_out(played.player)


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("ai/off oren", "Oren is silent from now on"),
        ("ai off oren", "Type this instead: ai/off oren"),
        ("ai on = oren", "takes no '='"),
        ("ai offal", "offal"),
        ("ai oren", "Oren"),
    ],
)
def test_ai_off_does_not_take_lines_that_are_about_an_npc(played, typed, answer):
    assert answer in " ".join(played.builds(typed).split())
    assert not choices.has_opted_out(played.builder)


def test_player_is_not_told_commands_of_builders(played):
    assert "ai/off" not in played.plays("ai off oren")


def test_choice_holds_for_every_character_of_the_account(played):
    played.plays("ai off")
    other = played.person("Pam", permission="Player")
    assert not choices.has_opted_out(other)
    other.account = played.player.account
    assert choices.has_opted_out(other)


def test_character_without_a_player_cannot_choose(stage):
    for line in ("ai off", "ai on", "ignore oren"):
        assert "Only the player of a character can decide this." in stage.plays(line)


def test_ignore_lists_and_toggles_npcs(played):
    assert "You ignore nobody" in played.plays("ignore")
    assert "You no longer read what Oren says" in played.plays("ignore oren")
    assert choices.ignores(played.player, str(played.npc.id))
    assert "You ignore Oren." in played.plays("ignore")
    assert "There is nobody called 'mara' here" in played.plays("ignore mara")
    played.npc.move_to(None, to_none=True)
    assert "You read what Oren says again." in played.plays("ignore oren")
    assert choices.ignored_npcs(played.player.account) == ()


def test_ai_language_changes_texts_help_and_answers_of_this_player_only(played):
    assert "You read the language of the game, English." in played.plays("ai language")
    assert "Deine Sprache ist ab jetzt Deutsch." in played.plays("ai language German")
    assert "Du hast Deutsch gewählt." in played.plays("ai language")
    assert "Ab jetzt hört und sieht dich kein NPC" in played.plays("ai off")
    assert CmdPrivacy().get_help(played.player, None).startswith("Entscheide, was NPCs")
    assert CmdPersona().get_help(played.player, None).startswith("Beschreib deine Figur")
    assert "gibt es nicht. Nichts wurde geändert." in played.plays("ai me/xyz")
    assert "Hier ist niemand namens" in played.plays("talk nobody = hi")
    assert CmdPrivacy().get_help(played.builder, None).startswith("Decide what NPCs hear")
    assert "There is nobody called" in played.builds("talk nobody = hi")
    played.plays("persona = Ein Mann mit Hut.")
    assert "ja/[nein]" in played.plays("ai me/forget", "nein")
    assert "Ein Mann mit Hut." in played.plays("persona")
    assert "Gelöscht ist" in played.plays("ai me/forget", "ja")
    assert "Du hast noch keine Persona." in played.plays("persona")
    assert "You read the language of the game" in played.plays("ai language game")


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("ai language xx", "'xx' is no language that is known here"),
        ("ai language fr", "The game has no texts in French yet"),
        ("ai language = de", "takes no '='"),
    ],
)
def test_ai_language_says_what_it_cannot_do(played, typed, answer):
    assert answer in " ".join(played.plays(typed).split())
    chosen = choices.chosen_language(played.player.account)
    assert chosen == ("fr" if typed.endswith("fr") else "")
