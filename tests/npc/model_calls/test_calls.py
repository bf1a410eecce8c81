"""Calls of models: each can be refused, is counted and watched, and becomes a row at its end."""

from pathlib import Path
from typing import Any

import pytest
from twisted.internet.defer import CancelledError
from twisted.python.failure import Failure

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import (
    ModelRefused,
    ModelRubbish,
    ModelTimeout,
    ModelUnavailable,
    StoreError,
)
from evennia_ai.npc.jobs.counting import ModelStopped
from evennia_ai.npc.model_calls import calls
from evennia_ai.npc.model_calls.calls import CountedCall
from evennia_ai.npc.model_calls.limits import CallKey
from evennia_ai.npc.runtime import runtime
from evennia_ai.services.llm.chat import ChatMessage, ChatReply, ChatRequest, Usage
from evennia_ai.store import model_calls
from evennia_ai.store.model_calls import Halt, add_halt
from tests.store.builders import newest_calls

REQUEST = ChatRequest(
    messages=(ChatMessage(role="user", content="hello there"),),
    model="small",
    max_tokens=50,
    timeout_seconds=5.0,
)
USAGE = Usage(input_tokens=9, output_tokens=3, cached_tokens=4)
REPLY = ChatReply(text="well met", model="small", usage=USAGE)


def a_call(**values: Any) -> CountedCall:
    usual: dict[str, Any] = {"npc_ref": "5", "role": "speaker", "player_ref": "7", "turn": 3}
    return CountedCall(runtime().calls, runtime().access, CallKey(**{**usual, **values}))


def asked() -> Any:
    key = CallKey(npc_ref="5", role="decider")
    return runtime().calls.asked(runtime().access, REQUEST, key)


def outcome_of(waiting: Any) -> Any:
    found: list[Any] = []
    waiting.addBoth(found.append)
    return found[0] if found else None


def row_of(stage: Any, line: Any, **values: Any) -> Any:
    stage.talks_with(line)
    call = a_call(**values)
    outcome_of(call.ask(REQUEST))
    return call.row


def test_call_returns_the_reply_and_makes_a_row(stage: Any) -> None:
    stage.talks_with(REPLY)
    call = a_call()
    assert outcome_of(call.ask(REQUEST)) is REPLY
    row = call.row
    assert row is not None
    assert (row.npc_ref, row.player_ref, row.role, row.turn) == ("5", "7", "speaker", 3)
    assert (row.profile, row.model, row.outcome) == ("default", "small", "answered")
    assert (row.input_tokens, row.cached_tokens, row.output_tokens) == (9, 4, 3)


def test_counted_call_does_not_write_its_row(stage: Any) -> None:
    row_of(stage, REPLY)
    assert model_calls.use_since(0).calls == 0


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (ModelTimeout("small", 5.0), "failed:timeout"),
        (ModelUnavailable("small", "away"), "failed:unavailable"),
        (ModelRefused("small", 401, "no key"), "failed:refused"),
        (ModelRubbish("small", "nothing"), "failed:rubbish"),
        (ValueError("who knows"), "failed:error"),
    ],
)
def test_failed_call_has_the_kind_of_error_in_its_row(
    stage: Any, error: Exception, outcome: str
) -> None:
    stage.talks_with(error)
    call = a_call()
    failure = outcome_of(call.ask(REQUEST))
    assert isinstance(failure, Failure)
    assert failure.value is error
    assert call.row is not None
    assert call.row.outcome == outcome


def test_cancelled_call_has_the_outcome_cancelled_in_its_row(stage: Any) -> None:
    stage.talks_with("too late", delay_seconds=3.0)
    call = a_call()
    waiting = call.ask(REQUEST)
    stage.passes(1)
    waiting.cancel()
    assert outcome_of(waiting).check(CancelledError)
    assert call.row is not None
    assert (call.row.outcome, call.row.seconds) == ("cancelled", 1.0)


