"""The command `talk`: what a player says aloud to one NPC."""

import pytest
from evennia.utils.create import create_object

from evennia_ai import models
from tests.commands.stage import Stage, hearing, on_screen, one_line

BAD_INPUT = {
    "talk": "Usage",
    "talk oren": "Usage",
    "talk oren =": "Usage",
    "talk = hello": "Usage",
    "talk nobody hello": "nobody called 'nobody' here",
    "talk to": "Usage",
    "talk nobody = hello": "nobody called 'nobody' here",
    "talk mara = hello": "nobody called 'mara' here",
    "talk/loud oren = hello": "There is no talk/loud",
    "talk /loud oren = hello": "directly after",
}


@pytest.fixture
def model(stage):
    with stage.model(*["Aye."] * 5) as scripted:
        yield scripted


def recorded():
    return list(models.Record.objects.filter(kind="user").values_list("name", "body"))


@pytest.mark.parametrize("name", ["oren", "Oren", "OREN", "ore", "ferryman"])
def test_talk_reaches_the_npc_by_any_form_of_its_name(stage, model, name):
    stage.npc.aliases.add("ferryman")
    with hearing(stage.builder) as heard:
        stage.plays(f"talk {name} = When does the ferry sail?")
        stage.waited()
    assert recorded() == [("Pim", "When does the ferry sail?")]
    assert "When does the ferry sail?" in on_screen(heard[0])
    assert "Aye." in on_screen(heard[-1])


@pytest.mark.parametrize(
    ("typed", "text"),
    [
        ("talk oren hello", "hello"),
        ("talk to oren how are you?", "how are you?"),
        ("talk ore Good evening.", "Good evening."),
        ("talk old ferryman hello", "hello"),
        ("talk oren is 1 + 1 = 2?", "is 1 + 1 = 2?"),
    ],
)
def test_talk_takes_name_and_text_without_equals_sign(stage, model, typed, text):
    stage.npc.aliases.add("old ferryman")
    stage.plays(typed)
    assert recorded() == [("Pim", text)]


def test_talk_text_may_contain_an_equals_sign(stage, model):
    stage.plays("talk oren = Is 1 + 1 = 2?")
    assert recorded() == [("Pim", "Is 1 + 1 = 2?")]


def test_talk_shows_the_player_what_was_said(stage, model):
    assert '"Hello."' in stage.plays("talk oren = Hello.")


def test_bad_input_gets_one_clear_line_and_nothing_is_said(stage, model):
    for typed, words in BAD_INPUT.items():
        assert words in one_line(stage.plays(typed)), typed
        assert recorded() == [], typed


def test_talk_does_not_reach_another_room(stage, model):
    stage.npc.location = None
    assert "nobody called 'oren' here" in stage.plays("talk oren = hello")
    assert recorded() == []


def test_hostile_words_are_shown_harmlessly_to_everybody(stage, model):
    with hearing(stage.builder) as heard:
        own = stage.sent(stage.player, "talk oren = {x} a } b $eval(1+1) |lclook|ltgo|le |rred")
    for sent in (own, heard[0]):
        assert "{x} a } b $eval(1+1)" in on_screen(sent)
        assert "|lc" not in on_screen(sent)
        assert "|rred" in on_screen(sent)


def test_talk_asks_back_for_an_ambiguous_name(stage, model):
    other = Stage()
    other.npc.move_to(stage.room, quiet=True)
    told = stage.plays("talk oren = hello")
    assert "'oren' could be Oren (oren-1), Oren (oren-2)" in told
    assert recorded() == []
    stage.plays("talk oren-2 = hello")
    assert len(recorded()) == 2  # Both NPCs have heard it.


def test_talk_is_answered_only_by_the_addressed_npc(stage, model):
    other = Stage()
    other.npc.move_to(stage.room, quiet=True)
    stage.plays("talk oren-2 = hello")
    stage.waited()
    answered = models.Record.objects.filter(kind="assistant")
    assert [record.conversation.npc_ref for record in answered] == [str(other.npc.id)]


def test_an_npc_of_evennias_llm_contrib_is_talked_to_by_the_same_command(stage, model):
    from evennia.contrib.rpg.llm import LLMNPC

    heard = []
    ell = create_object(LLMNPC, key="Ell", location=stage.room, nohome=True)
    ell.at_talked_to = lambda words, character: heard.append((words, character))
    told = stage.plays("talk ell good evening", "talk ell = And you?")
    assert heard == [("good evening", stage.player), ("And you?", stage.player)]
    assert 'You say to Ell, "good evening"' in told
    stage.plays("talk oren hello")
    stage.waited()
    assert len(heard) == 2 and "hello" in [body for _, body in recorded()]
