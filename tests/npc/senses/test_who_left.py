"""Turns that are given up because nobody waits for them: the speaker or the NPC is gone."""

import pytest

from evennia_ai.store.history import turns

SLOW = 5.0


@pytest.fixture
def asked(stage):
    """Anna has asked Oren something, and the model still thinks."""
    stage.talks_with("Aye.", "Welcome.", delay_seconds=SLOW)
    stage.quay = stage.make("Quay", "evennia.objects.objects.DefaultRoom", place=None)
    stage.says(stage.anna, "Oren, when does the ferry sail?")
    stage.passes(1)
    return stage


def answers(stage):
    return [body for kind, _, body in stage.records() if kind == "assistant"]


def test_an_answer_nobody_would_hear_is_given_up(asked):
    asked.ben.location = None
    asked.anna.move_to(asked.quay)
    asked.passes(2 * SLOW)
    assert answers(asked) == []
    assert turns.last_turn(asked.npc.ai.ref).state == "failed"
    assert ("event", "", "Anna is leaving Ferry Landing, heading for Quay.") in asked.records()


def test_an_answer_others_hear_is_said(asked):
    asked.anna.move_to(asked.quay)
    asked.passes(2 * SLOW)
    assert answers(asked) == ["Aye."]


def test_an_npc_that_goes_answers_nobody_where_it_was(asked):
    asked.npc.move_to(asked.quay)
    asked.passes(2 * SLOW)
    assert answers(asked) == []
    assert turns.last_turn(asked.npc.ai.ref).state == "failed"


def test_a_deleted_npc_ends_its_turn(asked, logged):
    ref = asked.npc.ai.ref
    asked.npc.delete()
    asked.passes(2 * SLOW)
    assert turns.last_turn(ref).state == "failed"
    assert not asked.running.runtime().scheduler.in_flight(ref)


def test_an_npc_that_cannot_act_any_more_says_nothing(asked):
    asked.npc.why_unable = lambda: "it is dead"
    asked.passes(2 * SLOW)
    assert answers(asked) == []
    assert "it is dead" in turns.last_turn(asked.npc.ai.ref).outcome