def test_running_call_reserves_tokens_of_the_limits(stage: Any) -> None:
    stage.talks_with(REPLY, delay_seconds=3.0)
    a_call(prompt_tokens=100).ask(REQUEST)
    assert runtime().limits.reading("npc", "5").tokens_per_minute == 150
    stage.passes(3)
    assert runtime().limits.reading("npc", "5").tokens_per_minute == 12


def test_tokens_are_estimated_when_the_provider_reports_none(stage: Any) -> None:
    row = row_of(stage, ChatReply(text="well met", model="small"))
    assert row.is_estimated
    assert row.input_tokens > 0
    assert row.output_tokens > 0


def test_no_model_is_asked_when_the_npc_is_paused(stage: Any) -> None:
    model = stage.talks_with(REPLY, REPLY)
    add_halt(Halt(npc_ref="5", halted_by="Mira", halted_at=1.0), by=trusted("Ada"))
    call = a_call()
    assert outcome_of(call.ask(REQUEST)).check(ModelStopped)
    assert call.row is not None
    assert (call.row.outcome, call.row.tokens) == ("failed:stopped", 0)
    assert model.requests == []
    assert outcome_of(a_call(npc_ref="6").ask(REQUEST)) is REPLY


def test_row_has_the_time_until_the_first_part_of_the_reply(stage: Any) -> None:
    class Streams:
        name, offline = "streams", False

        def complete(self, request: Any, *, listener: Any = None) -> Any:
            from twisted.internet.task import deferLater

            stage.clock.callLater(1, listener, "well ")
            stage.clock.callLater(2, listener, "met")
            return deferLater(stage.clock, 3, lambda: REPLY)

        def close(self) -> None:
            pass

    stage.install(Streams())
    pieces: list[str] = []
    call = a_call()
    call.ask(REQUEST, listener=pieces.append)
    for _ in range(3):
        stage.passes(1)
    assert pieces == ["well ", "met"]
    assert call.row is not None
    assert (call.row.first_piece_seconds, call.row.seconds) == (1.0, 3.0)


def test_no_model_is_asked_when_the_use_of_today_cannot_be_read(
    stage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(since: float) -> Any:
        raise StoreError("away")

    model = stage.talks_with(REPLY)
    monkeypatch.setattr(
        "evennia_ai.npc.model_calls.limits.Limits._restore", lambda self, now: away(now)
    )
    with pytest.raises(StoreError):
        a_call().ask(REQUEST)
    assert model.requests == []


def test_call_outside_of_turns_writes_its_row(stage: Any) -> None:
    stage.talks_with(REPLY)
    waiting = asked()
    assert outcome_of(waiting) is REPLY
    (row,) = newest_calls("5", limit=5)
    assert (row.role, row.player_ref, row.turn, row.output_tokens) == ("decider", "", None, 3)


def test_failed_call_outside_of_turns_writes_its_row(stage: Any) -> None:
    stage.talks_with(ModelTimeout("small", 5.0))
    waiting = asked()
    assert outcome_of(waiting).check(ModelTimeout)
    (row,) = newest_calls("5", limit=5)
    assert row.outcome == "failed:timeout"


def test_row_is_written_later_when_the_database_is_unreachable(
    stage: Any, logged: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    written = model_calls.add_call
    answers = [StoreError("the database is away"), None]

    def add(new: Any) -> None:
        answer = answers.pop(0)
        if answer is not None:
            raise answer
        written(new)

    monkeypatch.setattr(model_calls, "add_call", add)
    stage.talks_with(REPLY)
    assert outcome_of(asked()) is REPLY
    stage.passes(5)
    assert len(newest_calls("5", limit=5)) == 1
    assert "was not recorded" in logged[0]


def test_only_calls_py_asks_models() -> None:
    """Other code that asked a model would bypass the stop, the limits and the watchers."""
    game = Path(calls.__file__).parents[1]
    asking = [path.name for path in game.rglob("*.py") if ".complete(" in path.read_text("utf-8")]
    assert asking == ["calls.py"]
