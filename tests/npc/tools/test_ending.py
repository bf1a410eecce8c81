"""The tool that ends a conversation."""

from typing import Any

from evennia_ai.engine.actors import THE_GAME
from evennia_ai.npc.npc_settings import change_settings
from tests.npc.tools.acting import an_event, does
from tests.npc.tools.test_in_turns import calling


def test_speaker_must_call_the_npc_by_name_after_the_conversation_was_ended(stage: Any) -> None:
    change_settings(stage.npc, tools=("end_conversation",), by=THE_GAME)
    model = stage.talks_with(calling("end_conversation", said="Farewell."), "Yes?")
    stage.says(stage.anna, "Oren, that is all.")
    stage.says(stage.anna, "Are you there?")
    assert len(model.requests) == 1
    stage.says(stage.anna, "Oren?")
    assert stage.screen_of(stage.ben)[-1] == 'Oren says, "Yes?"'


def test_last_words_are_said_when_the_conversation_is_ended(stage: Any) -> None:
    change_settings(stage.npc, tools=("end_conversation",), by=THE_GAME)
    stage.talks_with(calling("end_conversation", said="Farewell."))
    stage.says(stage.anna, "Oren, that is all.")
    assert stage.screen_of(stage.ben)[-1] == 'Oren says, "Farewell."'


def test_conversation_begins_again_when_the_speaker_calls_the_npc(stage: Any) -> None:
    change_settings(stage.npc, tools=("end_conversation",), by=THE_GAME)
    model = stage.talks_with(calling("end_conversation"), "Yes?", "At dusk.")
    stage.says(stage.anna, "Oren, that is all.")
    stage.says(stage.anna, "Oren?")
    stage.says(stage.anna, "When do we sail?")
    assert len(model.requests) == 3


def test_other_speakers_stay_in_conversation_when_one_is_ended(stage: Any) -> None:
    change_settings(stage.npc, tools=("end_conversation",), by=THE_GAME)
    model = stage.talks_with("Yes?", calling("end_conversation"), "At dusk.")
    stage.says(stage.ben, "Oren?")
    stage.says(stage.anna, "Oren, that is all.")
    stage.says(stage.ben, "When do we sail?")
    assert len(model.requests) == 3


def test_tool_end_conversation_returns_that_the_conversation_ended(stage: Any) -> None:
    ran = does(stage, "end_conversation")
    assert (ran.text, ran.ends_turn) == ("You ended the conversation with Anna.", True)


def test_end_conversation_is_refused_when_nobody_is_answered(stage: Any) -> None:
    from dataclasses import replace

    event = replace(an_event(stage), speaker_ref="", speaker_name="")
    assert does(stage, "end_conversation", event=event).text == (
        "You are in conversation with nobody."
    )
