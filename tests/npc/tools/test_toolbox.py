"""The toolbox: what a request says of tools, which calls are found, how what is run ends."""

import json
from typing import Any

from tests.npc.tools.acting import a_call, a_toolbox, a_use, an_event, does


def test_an_npc_without_tools_has_none(stage: Any) -> None:
    assert a_toolbox(stage).specs == ()


def test_the_specs_are_sorted_by_name_however_they_were_chosen(stage: Any) -> None:
    box = a_toolbox(stage, "say", "look", "pose")
    assert [spec.name for spec in box.specs] == ["look", "pose", "say"]


def test_the_specs_are_the_same_bytes_in_every_turn(stage: Any) -> None:
    first, second = a_toolbox(stage, "say", "look"), a_toolbox(stage, "look", "say")
    assert json.dumps([dict(s.parameters) for s in first.specs]) == json.dumps(
        [dict(s.parameters) for s in second.specs]
    )


def test_a_tool_that_the_game_has_not_any_more_is_left_out(stage: Any) -> None:
    assert a_toolbox(stage, "say", "fly").names == ("say",)


def test_a_tool_that_the_npc_has_not_is_unknown_and_the_error_names_those_there_are(
    stage: Any,
) -> None:
    wrong = a_toolbox(stage, "say", "pose").find(a_call("look"))
    assert wrong.text == "There is no tool 'look'; there are: pose, say."


def test_the_name_of_an_unknown_tool_is_told_without_markup_and_short(stage: Any) -> None:
    wrong = a_toolbox(stage).find(a_call("x\n\x1b[2J" + "y" * 200))
    assert wrong.text == f"There is no tool 'x [2J{'y' * 35}'; you have none."
    assert wrong.recorded.name == "unknown"


def test_wrong_arguments_are_recorded_as_an_object_that_later_requests_can_show(
    stage: Any,
) -> None:
    wrong = a_toolbox(stage, "say").find(a_call("say", '{"text": "hm'))
    assert (wrong.text, wrong.recorded.arguments) == (
        "The arguments are not one JSON object.",
        "{}",
    )


def test_a_call_that_is_right_is_recorded_as_the_model_wrote_it(stage: Any) -> None:
    found = a_toolbox(stage, "say").find(a_call("say", '{"text":   "Aye."}'))
    assert found.recorded.arguments == '{"text":   "Aye."}'


def test_more_than_eight_calls_of_a_turn_are_refused(stage: Any) -> None:
    box = a_toolbox(stage, "say")
    ran = [does(stage, "say", box=box, text=f"Word {n}.") for n in range(9)]
    assert [one.ok for one in ran] == [True] * 8 + [False]


def test_what_a_tool_raises_is_logged_and_the_model_is_told_that_it_did_not_work(
    stage: Any, logged: list[str]
) -> None:
    box = a_toolbox(stage, "say")
    found = box.find(a_call("say", text="Aye."))
    stage.npc.at_pre_say = lambda *_, **__: 1 / 0
    ran = box.run(found, a_use(stage))
    assert (ran.ok, ran.text, len(logged)) == (False, "That did not work.", 1)
    assert "ZeroDivisionError" in logged[0]


def test_hops_are_carried_into_what_is_said(stage: Any) -> None:
    second = stage.make("Mira", "evennia_ai.typeclasses.AINPC")
    heard: list[Any] = []
    second.ai.hear = heard.append
    does(stage, "say", event=an_event(stage, hops=1), text="Aye.")
    assert [event.hops for event in heard] == [2]


def test_a_tool_of_the_game_is_used_as_ours_are(stage: Any) -> None:
    from django.test import override_settings

    with override_settings(EVENNIA_AI_TOOLS=["tests.npc.tools.test_registry.Ring"]):
        ran = does(stage, "ring_bell", times=3)
        wrong = a_toolbox(stage, "ring_bell").find(a_call("ring_bell", times="3"))
    assert ran.text == "It rings 3 times."
    assert wrong.text == "ring_bell was not done: 'times': Input should be a valid integer."
