"""Tools in whole turns: what others hear, where it is recorded, and with whom it is erased."""

import json
from typing import Any

from evennia_ai.engine.actors import THE_GAME, trusted
from evennia_ai.engine.prompt.messages import ToolCall
from evennia_ai.npc.npc_settings import change_settings
from evennia_ai.services.llm.chat import ChatReply

SECRET = "The barrel behind the shed."


def calling(name: str, said: str = "", **arguments: Any) -> ChatReply:
    call = ToolCall(id="call_0", name=name, arguments=json.dumps(arguments))
    return ChatReply(text=said, model="scripted", tool_calls=(call,))


def shown(request: Any) -> str:
    """Return all texts of a request, including the arguments of calls."""
    return "\n".join(
        part
        for message in request.messages
        for part in (message.content, *(call.arguments for call in message.tool_calls))
    )


def test_whisper_in_a_room_turn_is_in_no_later_prompt_of_the_room(
    stage: Any,
) -> None:
    change_settings(stage.npc, tools=("whisper",), by=THE_GAME)
    model = stage.talks_with(calling("whisper", to="Ben", text=SECRET), "There.", "No idea.")
    stage.says(stage.anna, "Oren, tell Ben where it is.")
    stage.says(stage.anna, "Oren, what did you tell him?")
    assert stage.screen_of(stage.ben).count(f'Oren whispers to you, "{SECRET}"') == 1
    assert [SECRET in shown(request) for request in model.requests] == [False, False, False]


def test_whisper_in_a_room_turn_is_in_later_prompts_of_its_hearer(stage: Any) -> None:
    change_settings(stage.npc, tools=("whisper",), by=THE_GAME)
    model = stage.talks_with(calling("whisper", to="Ben", text=SECRET), "There.", "I said so.")
    stage.says(stage.anna, "Oren, tell Ben where it is.")
    stage.whispers(stage.ben, "Where again?")
    assert SECRET in shown(model.requests[-1])


def test_whisper_in_a_room_turn_is_erased_with_its_hearer(stage: Any) -> None:
    from evennia_ai import models
    from evennia_ai.store.erasing import erase_private

    change_settings(stage.npc, tools=("whisper",), by=THE_GAME)
    stage.talks_with(calling("whisper", to="Ben", text=SECRET), "There.")
    stage.says(stage.anna, "Oren, tell Ben where it is.")
    erase_private(str(stage.ben.id), by=trusted("Mira"))
    rows = models.Record.objects.all()
    assert [row.body for row in rows if SECRET in f"{row.body}{row.meta}"] == []


def test_whisper_that_answers_a_whisper_is_recorded_once(stage: Any) -> None:
    change_settings(stage.npc, tools=("whisper",), by=THE_GAME)
    stage.talks_with(calling("whisper", to="Anna", text=SECRET), "")
    stage.whispers(stage.anna, "Where is it?")
    kinds = [kind for kind, _, body in stage.records("private") if kind != "run_end"]
    assert kinds == ["user", "tool_call", "tool_result"]
    assert stage.screen_of(stage.anna)[-1] == f'Oren whispers to you, "{SECRET}"'


def test_turn_ends_when_the_npc_leaves_by_a_tool(stage: Any) -> None:
    change_settings(stage.npc, tools=("move",), by=THE_GAME)
    hall = stage.make("Hall", "evennia.objects.objects.DefaultRoom", place=None)
    stage.make("north", "evennia.objects.objects.DefaultExit").destination = hall
    model = stage.talks_with(calling("move", said="Farewell.", exit="north"))
    stage.says(stage.anna, "Oren, go away.")
    assert (stage.npc.location, len(model.requests)) == (hall, 1)
    assert 'Oren says, "Farewell."' in stage.screen_of(stage.ben)


def test_gift_to_another_npc_counts_as_an_answer(stage: Any) -> None:
    """Otherwise two NPCs could give a thing to each other without end."""
    other = stage.make("Mira", "evennia_ai.typeclasses.AINPC")
    stage.make("lantern", "evennia.objects.objects.DefaultObject", place=stage.npc)
    change_settings(stage.npc, tools=("give",), by=THE_GAME)
    heard: list[Any] = []
    other.ai.hear = heard.append
    stage.talks_with(calling("give", item="lantern", to="Mira"), "There.")
    stage.says(stage.anna, "Oren, give Mira the lantern.")
    assert [event.hops for event in heard if event.kind == "give"] == [1]


def test_gift_in_answer_to_an_npc_adds_one_hop(stage: Any) -> None:
    from tests.npc.tools.acting import an_event, does

    other = stage.make("Mira", "evennia_ai.typeclasses.AINPC")
    stage.make("lantern", "evennia.objects.objects.DefaultObject", place=stage.npc)
    heard: list[Any] = []
    other.ai.hear = heard.append
    does(stage, "give", event=an_event(stage, hops=2), item="lantern", to="Mira")
    stage.passes()
    assert [event.hops for event in heard if event.kind == "give"] == [3]
