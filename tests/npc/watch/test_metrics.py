"""Metrics: what they count, and that Prometheus can read them on this machine."""

from dataclasses import replace
from typing import Any

import pytest

from evennia_ai.engine.errors import ModelTimeout
from evennia_ai.npc.model_calls.limits import CallKey, Refusal
from evennia_ai.npc.model_calls.watching import Gauges, Watch, WatchedCall, WorkGauges
from evennia_ai.npc.watch.metrics import LOOPBACK, Metrics
from evennia_ai.services.llm.chat import ChatReply
from evennia_ai.store.model_calls import NewCall

CALL = WatchedCall(key=CallKey(npc_ref="5"), endpoint="small", provider="openai")
REPLY = ChatReply(text="a secret", model="small")
GAUGES = Gauges(waiting=3, in_flight=2, breakers={"small": "half_open"}, is_stopped=True)
OF_CALL = {
    "gen_ai_operation_name": "chat",
    "gen_ai_provider_name": "openai",
    "gen_ai_request_model": "small",
    "evennia_ai_role": "speaker",
}


def a_row(**values: Any) -> NewCall:
    usual: dict[str, Any] = {
        "npc_ref": "5",
        "role": "speaker",
        "model": "small",
        "started_at": 0.0,
        "seconds": 1.5,
        "first_piece_seconds": 0.4,
        "input_tokens": 100,
        "cached_tokens": 60,
        "output_tokens": 20,
    }
    return NewCall(**{**usual, **values})


