"""Traces: spans of turns and calls, named as in the GenAI conventions."""

from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from evennia_ai.engine.errors import ModelRefused
from evennia_ai.npc.model_calls.limits import CallKey
from evennia_ai.npc.model_calls.watching import Watch, WatchedCall
from evennia_ai.npc.watch.tracing import Traces
from evennia_ai.services.llm.chat import ChatMessage, ChatReply, ChatRequest
from evennia_ai.services.llm.profiles import Sampling
from evennia_ai.store.model_calls import NewCall

REQUEST = ChatRequest(
    messages=(ChatMessage(role="user", content="a secret"),),
    model="small",
    max_tokens=50,
    timeout_seconds=5.0,
    sampling=Sampling(temperature=0.5),
)
REPLY = ChatReply(text="another secret", model="small-1")


class Traced:
    """A watch with traces, and the spans that have ended."""

    def __init__(self, *, with_content: bool = False) -> None:
        self.exporter = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.closed = 0
        self.traces = Traces(provider, with_content=with_content, shutdown=self._shut_down)
        times = iter([100.0, 102.0, 200.0, 203.0])
        self.watch = Watch([self.traces], now=lambda: next(times))

    def _shut_down(self) -> None:
        self.closed += 1

    @property
    def spans(self) -> list[Any]:
        return list(self.exporter.get_finished_spans())

    def call(self, *, error: Exception | None = None, npc_ref: str = "5") -> None:
        key = CallKey(npc_ref=npc_ref, turn=3)
        call = WatchedCall(key=key, endpoint="small", provider="openai")
        row = NewCall(
            npc_ref=npc_ref,
            role="speaker",
            started_at=0.0,
            seconds=1.5,
            first_piece_seconds=0.4,
            input_tokens=100,
            cached_tokens=60,
            output_tokens=20,
            outcome="failed:refused" if error else "answered",
        )
        self.watch.asked(call, REQUEST)
        if error is not None:
            self.watch.failed(call, error, row)
        else:
            self.watch.answered(call, REPLY, row)

    def turn(self, outcome: Any = "answered") -> None:
        self.watch.turn_began("5", npc_name="Oren", conversation=9)
        self.call()
        self.watch.turn_ended("5", outcome)


@pytest.fixture
def traced() -> Traced:
    return Traced()


def test_span_of_a_call_is_inside_the_span_of_its_turn(traced: Traced) -> None:
    traced.turn()
    call, turn = traced.spans
    assert (call.name, turn.name) == ("chat small", "invoke_agent Oren")
    assert call.parent.span_id == turn.context.span_id
    assert turn.parent is None


def test_span_of_a_call_is_not_inside_the_turn_of_another_npc(traced: Traced) -> None:
    traced.watch.turn_began("5", npc_name="Oren", conversation=9)
    traced.call(npc_ref="6")
    (call,) = traced.spans
    assert call.parent is None


def test_span_of_a_turn_has_npc_conversation_and_duration(traced: Traced) -> None:
    traced.turn()
    turn = traced.spans[1]
    assert dict(turn.attributes) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.id": "5",
        "gen_ai.agent.name": "Oren",
        "gen_ai.conversation.id": "9",
        "evennia_ai.outcome": "answered",
    }
    assert turn.end_time - turn.start_time == 2_000_000_000


def test_span_of_a_call_has_request_and_usage(traced: Traced) -> None:
    traced.call()
    (call,) = traced.spans
    assert dict(call.attributes) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "small",
        "gen_ai.request.max_tokens": 50,
        "gen_ai.request.temperature": 0.5,
        "gen_ai.agent.id": "5",
        "evennia_ai.role": "speaker",
        "evennia_ai.turn": 3,
        "gen_ai.response.model": "small-1",
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 20,
        "gen_ai.usage.cache_read.input_tokens": 60,
        "gen_ai.response.time_to_first_chunk": 0.4,
        "evennia_ai.outcome": "answered",
    }


def test_span_of_a_failed_call_has_only_the_kind_of_error(traced: Traced) -> None:
    traced.call(error=ModelRefused("small", 400, "the text was: a secret"))
    (call,) = traced.spans
    assert call.status.status_code is StatusCode.ERROR
    assert call.attributes["error.type"] == "ModelRefused"
    assert call.attributes["http.response.status_code"] == 400
    assert "secret" not in call.to_json()


def test_span_of_a_failed_turn_is_an_error(traced: Traced) -> None:
    traced.turn("failed")
    assert traced.spans[1].status.status_code is StatusCode.ERROR


def test_spans_contain_no_words_by_default(traced: Traced) -> None:
    traced.turn()
    assert not any("secret" in span.to_json() for span in traced.spans)


def test_spans_contain_words_when_the_setting_asks_for_it() -> None:
    traced = Traced(with_content=True)
    traced.call()
    (call,) = traced.spans
    assert "a secret" in call.attributes["gen_ai.input.messages"]
    assert "another secret" in call.attributes["gen_ai.output.messages"]


def test_open_spans_end_when_the_server_stops(traced: Traced) -> None:
    traced.watch.turn_began("5", npc_name="Oren", conversation=9)
    traced.watch.close()
    assert [span.name for span in traced.spans] == ["invoke_agent Oren"]
    assert traced.closed == 1
