"""The emergency stop in a game in which players speak to NPCs."""

from typing import Any

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import StoreError
from evennia_ai.npc.jobs.counting import ModelStopped
from evennia_ai.npc.mind import emergency
from evennia_ai.npc.mind.emergency import Stopped
from evennia_ai.npc.model_calls.calls import CountedCall
from evennia_ai.npc.model_calls.limits import CallKey, is_stopped, why_halted
from evennia_ai.npc.runtime import runtime
from evennia_ai.services.llm.chat import ChatMessage, ChatRequest
from evennia_ai.store.core.snapshots import forget_everything
from evennia_ai.store.history.turns import last_turn

REQUEST = ChatRequest(
    messages=(ChatMessage(role="user", content="hello"),),
    model="",
    max_tokens=10,
    timeout_seconds=5.0,
)


def said(stage: Any) -> list[str]:
    return [line for line in stage.screen_of(stage.ben) if line.startswith("Oren says")]


@pytest.fixture
def busy(stage: Any) -> Any:
    """Let Oren answer Anna, with two more lines waiting for an answer."""
    stage.talks_with("Aye.", "Aye.", "Aye.", "Aye.", delay_seconds=3.0)
    for speaker in (stage.anna, stage.ben, stage.anna):
        stage.says(speaker, "Oren, are you there?")
    assert runtime().scheduler.waiting(stage.npc.ai.ref) == 2
    return stage


def test_lines_said_during_a_stop_are_recorded(busy: Any) -> None:
    emergency.stop_all(by=trusted("Mira"))
    busy.says(busy.anna, "Oren, and now?")
    assert ("user", "Anna", "Oren, and now?") in busy.records()


def test_release_returns_false_when_nothing_was_stopped(stage: Any) -> None:
    assert not emergency.start_all(by=trusted("Mira"))
    assert not emergency.resume(stage.npc, by=trusted("Mira"))


def test_pause_gives_up_only_the_calls_of_the_paused_npc(stage: Any) -> None:
    stage.talks_with("Aye.", "Aye.", delay_seconds=3.0)
    outcomes: list[Any] = []
    for ref in (stage.npc.ai.ref, "4711"):
        key = CallKey(npc_ref=ref, role="decider")
        call = CountedCall(runtime().calls, runtime().access, key)
        call.ask(REQUEST).addBoth(outcomes.append)
    assert emergency.pause(stage.npc, by=trusted("Mira")).given_up == 1
    stage.passes(3)
    assert outcomes[0].check(ModelStopped)
    assert outcomes[0].value.why == "paused by Mira"
    assert outcomes[1].text == "Aye."


def test_stop_gives_up_the_calls_of_all_npcs(stage: Any) -> None:
    stage.talks_with("Aye.", "Aye.", delay_seconds=3.0)
    outcomes: list[Any] = []
    for ref in (stage.npc.ai.ref, "lorekeeper"):
        call = CountedCall(runtime().calls, runtime().access, CallKey(npc_ref=ref))
        call.ask(REQUEST).addBoth(outcomes.append)
    assert emergency.stop_all(by=trusted("Mira")).given_up == 2
    assert [outcome.value.why for outcome in outcomes] == ["stopped by Mira", "stopped by Mira"]


def test_no_model_is_asked_while_all_npcs_are_stopped(stage: Any) -> None:
    model = stage.talks_with("Aye.")
    emergency.stop_all(by=trusted("Mira"), reason="spam")
    outcomes: list[Any] = []
    call = CountedCall(runtime().calls, runtime().access, CallKey(npc_ref="lorekeeper"))
    call.ask(REQUEST).addBoth(outcomes.append)
    assert "is not asked: stopped by Mira: spam" in outcomes[0].getErrorMessage()
    assert model.requests == []


def test_stop_and_release_are_logged(stage: Any, logged: list[str]) -> None:
    emergency.stop_all(by=trusted("Mira"), reason="spam")
    emergency.start_all(by=trusted("Tom"))
    emergency.pause(stage.npc, by=trusted("Mira"))
    ref = stage.npc.id
    assert logged == [
        "evennia_ai: ALL NPCS: stopped by Mira: spam",
        "evennia_ai: ALL NPCS: may answer again, released by Tom",
        f"evennia_ai: NPC {ref}: paused by Mira",
    ]


def test_nothing_is_stopped_when_the_database_refuses(
    busy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(new: Any, **_: Any) -> None:
        raise StoreError("away")

    monkeypatch.setattr(emergency, "add_halt", refuses)
    with pytest.raises(StoreError):
        emergency.stop_all(by=trusted("Mira"))
    assert runtime().scheduler.waiting(busy.npc.ai.ref) == 2


def test_stop_drops_pending_answers_and_gives_up_running_ones(busy: Any) -> None:
    assert emergency.stop_all(by=trusted("Mira"), reason="spam") == Stopped(dropped=3, given_up=1)
    busy.passes(10)
    assert said(busy) == []
    assert len(busy.model.requests) == 1
    assert busy.npc.ai.waiting_records() == frozenset()


def test_nobody_is_answered_while_all_npcs_are_stopped(busy: Any) -> None:
    emergency.stop_all(by=trusted("Mira"))
    busy.says(busy.anna, "Oren, and now?")
    busy.passes(10)
    assert said(busy) == []
    assert len(busy.model.requests) == 1


def test_npcs_answer_again_after_the_release(busy: Any) -> None:
    emergency.stop_all(by=trusted("Mira"))
    busy.passes(10)
    assert emergency.start_all(by=trusted("Mira"))
    busy.says(busy.anna, "Oren, and now?")
    busy.passes(10)
    assert said(busy) == ['Oren says, "Aye."']


def test_stop_survives_a_restart(busy: Any) -> None:
    emergency.stop_all(by=trusted("Mira"))
    busy.talks_with("Aye.")
    forget_everything()
    assert is_stopped() == "stopped by Mira"
    busy.says(busy.anna, "Oren, and now?")
    busy.passes(10)
    assert said(busy) == []


def test_pause_stops_only_one_npc(busy: Any) -> None:
    other = busy.make("Karl", "evennia_ai.typeclasses.AINPC")
    assert emergency.pause(busy.npc, by=trusted("Mira")) == Stopped(dropped=3, given_up=1)
    busy.says(busy.anna, "Karl, are you there?")
    busy.passes(10)
    assert said(busy) == []
    assert [line for line in busy.screen_of(busy.ben) if line.startswith("Karl")] != []
    assert why_halted(other.ai.ref) == ""


def test_paused_npc_answers_again_when_it_is_resumed(busy: Any) -> None:
    emergency.pause(busy.npc, by=trusted("Mira"))
    busy.passes(10)
    assert emergency.resume(busy.npc, by=trusted("Mira"))
    busy.says(busy.anna, "Oren, and now?")
    busy.passes(10)
    assert said(busy) == ['Oren says, "Aye."']


def test_running_turn_is_closed_with_the_name_of_who_stopped_it(busy: Any) -> None:
    emergency.stop_all(by=trusted("Mira"), reason="spam")
    busy.passes(10)
    turn = last_turn(busy.npc.ai.ref)
    assert turn is not None
    assert turn.state == "failed"
    assert "stopped by Mira: spam" in turn.outcome
