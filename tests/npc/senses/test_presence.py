"""Who is near an NPC, and whether anybody can still hear an answer."""

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


def test_why_gone_is_empty_when_speaker_and_npc_are_present(stage):
    assert why_gone(stage.npc, an_event(stage)) == ""


@pytest.mark.parametrize("kind", ["say", "give", "look", "arrive"])
def test_why_gone_names_an_absent_speaker_only_when_no_player_could_hear(stage, kind):
    stage.make("Brida", "evennia_ai.typeclasses.AINPC")
    stage.anna.location = elsewhere(stage)
    assert why_gone(stage.npc, an_event(stage, kind)) == ""
    stage.ben.location = None
    assert why_gone(stage.npc, an_event(stage, kind)) == "Anna is not here any more"


def test_why_gone_names_an_absent_speaker_of_a_whisper(stage):
    stage.anna.location = elsewhere(stage)
    whisper = an_event(stage, "whisper", private=True)
    assert why_gone(stage.npc, whisper) == "Anna is not here any more"


def test_why_gone_names_a_deleted_speaker(stage):
    event = an_event(stage, private=True)
    stage.anna.__dict__.pop("sessions")  # the player logs out first
    stage.anna.delete()
    assert why_gone(stage.npc, event) == "Anna is not here any more"


def test_why_gone_says_that_the_npc_is_elsewhere(stage):
    stage.npc.location = elsewhere(stage)
    assert why_gone(stage.npc, an_event(stage)) == "the NPC is somewhere else now"


def test_why_gone_says_that_the_npc_was_deleted(stage):
    event = an_event(stage)
    stage.npc.delete()
    assert why_gone(stage.npc, event) == "the NPC is gone"


def test_why_gone_returns_the_reason_of_why_unable(stage):
    stage.npc.why_unable = lambda: "it is dead"
    assert why_gone(stage.npc, an_event(stage)) == "it is dead"


@pytest.mark.parametrize("fields", [{"kind": "leave"}, {"kind": "tick", "speaker_ref": ""}])
def test_why_gone_is_empty_for_departures_and_ticks_without_the_speaker(stage, fields):
    event = an_event(stage, **fields)
    stage.anna.location = elsewhere(stage)
    assert why_gone(stage.npc, event) == ""


def test_can_see_follows_filter_visible_of_the_room(stage):
    assert can_see(stage.npc, stage.anna)
    stage.room.filter_visible = lambda found, looker, **kwargs: []
    assert not can_see(stage.npc, stage.anna)
    assert can_see(stage.npc, stage.npc)


def test_can_see_follows_the_view_lock_when_npc_has_no_location(stage):
    stage.npc.location = None
    assert can_see(stage.npc, stage.anna)
    stage.anna.locks.add("view:false()")
    assert not can_see(stage.npc, stage.anna)


def test_prompt_does_not_list_invisible_characters(stage):
    stage.ben.locks.add("view:false()")
    place = stage.npc.ai.preview("Oren?", stage.anna).messages
    facts = "\n".join(message.content for message in place)
    assert "Present: Anna." in facts
