"""The command `read`: letters and books of NPCs, and other things with words on them."""

import pytest
from evennia.objects.objects import DefaultObject
from evennia.utils.create import create_object

from evennia_ai.npc.writings import writing_by
from tests.commands.stage import one_line


@pytest.fixture
def letter(stage):
    made = writing_by(
        stage.npc, form="letter", title="Low water", text="Dear Pim,\n\nmind |rthe|n {x} tide."
    )
    made.location = stage.player
    return made


@pytest.mark.req("S0-31")
@pytest.mark.parametrize(
    "typed", ["read letter", 'read letter "low water"', "read low water", "READ Letter"]
)
def test_read_shows_what_an_npc_wrote(stage, letter, typed):
    assert stage.plays(typed) == (
        'letter "Low water", by Oren\n\nDear Pim,\n\nmind |rthe|n {x} tide.'
    )


def test_read_tells_the_writing_who_has_read_it(stage, letter, monkeypatch):
    readers = []
    monkeypatch.setattr(type(letter), "at_read", lambda self, reader: readers.append(reader))
    stage.plays("read letter")
    assert readers == [stage.player]


def test_read_takes_the_name_that_look_shows(stage, letter):
    hint = stage.plays("look letter").splitlines()[-1]
    assert hint == 'It can be read: read letter "Low water"'
    assert "Dear Pim" in stage.plays(hint.partition(": ")[2])


def test_read_works_for_things_in_the_room(stage, letter):
    letter.location = stage.room
    assert "Dear Pim" in stage.plays("read letter")


def test_read_refuses_what_another_character_carries(stage, letter):
    letter.location = stage.builder
    assert one_line(stage.plays("read letter")) == "There is no 'letter' here to read."


def test_read_refuses_hidden_things(stage, letter):
    letter.locks.add("view:perm(Builder)")
    assert one_line(stage.plays("read letter")) == "There is no 'letter' here to read."


def test_read_obeys_the_read_lock(stage, letter):
    letter.locks.add("read:perm(Builder)")
    told = one_line(stage.plays("read letter"))
    assert told == 'You cannot read letter "Low water".'


def test_a_letter_is_carried_given_and_dropped_like_any_thing(stage, letter):
    stage.plays("drop letter", "get letter", "give letter to mara")
    assert letter.location == stage.builder
    assert "Dear Pim" in stage.builds("read letter")


def test_read_of_a_thing_without_text_looks_at_it(stage):
    sign = create_object(DefaultObject, key="sign", location=stage.room, nohome=True)
    sign.db.desc = "No swimming."
    assert "No swimming." in stage.plays("read sign")
    assert stage.plays("read sign") == stage.plays("look sign")


def test_read_asks_back_if_two_names_match(stage, letter):
    other = writing_by(stage.npc, form="letter", title="High water", text="Hm.")
    other.location = stage.player
    told = one_line(stage.plays("read letter"))
    assert told == '\'letter\' could be letter "High water", letter "Low water"; name one of them.'
    assert "Hm." in stage.plays("read high water")


def test_read_takes_either_of_two_same_names(stage):
    for _ in range(2):
        writing_by(stage.npc, form="letter", title="", text="Hm.").location = stage.player
    assert "Hm." in stage.plays("read letter")


@pytest.mark.parametrize("typed", ["read", "read ", "read   "])
def test_read_without_a_name_shows_the_usage(stage, typed):
    assert one_line(stage.plays(typed)) == "Usage: read <thing>."


@pytest.mark.parametrize(
    "name", ["nothing", "|lcquit|ltx|le", "$eval(1)", "{x}", "#99999", "*Pim", "x" * 900]
)
def test_read_of_a_missing_thing_is_one_line(stage, name):
    told = one_line(stage.plays(f"read {name}"))
    assert told.startswith(("There is no '", "You cannot"))
