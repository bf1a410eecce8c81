"""The toolbox: the tools in requests, checks of calls, and the results of calls."""

import json
from typing import Any

from tests.npc.tools.acting import a_call, a_toolbox, a_use, an_event, does


def test_toolbox_of_an_npc_without_tools_is_empty(stage: Any) -> None:
    assert a_toolbox(stage).specs == ()


def test_specs_are_sorted_by_name(stage: Any) -> None:
    box = a_toolbox(stage, "say", "look", "pose")
    assert [spec.name for spec in box.specs] == ["look", "pose", "say"]


def test_specs_have_the_same_bytes_in_every_turn(stage: Any) -> None:
    first, second = a_toolbox(stage, "say", "look"), a_toolbox(stage, "look", "say")
    assert json.dumps([dict(s.parameters) for s in first.specs]) == json.dumps(
        [dict(s.parameters) for s in second.specs]
    )


def test_tool_that_no_longer_exists_is_skipped(stage: Any) -> None:
    assert a_toolbox(stage, "say", "fly").names == ("say",)


def test_unknown_tool_gives_an_error_that_lists_the_npcs_tools(
    stage: Any,
) -> None:
    wrong = a_toolbox(stage, "say", "pose").find(a_call("look"))
    assert wrong.text == "There is no tool 'look'; there are: pose, say."


def test_name_of_an_unknown_tool_is_shown_short_and_without_markup(stage: Any) -> None:
    wrong = a_toolbox(stage).find(a_call("x\n\x1b[2J" + "y" * 200))
    assert wrong.text == f"There is no tool 'x [2J{'y' * 35}'; you have none."
    assert wrong.recorded.name == "unknown"


def test_wrong_arguments_are_recorded_as_a_json_object(
    stage: Any,
) -> None:
    wrong = a_toolbox(stage, "say").find(a_call("say", '{"text": "hm'))
    assert (wrong.text, wrong.recorded.arguments) == (
        "The arguments are not one JSON object.",
        "{}",
    )


def test_valid_call_is_recorded_as_written(stage: Any) -> None:
    found = a_toolbox(stage, "say").find(a_call("say", '{"text":   "Aye."}'))
    assert found.recorded.arguments == '{"text":   "Aye."}'


def test_calls_of_a_turn_after_the_eighth_are_refused(stage: Any) -> None:
    box = a_toolbox(stage, "say")
    ran = [does(stage, "say", box=box, text=f"Word {n}.") for n in range(9)]
    assert [one.ok for one in ran] == [True] * 8 + [False]


def test_error_of_a_tool_is_logged_and_the_model_reads_that_it_failed(
    stage: Any, logged: list[str]
) -> None:
    box = a_toolbox(stage, "say")
    found = box.find(a_call("say", text="Aye."))
    stage.npc.at_pre_say = lambda *_, **__: 1 / 0
    ran = box.run(found, a_use(stage))
    assert (ran.ok, ran.text, len(logged)) == (False, "That did not work.", 1)
    assert "ZeroDivisionError" in logged[0]


def test_words_said_by_a_tool_have_the_hops_of_the_turn(stage: Any) -> None:
    second = stage.make("Mira", "evennia_ai.typeclasses.AINPC")
    heard: list[Any] = []
    second.ai.hear = heard.append
    does(stage, "say", event=an_event(stage, hops=1), text="Aye.")
    assert [event.hops for event in heard] == [2]


def test_game_tool_is_used_like_a_shipped_one(stage: Any) -> None:
    from django.test import override_settings

    with override_settings(EVENNIA_AI_TOOLS=["tests.npc.tools.test_registry.Ring"]):
        ran = does(stage, "ring_bell", times=3)
        wrong = a_toolbox(stage, "ring_bell").find(a_call("ring_bell", times="3"))
    assert ran.text == "It rings 3 times."
    assert wrong.text == "ring_bell was not done: 'times': Input should be a valid integer."
