"""Stopping: no model is asked while the game is stopped, whoever asks."""

from typing import Any

import pytest
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock

from evennia_ai.game.models.stop import (
    ModelStopped,
    Stoppable,
    is_paused,
    is_stopped,
    refuse_if_stopped,
    why_halted,
)
from evennia_ai.llm.chat import ChatMessage, ChatRequest
from evennia_ai.llm.clients.scripted import ScriptedModel
from evennia_ai.store.calls.halts import Halt, halt, release

REQUEST = ChatRequest(
    messages=(ChatMessage(role="user", content="hello"),),
    model="",
    max_tokens=10,
    timeout_seconds=5.0,
)
STOP = Halt(npc_ref="", halted_by="Mira", halted_at=5.0, reason="spam")


@pytest.fixture(autouse=True)
def _fresh(stage: Any) -> None:
    """A database and snapshots of the test's own."""


def outcome_of(asked: "Deferred[Any]") -> Any:
    found: list[Any] = []
    asked.addBoth(found.append)
    return found[0] if found else None


def a_slow_model() -> tuple[Clock, ScriptedModel]:
    clock = Clock()
    return clock, ScriptedModel("well met", delay_seconds=2.0, clock=clock)


def test_the_game_is_stopped_until_it_is_released() -> None:
    assert is_stopped() == ""
    halt(STOP)
    assert is_stopped() == "stopped by Mira: spam"
    release("")
    assert is_stopped() == ""


def test_a_paused_npc_is_paused_alone(stage: Any) -> None:
    halt(Halt(npc_ref=stage.npc.ai.ref, halted_by="Mira", halted_at=5.0))
    assert is_paused(stage.npc)
    assert not is_paused(stage.anna)
    assert why_halted(stage.npc.ai.ref) == "paused by Mira"
    assert is_stopped() == ""


def test_a_stopped_game_halts_every_npc_without_pausing_it(stage: Any) -> None:
    halt(STOP)
    assert why_halted(stage.npc.ai.ref) == "stopped by Mira: spam"
    assert not is_paused(stage.npc)


def test_whoever_asks_in_another_way_is_refused_too(stage: Any) -> None:
    refuse_if_stopped("small")
    halt(STOP)
    with pytest.raises(ModelStopped, match="model 'small' is not asked: stopped by Mira: spam"):
        refuse_if_stopped("small")


def test_a_model_is_asked_while_the_game_runs() -> None:
    model = Stoppable(ScriptedModel("well met"))
    assert outcome_of(model.complete(REQUEST)).text == "well met"


def test_no_model_is_asked_while_the_game_is_stopped() -> None:
    model = ScriptedModel("well met")
    asked = Stoppable(model)
    halt(STOP)
    failure = outcome_of(asked.complete(REQUEST))
    assert failure.check(ModelStopped)
    assert model.requests == []


def test_what_is_under_way_is_given_up_when_the_game_is_stopped() -> None:
    clock, model = a_slow_model()
    stoppable = Stoppable(model)
    asked = stoppable.complete(REQUEST)
    assert stoppable.give_up("stopped by Mira") == 1
    failure = outcome_of(asked)
    assert failure.check(ModelStopped)
    assert failure.value.why == "stopped by Mira"
    clock.advance(5)


def test_a_call_that_is_given_up_is_cancelled_at_the_model() -> None:
    clock, model = a_slow_model()
    stoppable = Stoppable(model)
    stoppable.complete(REQUEST).addErrback(lambda _: None)
    stoppable.give_up("stopped")
    assert clock.getDelayedCalls() == []


def test_a_slow_reply_comes_through() -> None:
    clock, model = a_slow_model()
    stoppable = Stoppable(model)
    asked = stoppable.complete(REQUEST)
    clock.advance(2)
    assert outcome_of(asked).text == "well met"
    assert stoppable.give_up("stopped") == 0


def test_a_caller_can_still_cancel_its_call() -> None:
    clock, model = a_slow_model()
    asked = Stoppable(model).complete(REQUEST)
    asked.cancel()
    assert outcome_of(asked).check(CancelledError)
    assert clock.getDelayedCalls() == []


def test_it_is_named_as_what_is_behind_it() -> None:
    model = ScriptedModel("", name="small")
    asked = Stoppable(model)
    asked.close()
    assert (asked.name, asked.offline, asked.behind) == ("small", False, model)
    assert model.closed
