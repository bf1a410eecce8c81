"""Who is around an NPC, and whether an answer still reaches anybody."""

import pytest

from evennia_ai.npc.senses.events import Event
from evennia_ai.npc.senses.presence import can_see, why_gone


def an_event(stage, kind="say", who="anna", **fields):
    speaker = getattr(stage, who)
    values = {
        "speaker_ref": str(speaker.id),
        "speaker_name": speaker.key,
        "text": "Oren!",
        "room_ref": str(stage.room.id),
    }
    return Event(kind=kind, **{**values, **fields})


def elsewhere(stage):
    return stage.make("Quay", "evennia.objects.objects.DefaultRoom", place=None)


def test_while_everybody_is_there_nobody_is_gone(stage):
    assert why_gone(stage.npc, an_event(stage)) == ""


@pytest.mark.parametrize("kind", ["say", "give", "look", "arrive"])
def test_who_left_needs_no_answer_if_nobody_else_hears_it(stage, kind):
    stage.make("Brida", "evennia_ai.typeclasses.AINPC")
    stage.anna.location = elsewhere(stage)
    assert why_gone(stage.npc, an_event(stage, kind)) == ""
    stage.ben.location = None
    assert why_gone(stage.npc, an_event(stage, kind)) == "Anna is not here any more"


def test_who_left_needs_no_answer_to_a_whisper(stage):
    stage.anna.location = elsewhere(stage)
    whisper = an_event(stage, "whisper", private=True)
    assert why_gone(stage.npc, whisper) == "Anna is not here any more"


def test_who_was_deleted_needs_no_answer(stage):
    event = an_event(stage, private=True)
    stage.anna.__dict__.pop("sessions")  # the player has gone before
    stage.anna.delete()
    assert why_gone(stage.npc, event) == "Anna is not here any more"


def test_an_npc_elsewhere_answers_nobody(stage):
    stage.npc.location = elsewhere(stage)
    assert why_gone(stage.npc, an_event(stage)) == "the NPC is somewhere else now"


def test_a_deleted_npc_answers_nobody(stage):
    event = an_event(stage)
    stage.npc.delete()
    assert why_gone(stage.npc, event) == "the NPC is gone"


def test_a_game_may_say_why_an_npc_cannot_act(stage):
    stage.npc.why_unable = lambda: "it is dead"
    assert why_gone(stage.npc, an_event(stage)) == "it is dead"


@pytest.mark.parametrize("fields", [{"kind": "leave"}, {"kind": "tick", "speaker_ref": ""}])
def test_what_nobody_waits_with_is_answered_without_them(stage, fields):
    event = an_event(stage, **fields)
    stage.anna.location = elsewhere(stage)
    assert why_gone(stage.npc, event) == ""


def test_the_rooms_own_rule_says_who_is_seen(stage):
    assert can_see(stage.npc, stage.anna)
    stage.room.filter_visible = lambda found, looker, **kwargs: []
    assert not can_see(stage.npc, stage.anna)
    assert can_see(stage.npc, stage.npc)


def test_an_npc_nowhere_goes_by_the_lock_alone(stage):
    stage.npc.location = None
    assert can_see(stage.npc, stage.anna)
    stage.anna.locks.add("view:false()")
    assert not can_see(stage.npc, stage.anna)


def test_the_invisible_are_not_listed_in_a_prompt(stage):
    stage.ben.locks.add("view:false()")
    place = stage.npc.ai.preview("Oren?", stage.anna).messages
    facts = "\n".join(message.content for message in place)
    assert "Present: Anna." in facts
