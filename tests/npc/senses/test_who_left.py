"""Turns that are cancelled because the speaker or the NPC is gone."""

import pytest

from evennia_ai.store.history import turns

SLOW = 5.0


@pytest.fixture
def asked(stage):
    """The stage after Anna asked Oren, whose model has not replied yet."""
    stage.talks_with("Aye.", "Welcome.", delay_seconds=SLOW)
    stage.quay = stage.make("Quay", "evennia.objects.objects.DefaultRoom", place=None)
    stage.says(stage.anna, "Oren, when does the ferry sail?")
    stage.passes(1)
    return stage


def answers(stage):
    return [body for kind, _, body in stage.records() if kind == "assistant"]


def test_turn_is_cancelled_when_the_speaker_and_all_listeners_left(asked):
    asked.ben.location = None
    asked.anna.move_to(asked.quay)
    asked.passes(2 * SLOW)
    assert answers(asked) == []
    assert turns.last_turn(asked.npc.ai.ref).state == "failed"
    assert ("event", "", "Anna is leaving Ferry Landing, heading for Quay.") in asked.records()


def test_npc_answers_when_the_speaker_left_and_others_listen(asked):
    asked.anna.move_to(asked.quay)
    asked.passes(2 * SLOW)
    assert answers(asked) == ["Aye."]


def test_turn_is_cancelled_when_the_npc_moves_away(asked):
    asked.npc.move_to(asked.quay)
    asked.passes(2 * SLOW)
    assert answers(asked) == []
    assert turns.last_turn(asked.npc.ai.ref).state == "failed"


def test_turn_is_cancelled_when_the_npc_is_deleted(asked, logged):
    ref = asked.npc.ai.ref
    asked.npc.delete()
    asked.passes(2 * SLOW)
    assert turns.last_turn(ref).state == "failed"
    assert not asked.running.runtime().scheduler.in_flight(ref)


def test_turn_fails_when_the_npc_can_no_longer_act(asked):
    asked.npc.why_unable = lambda: "it is dead"
    asked.passes(2 * SLOW)
    assert answers(asked) == []
    assert "it is dead" in turns.last_turn(asked.npc.ai.ref).outcome
