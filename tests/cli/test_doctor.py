"""`evennia-ai doctor` without a game: its findings, its status, and that it prints no key."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.cli.conftest import Called
from tests.cli.forked_games import ForkedGame
from tests.cli.processes import ROOT, environment, evennia_ai
from tests.model_servers.servers import KEY as SERVED_KEY
from tests.model_servers.servers import serve

KEY = "sk-very-secret-4711"
KEYS = {"MY_KEY": KEY, "SERVED_KEY": SERVED_KEY, "NO_PROXY": "127.0.0.1"}
"""The environment of every call."""
Doctor = Callable[..., Called]


class _Handler(BaseHTTPRequestHandler):
    """A model server that wants a key, knows no tools, and reads 4,096 tokens."""

    def do_GET(self) -> None:
        known = self.path == "/v1/models" and self._is_keyed()
        row = {"id": "small", "max_model_len": 4096}
        status = 200 if known else 401 if self.path == "/v1/models" else 404
        self._send(status, {"data": [row]} if known else {"error": {"message": f"no {KEY}"}})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if body.get("tools"):
            self._send(400, {"error": {"message": "tools are not supported"}})
            return
        text = '{"colour": "grey"}' if body.get("response_format") else "Grey and windy."
        message = {"role": "assistant", "content": text}
        self._send(200, {"choices": [{"message": message, "finish_reason": "stop"}]})

    def _is_keyed(self) -> bool:
        return bool(self.headers["Authorization"] == f"Bearer {KEY}")

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
def server() -> Iterator[str]:
    made = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    made.daemon_threads = True
    thread = Thread(target=made.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{made.server_port}"
    made.shutdown()
    made.server_close()
    thread.join()


@pytest.fixture(scope="module")
def doctor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doctor]:
    """Return a function that calls `doctor` in a process forked from one without a game."""
    forked = ForkedGame(tmp_path_factory.mktemp("doctor"), environment=environment(**KEYS))
    yield partial(forked.call, "doctor", cwd=ROOT)
    forked.close()


@pytest.mark.long
def test_a_described_profile_is_tried_without_a_game(server: str) -> None:
    called = evennia_ai(
        *("doctor", "--base-url", f"{server}/v1", "--model", "small", "--api-key-env", "MY_KEY"),
        **KEYS,
    )
    lines = dict(reversed(line.split()[:2]) for line in called.out.splitlines())
    assert (called.status, called.err) == (1, "")
    assert lines == {
        **dict.fromkeys(("address", "key", "model", "reply", "speed", "schema"), "ok"),
        "streaming": "note",
        "window": "FAIL",
        "tools": "FAIL",
    }
    assert KEY not in called.out
    assert "set context_tokens to 4096" in called.out
    assert 'set tools of the profile to "schema"' in called.out


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "lines"),
    [
        ("ollama", {"window": "FAIL OLLAMA_CONTEXT_LENGTH"}),
        ("llama.cpp", {"window": "FAIL --parallel"}),
        ("lmstudio", {"window": "FAIL LM Studio"}),
        ("koboldcpp", {"window": "FAIL --contextsize"}),
        ("vllm", {"window": "FAIL --max-model-len", "tools": "FAIL --enable-auto-tool-choice"}),
        ("openrouter", {}),
        (
            "openai",
            {
                "window": "note the server does not say",
                "request": 'note Set reply_limit to "max_completion_tokens"',
            },
        ),
        ("anthropic", {"window": "note the server does not say"}),
    ],
)
def test_doctor_diagnoses_typical_servers(doctor: Doctor, kind: str, lines: dict[str, str]) -> None:
    about = ("address", "key", "model", "reply", "streaming", "speed", "window", "tools", "schema")
    expected = {**dict.fromkeys(about, "ok"), **lines}
    with serve(kind) as played:
        called = doctor(
            *("--base-url", played.base_url, "--model", played.model),
            *("--client", "anthropic" if kind == "anthropic" else "openai"),
            *("--api-key-env", "SERVED_KEY"),
        )
    found = {line.split()[1]: line for line in called.out.splitlines()}
    assert (found.keys(), called.err) == (expected.keys(), "")
    for name, words in expected.items():
        state, _, told = words.partition(" ")
        assert found[name].startswith(state), found[name]
        assert told in found[name]
    assert called.status == ("FAIL" in str(lines))


def test_doctor_reads_a_profile_file_and_prints_json_when_asked(
    doctor: Doctor, server: str, tmp_path: Path
) -> None:
    file = tmp_path / "profile.json"
    file.write_text(json.dumps({"base_url": server, "model": "small", "api_key_env": "NO_KEY"}))
    called = doctor("--profile", str(file), "--json")
    (address,) = json.loads(called.out)
    assert called.status == 1
    assert address["about"] == "address"
    assert address["advice"] == f'Set base_url to "{server}/v1"'


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--game", "tests"), "no game is here"),
        (("quick", "--model", "m"), "not both"),
        (("--model", "m"), "--base-url"),
        (("--base-url", "http://x/v1"), "has no model"),
        (("--profile", "README.md"), "is no JSON object"),
        (("--profile", "absent.json"), "cannot be read"),
    ],
)
def test_bad_input_is_one_line(doctor: Doctor, words: tuple[str, ...], told: str) -> None:
    called = doctor(*words)
    assert (called.status, called.out) == (2, "")
    assert len(called.err.splitlines()) == 1
    assert told in called.err
