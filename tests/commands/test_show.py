"""The command `show`, and Evennia's own `give` and `look`, with NPCs."""

import pytest
from evennia.objects.objects import DefaultObject
from evennia.utils.create import create_object

from evennia_ai import models
from tests.commands.stage import Stage, hearing, on_screen, one_line

BAD_INPUT = {
    "show": "Usage",
    "show rope": "Usage",
    "show rope =": "Usage",
    "show = oren": "Usage",
    "show to oren": "Usage",
    "show sword to oren": "You do not carry 'sword'",
    "show rope to nobody": "nobody called 'nobody' here",
    "show rope to mara": "nobody called 'mara' here",
    "show/all rope to oren": "There is no show/all",
    "show r to oren": "'r' could be ribbon, rope",
}


@pytest.fixture
def model(stage):
    with stage.model(*["Aye."] * 5) as scripted:
        yield scripted


@pytest.fixture
def rope(stage):
    create_object(DefaultObject, key="ribbon", location=stage.player, nohome=True)
    rope = create_object(DefaultObject, key="rope", location=stage.player, nohome=True)
    rope.db.desc = "It is long\nand |rwet|n. {actor} {x} $eval(1)"
    return rope


def recorded(kind="event", npc=None):
    """Return the bodies of the NPCs' records.

    Records of events have no name that could be spoken.
    """
    found = models.Record.objects.filter(kind=kind)
    if npc is not None:
        found = found.filter(conversation__npc_ref=str(npc.id))
    assert set(found.values_list("name", flat=True)) <= {""}
    return list(found.values_list("body", flat=True))


@pytest.mark.parametrize("typed", ["show rope to oren", "show rope = oren", "show rope to Oren"])
def test_show_lets_the_npc_see_the_thing_and_answer(stage, model, rope, typed):
    told = stage.plays(typed)
    stage.waited()
    assert told == "You show a rope to Oren."
    seen = "Pim shows you a rope. It looks like this: It is long and wet. {actor} {x} $eval(1)"
    assert recorded() == [seen]
    assert recorded("assistant") == ["Aye."]
    assert rope.location == stage.player


def test_show_is_seen_by_everybody_in_the_room(stage, model, rope):
    rope.key = "{x} |lclook|ltrope|le"
    rope.aliases.add("coil")
    with hearing(stage.builder) as heard:
        stage.plays("show coil to oren")
    assert on_screen(heard[0]) == "Pim shows a {x} rope to Oren."
    assert "|lc" not in on_screen(heard[0])


def test_show_is_noticed_but_not_answered_by_another_npc(stage, model, rope):
    other = Stage().npc
    other.key = "Brida"
    other.move_to(stage.room, quiet=True)
    stage.plays("show rope to oren")
    stage.waited()
    assert "Pim shows a rope to Oren." in recorded(npc=other)
    assert recorded("assistant", npc=other) == []


def test_show_of_an_invisible_thing_is_not_noticed(stage, model, rope):
    rope.locks.add("view:perm(Player)")
    stage.plays("show rope to oren")
    assert recorded() == ["Pim shows you something."]


def test_show_by_an_invisible_player_is_not_noticed(stage, model, rope):
    stage.player.locks.add("view:false()")
    assert "Oren does not notice." in stage.plays("show rope to oren")
    assert recorded() == []


def test_bad_input_gets_one_clear_line_and_nothing_is_shown(stage, model, rope):
    for typed, words in BAD_INPUT.items():
        assert words in one_line(stage.plays(typed)), typed
        assert recorded() == [], typed


def test_shown_description_is_bounded(stage, model, rope):
    rope.db.desc = "x" * 50_000
    stage.plays("show rope to oren")
    (body,) = recorded()
    assert len(body) < 1100


def test_evennias_give_is_seen_and_answered(stage, model, rope):
    stage.plays("give rope to oren")
    stage.waited()
    assert rope.location == stage.npc
    assert recorded() == ["Pim gives you a rope."]
    assert recorded("assistant") == ["Aye."]


def test_evennias_look_is_seen_and_not_answered(stage, model):
    stage.plays("look oren")
    stage.waited()
    assert recorded() == ["Pim looks at you."]
    assert recorded("assistant") == []
