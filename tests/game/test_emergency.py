"""The emergency stop, in a game where NPCs are spoken to."""

from typing import Any

import pytest

from evennia_ai.game import emergency
from evennia_ai.game.calls import Call
from evennia_ai.game.emergency import Stopped
from evennia_ai.game.runtime import runtime
from evennia_ai.game.stopping import ModelStopped
from evennia_ai.llm.chat import ChatMessage, ChatRequest
from evennia_ai.store.errors import StoreError

REQUEST = ChatRequest(
    messages=(ChatMessage(role="user", content="hello"),),
    model="",
    max_tokens=10,
    timeout_seconds=5.0,
)


@pytest.fixture
def busy(stage: Any) -> Any:
    """Oren is answering Anna, and owes Ben and Anna an answer."""
    stage.talks_with("Aye.", "Aye.", "Aye.", "Aye.", delay_seconds=3.0)
    for speaker in (stage.anna, stage.ben, stage.anna):
        stage.says(speaker, "Oren, are you there?")
    assert runtime().scheduler.waiting(stage.npc.ai.ref) == 2
    return stage


def test_a_stop_drops_what_waits(busy: Any) -> None:
    assert emergency.stop_all(by="Mira", reason="spam") == Stopped(dropped=2, given_up=1)
    assert runtime().scheduler.waiting_in_all == 0
    assert busy.npc.ai.waiting_records == frozenset()


def test_what_is_said_meanwhile_is_remembered(busy: Any) -> None:
    emergency.stop_all(by="Mira")
    busy.says(busy.anna, "Oren, and now?")
    assert ("user", "Anna", "Oren, and now?") in busy.records()


def test_what_is_not_halted_is_not_released(stage: Any) -> None:
    assert not emergency.start_all(by="Mira")
    assert not emergency.resume(stage.npc, by="Mira")


def test_a_pause_gives_up_the_calls_of_that_npc(stage: Any) -> None:
    stage.talks_with("Aye.", "Aye.", delay_seconds=3.0)
    outcomes: list[Any] = []
    for ref in (stage.npc.ai.ref, "4711"):
        call = Call(runtime().access, npc_ref=ref, role="decider")
        call.ask(REQUEST).addBoth(outcomes.append)
    assert emergency.pause(stage.npc, by="Mira").given_up == 1
    stage.passes(3)
    assert outcomes[0].check(ModelStopped)
    assert outcomes[0].value.why == "paused by Mira"
    assert outcomes[1].text == "Aye."


def test_a_stop_and_a_release_are_in_the_log(stage: Any, logged: list[str]) -> None:
    emergency.stop_all(by="Mira", reason="spam")
    emergency.start_all(by="Tom")
    emergency.pause(stage.npc, by="Mira")
    ref = stage.npc.id
    assert logged == [
        "evennia_ai: ALL NPCS: stopped by Mira: spam",
        "evennia_ai: ALL NPCS: released by Tom",
        f"evennia_ai: NPC {ref}: paused by Mira",
    ]


def test_where_the_database_refuses_nothing_is_stopped(
    busy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(new: Any) -> None:
        raise StoreError("away")

    monkeypatch.setattr(emergency, "halt", refuses)
    with pytest.raises(StoreError):
        emergency.stop_all(by="Mira")
    assert runtime().scheduler.waiting(busy.npc.ai.ref) == 2
