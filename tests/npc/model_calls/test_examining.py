"""`ai/check` and the warning about small context windows, with a real HTTP server."""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from evennia_ai.commands.ai.status import overview_lines
from evennia_ai.npc.mind.window_watch import WindowWatch
from evennia_ai.npc.model_calls.examining import CHECK, examine_profile
from evennia_ai.npc.runtime import runtime
from evennia_ai.services.endpoints import Models
from evennia_ai.services.llm.doctor import Finding
from evennia_ai.services.net.bridge import AsyncBridge
from evennia_ai.services.settings.conf import conf
from evennia_ai.store import model_calls
from tests.services.net.handover import Handover

pytestmark = pytest.mark.service
ENDED = Event()


class _Handler(BaseHTTPRequestHandler):
    """A fake Ollama server with one model: the OpenAI API at `/v1`, and Ollama's own API."""

    hangs = False

    def do_GET(self) -> None:
        if self.hangs and ENDED.wait(60):
            return
        told = {
            "/v1/models": {"data": [{"id": "tiny"}]},
            "/api/ps": {"models": [{"model": "tiny", "context_length": 4096}]},
        }.get(self.path)
        self._send(404 if told is None else 200, told)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != "/v1/chat/completions":
            self._send(404, None)
            return
        text = '{"colour": "grey"}' if body.get("response_format") else "Grey and windy."
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if body.get("tools"):
            function = {"name": "look", "arguments": '{"at": "boat"}'}
            message["tool_calls"] = [{"id": "c1", "type": "function", "function": function}]
        usage = {"prompt_tokens": 30, "completion_tokens": 4}
        self._send(200, {"choices": [{"message": message}], "usage": usage})

    def _send(self, status: int, told: Any) -> None:
        body = json.dumps(told).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Log nothing."""


@pytest.fixture
def waits(stage: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Any], Any]]:
    """A function that waits for a Deferred's result, on a stage with a fake Ollama server."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    ENDED.clear()
    made = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    made.daemon_threads = True
    thread = Thread(target=made.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    conf.cache_clear()
    reactor = Handover()
    base_url = f"http://127.0.0.1:{made.server_port}/v1"
    settings = replace(conf(), cooldown_seconds=0.0, base_url=base_url, model="tiny")
    models = Models(settings, clock=stage.clock, bridge=AsyncBridge(reactor))
    reactor.outcome_of(models.prepare(), within_seconds=30)
    live = stage.running.runtime_of(settings, clock=stage.clock, models=models)
    stage.running.install(live)
    yield lambda deferred: reactor.outcome_of(deferred, within_seconds=60)
    models.close()
    reactor.make_waiting_calls()
    conf.cache_clear()
    ENDED.set()
    made.shutdown()
    made.server_close()
    thread.join()


def check() -> "Deferred[tuple[Finding, ...]]":
    live = runtime()
    return Deferred.fromCoroutine(examine_profile(live.calls, live.access))


def test_check_finds_the_context_window_and_counts_its_calls(waits: Any) -> None:
    found = {one.about: one for one in waits(check())}
    assert [name for name, one in found.items() if one.state == "FAIL"] == ["window"]
    assert "reads 4096 tokens" in found["window"].told
    assert found["tools"].state == found["schema"].state == "ok"
    live = runtime()
    assert live.limits.reading("game").calls_per_day == 3
    rows = model_calls.newest_calls(10)
    assert [(row.role, row.npc_ref, row.outcome) for row in rows] == [(CHECK, "", "answered")] * 3
    assert sum(row.tokens for row in rows) == 102


def test_check_asks_the_server_when_its_breaker_is_open(waits: Any) -> None:
    breaker = runtime().access.breaker
    assert breaker is not None
    for _ in range(3):
        breaker.failed()
    assert breaker.state == "open"
    assert {one.about: one.state for one in waits(check())}["reply"] == "ok"
    assert breaker.state == "open"


def test_check_fails_after_a_time_limit_when_the_server_hangs(
    waits: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_Handler, "hangs", True)
    (address,) = waits(check())
    assert (address.about, address.state) == ("address", "FAIL")
    assert "no answer within" in address.told


def test_builders_are_warned_once_about_a_small_context_window(waits: Any, stage: Any) -> None:
    live = runtime()
    told: list[tuple[str, dict[str, Any]]] = []
    readers = [0, 1, 1]

    def tell(line: str, **whom: Any) -> int:
        told.append((line, whom))
        return readers.pop(0)

    live.watch.add(watch := WindowWatch(live.calls, tell=tell))
    key = SimpleNamespace(profile="default", role="speaker", npc_ref="5")

    def answered() -> None:
        watch.answered(SimpleNamespace(key=key), SimpleNamespace(offline=False), None)

    for _ in range(3):
        answered()
    ends = time.monotonic() + 60
    while not told and time.monotonic() < ends:
        live.models.bridge._reactor.make_waiting_calls()
        time.sleep(0.01)
    assert len(told) == 1
    line, whom = told[0]
    assert line.startswith("[ai] the server reads 4096 tokens, the profile 'default' sends up to")
    assert "OLLAMA_CONTEXT_LENGTH" in line
    assert whom == {"near": "5"}
    for _ in range(3):
        answered()
    assert told == 2 * [(line, whom)]  # sent again, because no builder was online the first time
    assert "! the server reads 4096 tokens" in " ".join(overview_lines("", 1))
