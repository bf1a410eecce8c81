"""The tools say and pose: cleaned like replies, allowed by the game, and shown as plain text."""

from typing import Any

from tests.npc.tools.acting import does


def test_say_is_heard_by_everybody_in_the_room(stage: Any) -> None:
    ran = does(stage, "say", text="Mind the step.")
    assert (ran.text, ran.ok, ran.spoke) == ('You say: "Mind the step."', True, True)
    assert stage.screen_of(stage.ben) == ['Oren says, "Mind the step."']


def test_say_cleans_words_like_a_reply(stage: Any) -> None:
    does(stage, "say", text='<think>hm</think> Oren: "Mind the step."\nAnna: I do.')
    assert stage.screen_of(stage.ben) == ['Oren says, "Mind the step."']


def test_say_is_refused_when_the_text_is_only_reasoning(stage: Any) -> None:
    ran = does(stage, "say", text="<think>I say nothing.</think>")
    assert (ran.ok, ran.text) == (False, "Not done: nothing of it can be said aloud.")
    assert stage.screen_of(stage.ben) == []


def test_say_is_refused_when_a_hook_forbids_it(stage: Any) -> None:
    stage.npc.at_pre_say = lambda message, **_: None
    ran = does(stage, "say", text="Mind the step.")
    assert (ran.ok, ran.text) == (False, "Not done: you cannot speak now.")
    assert stage.screen_of(stage.ben) == []


def test_say_uses_the_words_as_changed_by_a_hook(stage: Any) -> None:
    stage.npc.at_pre_say = lambda message, **_: message.upper()
    assert does(stage, "say", text="Mind the step.").text == 'You say: "MIND THE STEP."'


def test_pose_is_shown_with_the_name_once(stage: Any) -> None:
    ran = does(stage, "pose", action="*Oren looks up.*")
    assert (ran.text, ran.spoke) == ("You did it: Oren looks up.", True)
    assert stage.screen_of(stage.anna) == ["Oren looks up."]


def test_empty_pose_is_refused(stage: Any) -> None:
    assert not does(stage, "pose", action="* *").ok
