"""Errands: an action that takes long ends with an event, which says only that it has ended."""

import json

import pytest
from twisted.internet.defer import Deferred

from evennia_ai.engine.actors import THE_GAME
from evennia_ai.engine.prompt.messages import ToolCall
from evennia_ai.npc.npc_settings import change_settings
from evennia_ai.npc.tools import registry as tools
from evennia_ai.npc.tools.tool import Tool
from evennia_ai.npc.turn import acting as running
from evennia_ai.services.llm.chat import ChatReply
from evennia_ai.store.history import errands

RESULT = "The bell hangs in the chapel of Saltholm."


class Ask(Tool):
    """A tool that sends a boy to the harbour master, whose answer takes long."""

    name = "ask_the_master"
    description = "Send the boy to ask the harbour master."
    later = True
    asked: list[Deferred] = []

    def run(self, use, arguments):
        self.asked.append(Deferred())
        return self.asked[-1]


def a_call(name: str, **arguments) -> ChatReply:
    call = ToolCall(id="x", name=name, arguments=json.dumps(arguments))
    return ChatReply(text="", model="scripted", tool_calls=(call,))


@pytest.fixture
def asking(stage, monkeypatch):
    Ask.asked.clear()
    found = tools.registry_of(("tests.npc.turn.test_errands.Ask",))
    monkeypatch.setattr("evennia_ai.npc.tools.registry.registry", lambda: found)
    change_settings(stage.npc, tools=("ask_the_master",), by=THE_GAME)
    return stage


def ends(stage, text: str = RESULT) -> None:
    Ask.asked[-1].callback(text)
    stage.passes()


def test_turn_goes_on_while_an_errand_runs(asking):
    model = asking.talks_with(a_call("ask_the_master"), "I have sent the boy.")
    asking.says(asking.anna, "Oren, where is the bell?")

    assert model.requests[1].messages[-1].content == (
        "Errand 1 has begun: ask_the_master. You will be told when it is done."
    )
    assert asking.screen_of(asking.anna)[-1] == 'Oren says, "I have sent the boy."'


@pytest.mark.req("S2-25")
def test_end_of_an_errand_is_an_event_and_the_npc_reads_the_result_with_a_tool(asking):
    model = asking.talks_with(
        a_call("ask_the_master"),
        "I have sent the boy.",
        a_call("errand_result", number=1),
        "He says it hangs in the chapel.",
    )
    asking.says(asking.anna, "Oren, where is the bell?")
    ends(asking)

    told = [body for kind, _, body in asking.records() if kind == "event"]
    assert told == ["Errand 1 (ask_the_master) has ended; errand_result tells the outcome."]
    assert "chapel" not in str(model.requests[2].messages)
    assert RESULT in model.requests[3].messages[-1].content
    assert asking.screen_of(asking.anna)[-1] == 'Oren says, "He says it hangs in the chapel."'


def test_errand_result_is_offered_together_with_a_tool_that_takes_long(asking):
    model = asking.talks_with("Aye.")
    asking.says(asking.anna, "Oren?")

    assert [tool.name for tool in model.requests[0].tools] == ["ask_the_master", "errand_result"]


def test_result_of_a_whispered_errand_is_not_said_aloud(asking):
    model = asking.talks_with(
        a_call("ask_the_master"), "Sent.", "Done, I hear.", a_call("errand_result", number=1), "No."
    )
    asking.whispers(asking.anna, "ask about the bell")
    ends(asking)
    asking.says(asking.anna, "Oren, what did he say?")

    assert model.requests[-1].messages[-1].content == "There is no errand 1."
    assert [kind for kind, _, _ in asking.records("room")].count("event") == 0


def test_failed_errand_says_that_it_failed(asking):
    asking.talks_with(a_call("ask_the_master"), "Sent.", "Hm.")
    asking.says(asking.anna, "Oren, where is the bell?")
    Ask.asked[-1].errback(RuntimeError("the boy fell into the water"))
    asking.passes()

    errand = errands.get_errand(asking.npc.ai.ref, 1)
    assert (errand.state, errand.result) == ("failed", "That did not work.")


def test_errand_that_never_ends_is_given_up(asking):
    asking.talks_with(a_call("ask_the_master"), "Sent.", "Hm.")
    asking.says(asking.anna, "Oren, where is the bell?")
    asking.passes(running.ERRAND_SECONDS + 1)

    assert errands.get_errand(asking.npc.ai.ref, 1).state == "failed"


def test_errand_is_recorded_as_lost_after_a_restart_without_an_answer(asking):
    model = asking.talks_with(a_call("ask_the_master"), "Sent.")
    asking.says(asking.anna, "Oren, where is the bell?")

    assert running.close_lost(begun_before=errands.time.time() + 1) == 1
    asking.passes()
    assert errands.get_errand(asking.npc.ai.ref, 1).state == "lost"
    assert asking.records()[-1][2].startswith("Errand 1 (ask_the_master) has ended")
    assert len(model.requests) == 2
    ends(asking)
    assert errands.get_errand(asking.npc.ai.ref, 1).state == "lost"