class Reactor:
    """The methods of a reactor that metrics need to listen."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.listened: list[tuple[int, str]] = []
        self.stopped = 0
        self.later: list[Any] = []

    def listenTCP(self, port: int, site: Any, *, interface: str) -> Any:
        if self.errors:
            raise self.errors.pop(0)
        self.listened.append((port, interface))
        return self

    def stopListening(self) -> None:
        self.stopped += 1

    def callLater(self, seconds: float, call: Any) -> Any:
        self.later.append(call)
        return self

    def active(self) -> bool:
        return False


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(lambda: GAUGES, port=9100, reactor=Reactor())


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    found: float | None = metrics.registry.get_sample_value(name, labels)
    return found


def test_call_with_a_reply_is_counted(metrics: Metrics) -> None:
    metrics.answered(CALL, REPLY, a_row())
    assert value(metrics, "evennia_ai_model_calls_total", **OF_CALL, outcome="answered") == 1
    duration = "gen_ai_client_operation_duration_seconds_sum"
    assert value(metrics, duration, **OF_CALL, error_type="") == 1.5
    first = "gen_ai_client_operation_time_to_first_chunk_seconds_sum"
    assert value(metrics, first, **OF_CALL) == 0.4


def test_tokens_are_counted_by_kind_and_model(metrics: Metrics) -> None:
    metrics.answered(CALL, REPLY, a_row())
    metrics.answered(CALL, REPLY, a_row(cached_tokens=None, first_piece_seconds=None))
    found = {
        kind: value(metrics, "evennia_ai_tokens_total", gen_ai_request_model="small", kind=kind)
        for kind in ("input", "cached", "output")
    }
    assert found == {"input": 200, "cached": 60, "output": 40}
    usage = "gen_ai_client_token_usage_sum"
    assert value(metrics, usage, **OF_CALL, gen_ai_token_type="output") == 40


def test_cost_is_counted_by_model_and_calls_without_a_price_are_counted(metrics: Metrics) -> None:
    for nanodollars in (2_500_000, 500_000, 0, None):
        metrics.answered(CALL, REPLY, a_row(nanodollars=nanodollars))
    of_model = {"gen_ai_request_model": "small"}
    cost = value(metrics, "evennia_ai_cost_dollars_total", **of_model, evennia_ai_role="speaker")
    assert cost == 0.003
    assert value(metrics, "evennia_ai_unpriced_calls_total", **of_model) == 1


def test_call_without_a_reply_is_counted_by_its_error(metrics: Metrics) -> None:
    metrics.failed(CALL, ModelTimeout("small", 5.0), a_row(outcome="failed:timeout"))
    assert value(metrics, "evennia_ai_model_calls_total", **OF_CALL, outcome="failed:timeout") == 1
    duration = "gen_ai_client_operation_duration_seconds_count"
    assert value(metrics, duration, **OF_CALL, error_type="ModelTimeout") == 1


def test_turns_refusals_and_dropped_answers_are_counted(metrics: Metrics) -> None:
    times = iter([1.0, 3.0])
    watch = Watch([metrics], now=lambda: next(times))
    watch.turn_began("5", npc_name="Oren", conversation=1)
    watch.turn_ended("5", "answered")
    refusal = Refusal(scope="npc", ref="5", limit="calls_per_day", told="", retry_in_seconds=1)
    watch.refused("5", refusal)
    watch.dropped("5", count=4, why="stopped")
    assert value(metrics, "evennia_ai_turns_total", outcome="answered") == 1
    assert value(metrics, "evennia_ai_turn_duration_seconds_sum") == 2
    refusals = value(metrics, "evennia_ai_refusals_total", scope="npc", limit="calls_per_day")
    assert refusals == 1
    assert value(metrics, "evennia_ai_dropped_total") == 4


def test_gauges_are_read_when_the_page_is_requested(metrics: Metrics) -> None:
    assert value(metrics, "evennia_ai_queue_length") == 3
    assert value(metrics, "evennia_ai_turns_in_flight") == 2
    assert value(metrics, "evennia_ai_stopped") == 1
    state = "evennia_ai_breaker_state"
    assert value(metrics, state, endpoint="small", state="half_open") == 1
    assert value(metrics, state, endpoint="small", state="closed") == 0


def test_gauges_of_workers_are_read_when_there_are_workers(metrics: Metrics) -> None:
    assert value(metrics, "evennia_ai_workers") is None
    work = WorkGauges(
        workers=2,
        waiting={"observe": 7},
        taken={"observe": 1},
        lag_seconds=12.5,
        set_aside=3,
        unsent=4,
    )
    with_work = Metrics(lambda: replace(GAUGES, work=work), port=0, reactor=Reactor())
    assert value(with_work, "evennia_ai_workers") == 2
    assert value(with_work, "evennia_ai_jobs", kind="observe", state="waiting") == 7
    assert value(with_work, "evennia_ai_jobs", kind="observe", state="taken") == 1
    assert value(with_work, "evennia_ai_jobs_lag_seconds") == 12.5
    assert value(with_work, "evennia_ai_jobs_set_aside") == 3
    assert value(with_work, "evennia_ai_jobs_unsent") == 4


def test_page_contains_no_text_and_no_npc(metrics: Metrics) -> None:
    metrics.answered(CALL, REPLY, a_row(npc_ref="npc-4711", player_ref="player-4712"))
    page = metrics.page().decode()
    assert "gen_ai_client_operation_duration_seconds_bucket" in page
    assert not any(text in page for text in ("a secret", "npc-4711", "player-4712"))


def test_metrics_listen_on_the_loopback_address_until_closed() -> None:
    reactor = Reactor()
    metrics = Metrics(lambda: GAUGES, port=9100, reactor=reactor)
    metrics.open()
    assert reactor.listened == [(9100, LOOPBACK)]
    metrics.close()
    metrics.close()
    assert reactor.stopped == 1


def test_metrics_try_a_taken_port_again(logged: list[str]) -> None:
    from twisted.internet.error import CannotListenError

    reactor = Reactor(CannotListenError(LOOPBACK, 9100, OSError("in use")))
    metrics = Metrics(lambda: GAUGES, port=9100, reactor=reactor)
    metrics.open()
    assert reactor.listened == []
    assert "trying again in 5 s" in logged[0]
    reactor.later[0]()
    assert reactor.listened == [(9100, LOOPBACK)]


@pytest.mark.service
def test_metrics_page_can_be_scraped_over_http() -> None:
    """The server is a process of its own with a real reactor."""
    import subprocess
    import sys
    import urllib.error
    import urllib.request

    command = [sys.executable, "-m", "tests.npc.watch.metrics_server"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            told = next(line for line in server.stdout if line.startswith("port "))
            address = f"http://127.0.0.1:{int(told.split()[1])}"
            with urllib.request.urlopen(f"{address}/metrics", timeout=300) as page:
                assert page.headers["content-type"].startswith("text/plain")
                assert b"evennia_ai_queue_length 3.0" in page.read()
            with pytest.raises(urllib.error.HTTPError) as missing:
                urllib.request.urlopen(f"{address}/", timeout=300)
            assert missing.value.code == 404
            missing.value.close()
        finally:
            server.terminate()
