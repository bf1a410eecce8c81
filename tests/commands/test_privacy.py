"""`ai off`, `ai on` and `ignore`: what players decide about NPCs for themselves."""

import pytest
from evennia.utils.create import create_account

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
