"""Saying and posing by tools: cleaned like replies, allowed by the game, seen as plain text."""

from typing import Any

from tests.npc.tools.acting import does


def test_what_is_said_is_heard_by_everybody_there(stage: Any) -> None:
    ran = does(stage, "say", text="Mind the step.")
    assert (ran.text, ran.ok, ran.spoke) == ('You say: "Mind the step."', True, True)
    assert stage.screen_of(stage.ben) == ['Oren says, "Mind the step."']


def test_what_is_said_is_cleaned_as_a_reply_is(stage: Any) -> None:
    does(stage, "say", text='<think>hm</think> Oren: "Mind the step."\nAnna: I do.')
    assert stage.screen_of(stage.ben) == ['Oren says, "Mind the step."']


def test_of_hidden_reasoning_alone_nothing_is_said(stage: Any) -> None:
    ran = does(stage, "say", text="<think>I say nothing.</think>")
    assert (ran.ok, ran.text) == (False, "Not done: nothing of it can be said aloud.")
    assert stage.screen_of(stage.ben) == []


def test_the_game_may_forbid_the_npc_to_speak(stage: Any) -> None:
    stage.npc.at_pre_say = lambda message, **_: None
    ran = does(stage, "say", text="Mind the step.")
    assert (ran.ok, ran.text) == (False, "Not done: you cannot speak now.")
    assert stage.screen_of(stage.ben) == []


def test_the_game_may_change_what_the_npc_says(stage: Any) -> None:
    stage.npc.at_pre_say = lambda message, **_: message.upper()
    assert does(stage, "say", text="Mind the step.").text == 'You say: "MIND THE STEP."'


def test_a_pose_is_seen_with_the_name_before_it_once(stage: Any) -> None:
    ran = does(stage, "pose", action="*Oren looks up.*")
    assert (ran.text, ran.spoke) == ("You did it: Oren looks up.", True)
    assert stage.screen_of(stage.anna) == ["Oren looks up."]


def test_a_pose_of_nothing_is_refused(stage: Any) -> None:
    assert not does(stage, "pose", action="* *").ok
