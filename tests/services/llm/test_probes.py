"""Test that a probe always ends in time, and that none delays another."""

import asyncio
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

import pytest

from evennia_ai.services.llm import probes
from evennia_ai.services.llm.probes import Answer, Probe, is_list, send_probes

ENDED = Event()


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        getattr(self, self.path.strip("/"))()

    def do_POST(self) -> None:
        self._send(self.rfile.read(int(self.headers["Content-Length"])))

    def well(self) -> None:
        self._send(json.dumps({"data": [], "key": self.headers["Authorization"]}).encode())

    def moved(self) -> None:
        self._send(b"", status=302, location="http://127.0.0.2/well")

    def page(self) -> None:
        self._send(b"<html>Welcome")

    def deep(self) -> None:
        self._send(b"[" * 100_000)

    def large(self) -> None:
        self._send(b" " * 2_000)

    def silent(self) -> None:
        ENDED.wait(30)

    def drips(self) -> None:
        self.send_response(200)
        self.end_headers()
        while not ENDED.wait(0.05):
            try:
                self.wfile.write(b" ")
                self.wfile.flush()
            except OSError:
                return

    def breaks(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "100")
        self.end_headers()
        self.wfile.write(b"{")

    def _send(self, body: bytes, *, status: int = 200, location: str = "") -> None:
        self.send_response(status)
        if location:
            self.send_header("Location", location)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Log nothing."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(probes, "MOST_BYTES", 1_000_000)
    ENDED.clear()
    made = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    made.daemon_threads = True
    thread = Thread(target=made.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{made.server_port}"
    ENDED.set()
    made.shutdown()
    made.server_close()
    thread.join()


def answers_of(*asked: Probe, seconds: float = 20.0) -> tuple[Answer, ...]:
    headers = {"Authorization": "Bearer k"}
    return asyncio.run(send_probes(asked, headers=headers, seconds=seconds))


def test_answers_have_the_order_of_the_probes(server: str) -> None:
    names = ("well", "page", "deep", "moved", "breaks")
    posted = Probe(address=f"{server}/post", body={"model": "m"})
    well, page, deep, moved, breaks, echo = answers_of(
        *(Probe(address=f"{server}/{name}") for name in names), posted
    )
    assert well == Answer(status=200, json={"data": [], "key": "Bearer k"})
    assert is_list(well)
    assert page == deep == Answer(status=200)
    assert not is_list(page)
    assert moved == Answer(status=302, location="http://127.0.0.2/well")
    assert "broke off" in breaks.problem
    assert echo.json == {"model": "m"}


def test_silent_or_dripping_server_is_stopped_at_the_time_limit(server: str) -> None:
    asked = [Probe(address=f"{server}/{name}") for name in ("silent", "drips")]
    for answer in answers_of(*asked, seconds=0.3):
        assert answer.problem == "no answer within 0.3 seconds"


def test_oversized_answer_is_dropped(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "MOST_BYTES", 1_000)
    (answer,) = answers_of(Probe(address=f"{server}/large"))
    assert answer.problem == "the answer is larger than 1000 bytes"


def test_closed_port_is_reported_with_the_reason() -> None:
    (answer,) = answers_of(Probe(address="http://127.0.0.1:9/v1/models"))
    assert "refused" in answer.problem
