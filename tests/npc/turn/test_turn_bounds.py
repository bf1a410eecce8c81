"""Turns at their limits: results that do not fit, many calls, and replies that come too late."""

import json

import pytest

from evennia_ai.engine.actors import THE_GAME
from evennia_ai.engine.prompt.messages import ToolCall
from evennia_ai.npc.npc_settings import change_settings
from evennia_ai.services.llm.chat import ChatReply
from evennia_ai.store.history import turns
from tests.npc.turn.test_turn_early import Streaming, replies
from tests.npc.turn.test_turn_early import said as said_aloud
from tests.npc.wild_checks import check_calls_are_answered


def looks(times: int = 1) -> ChatReply:
    call = ToolCall(id="call_0", name="look", arguments="{}")
    return ChatReply(text="", model="scripted", tool_calls=(call,) * times)


@pytest.fixture
def looking(stage):
    """Return a stage with an NPC that may look and say, in a room with a long description."""
    stage.room.db.desc = "Planks over black water. " * 200
    change_settings(stage.npc, tools=("look", "say"), by=THE_GAME)
    return stage


class TestResultsThatAreTooLong:
    SMALL = {"context_tokens": 1000, "reply_tokens": 100}

    def test_fallback_line_is_said_when_a_tool_result_does_not_fit(self, looking, logged):
        model = looking.talks_with(looks(), **self.SMALL)
        looking.says(looking.anna, "Oren, what do you see?")

        assert len(model.requests) == 1
        assert "do not fit" in logged[-1]
        assert looking.npc.ai.fallback_line in looking.screen_of(looking.anna)[-1]
        assert turns.last_turn(looking.npc.ai.ref).state == "done"

    def test_later_turns_answer_and_contain_no_call_without_its_result(self, looking, logged):
        model = looking.talks_with(looks(), *["Aye."] * 9, **self.SMALL)
        looking.says(looking.anna, "Oren, what do you see?")
        for number in range(4):
            looking.says(looking.anna, f"Oren, and now, for the {number}th time?")

        assert looking.screen_of(looking.anna)[-1] == 'Oren says, "Aye."'
        for request in model.requests:
            check_calls_are_answered(request.messages)

    def test_calls_and_results_are_cut_from_the_history_together(self, looking, logged):
        looking.room.db.desc = "Planks."
        model = looking.talks_with(
            lambda request: "Aye." if request.messages[-1].role == "tool" else looks(),
            **self.SMALL,
        )
        for number in range(20):
            looking.says(looking.anna, f"Oren, what do you see now, for the {number}th time?")

        assert len(model.requests) >= 30
        for request in model.requests:
            check_calls_are_answered(request.messages)


class TestManyCallsAtOnce:
    def test_calls_over_the_limit_are_refused_and_further_ones_not_recorded(self, looking, logged):
        looking.room.db.desc = "Planks."
        model = looking.talks_with(looks(40), "Aye.")
        looking.says(looking.anna, "Oren?")

        results = [m.content for m in model.requests[1].messages if m.role == "tool"]
        assert len(results) == 16
        assert sum("Not done" in result for result in results) == 8
        check_calls_are_answered(model.requests[1].messages)


class TestListening:
    @pytest.fixture
    def model(self, looking):
        made = Streaming()
        looking.install(made, given_profiles={"default": {"speaks_early": True}})
        looking.says(looking.anna, "Oren, does the ferry run?")
        return made

    def test_nothing_is_said_after_a_turn_was_given_up(self, looking, model):
        looking.npc.ai.gone()
        model.writes("Aye, at dusk. Bring")

        assert said_aloud(looking) == []
        assert replies(looking) == []

    def test_turn_given_up_during_its_reply_ends_with_the_words_said_so_far(
        self, looking, model, logged
    ):
        heard = looking.room.msg_contents

        def gone(*args, **kwargs):
            heard(*args, **kwargs)
            looking.npc.ai.gone()

        looking.room.msg_contents = gone
        model.writes("Aye, at dusk. Bring")
        looking.passes()

        assert said_aloud(looking) == ['Oren says, "Aye, at dusk."']
        assert replies(looking)[-1] == ("assistant", "Aye, at dusk. —")
        assert turns.last_turn(looking.npc.ai.ref).state == "failed"
        assert not looking.npc.ai.is_busy

    def test_rest_of_a_reply_is_not_said_in_another_round(self, looking, model):
        first = model.listener
        call = ToolCall(id="x", name="say", arguments=json.dumps({"text": "Hm."}))
        model.asked.callback(ChatReply(text="", model="streaming", tool_calls=(call,)))
        first("Aye, at dusk. Bring")

        assert said_aloud(looking) == ['Oren says, "Hm."']
