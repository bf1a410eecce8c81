"""Test the client for OpenAI-compatible servers that answer, stall, fail or send nonsense."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from itertools import pairwise
from time import sleep
from typing import Any

import pytest
from twisted.internet.defer import CancelledError

from evennia_ai.engine.errors import (
    ModelError,
    ModelRefused,
    ModelRubbish,
    ModelTimeout,
    ModelUnavailable,
)
from evennia_ai.services.llm.chat import AnswerSchema, ChatReply, Usage
from evennia_ai.services.llm.profiles import Endpoint, Sampling
from evennia_ai.services.net.bridge import AsyncBridge
from evennia_ai.services.net.secrets import SecretText
from tests.services.llm.builders import a_call, a_message, a_request
from tests.services.llm.clients.stub_server import (
    Behaviour,
    StubServer,
    answers,
    answers_after,
    answers_together,
    closes_early,
    fails,
    hangs_up,
    sends,
    stalls,
    stalls_in_the_body,
    stalls_until_left,
)
from tests.services.llm.conftest import KEY, Making
from tests.services.net.handover import Handover, told_of

Outcome = Callable[..., Any]


@pytest.fixture
def outcome(server: StubServer, model: Making, reactor: Handover) -> Outcome:
    """Return the outcome of a request to a server with the given behaviours."""

    def asked(*behaviours: Behaviour, endpoint: dict[str, Any] | None = None, **more: Any) -> Any:
        server.behaves(*behaviours)
        return reactor.outcome_of(model(**(endpoint or {})).complete(a_request(**more)))

    return asked


def test_reply_has_its_usage(outcome: Outcome) -> None:
    usage = {
        "prompt_tokens": 12,
        "completion_tokens": 3,
        "prompt_tokens_details": {"cached_tokens": 8},
    }
    assert outcome(answers("The ferry is late.", usage=usage)) == ChatReply(
        text="The ferry is late.",
        model="tiny",
        finish_reason="stop",
        usage=Usage(input_tokens=12, output_tokens=3, cached_tokens=8),
    )


def test_reply_has_no_token_counts_when_the_server_sends_no_usage(outcome: Outcome) -> None:
    assert outcome(answers("Yes.")).usage is None


def test_invalid_usage_counts_as_zero(outcome: Outcome) -> None:
    odd = {"prompt_tokens": "many", "completion_tokens": -1, "prompt_tokens_details": None}
    assert outcome(answers("Yes.", usage=odd)).usage == Usage(input_tokens=0, output_tokens=0)


def test_text_in_parts_is_joined(outcome: Outcome) -> None:
    parts = [{"type": "text", "text": "Aye. "}, {"type": "image"}, {"type": "text", "text": "No."}]
    assert outcome(answers(parts)).text == "Aye. No."


def test_request_body_has_the_given_values(outcome: Outcome, server: StubServer) -> None:
    messages = (
        a_message("system", "Rules"),
        a_message("user", "Hé 🚢", name="Anna"),
        a_message("assistant", "", tool_calls=(a_call(),)),
        a_message("tool", "a boat", tool_call_id="c1"),
    )
    outcome(
        answers(),
        messages=messages,
        max_tokens=7,
        sampling=Sampling(temperature=0.5),
        cache_key="npc-12",
        endpoint={"game_id": "ebbwick", "session_header": "x-session-id"},
    )
    session = sha256(b"ebbwick\0npc-12").hexdigest()[:32]
    (seen,) = server.requests
    assert seen.headers["x-session-id"] == session
    assert seen.path == "/v1/chat/completions"
    assert seen.headers["authorization"] == f"Bearer {KEY}"
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    assert seen.body == {
        "model": "tiny",
        "messages": [
            {"role": "system", "content": "Rules"},
            {"role": "user", "content": "Hé 🚢", "name": "Anna"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "content": "a boat", "tool_call_id": "c1"},
        ],
        "max_tokens": 7,
        "temperature": 0.5,
        "user": session,
        "prompt_cache_key": session,
    }


def test_request_without_npc_has_no_session_key(outcome: Outcome, server: StubServer) -> None:
    outcome(answers(), endpoint={"session_header": "x-session-id"})
    outcome(answers(), cache_key="npc-12", endpoint={"session_header": ""})
    assert not any("x-session-id" in seen.headers for seen in server.requests)
    assert "prompt_cache_key" not in server.requests[0].body


def test_session_keys_of_npcs_begin_differently() -> None:
    there = Endpoint(name="tiny", base_url="http://127.0.0.1", model="tiny", game_id="ebbwick")
    keys = sorted(there.session_key(f"npc-{number}") for number in range(100_000))
    assert {len(key) for key in keys} == {32}
    assert not any(one[:9] == next_one[:9] for one, next_one in pairwise(keys))
    elsewhere = replace(there, game_id="another")
    assert elsewhere.session_key("npc-1") != there.session_key("npc-1")


def test_lone_surrogate_in_a_text_does_not_fail_the_request(
    outcome: Outcome, server: StubServer
) -> None:
    assert outcome(answers("Yes."), messages=(a_message("user", "a\ud83d"),)).text == "Yes."
    assert server.requests[0].body["messages"][0]["content"] == "a?"


def test_openai_client_without_key_does_not_read_the_environment(
    outcome: Outcome, server: StubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another-provider")
    monkeypatch.setenv("OPENAI_ORG_ID", "another-organisation")
    outcome(answers(), endpoint={"api_key": SecretText()})
    (seen,) = server.requests
    assert "another" not in str(seen.headers)


def test_slow_answer_within_the_limit_is_returned(outcome: Outcome) -> None:
    assert outcome(answers_after(0.1, "At last.")).text == "At last."


@pytest.mark.parametrize("behaviour", [stalls, stalls_in_the_body])
def test_stalled_server_fails_at_the_time_limit(outcome: Outcome, behaviour: Behaviour) -> None:
    problem = outcome(behaviour, timeout_seconds=0.2)
    assert isinstance(problem, ModelTimeout)
    assert "model 'stub' was still answering after 0.2 seconds" in str(problem)


def test_single_attempt_has_its_own_time_limit(outcome: Outcome, server: StubServer) -> None:
    problem = outcome(stalls, endpoint={"timeout_seconds": 0.1})
    assert isinstance(problem, ModelTimeout)
    assert problem.timeout_seconds == 0.1
    assert len(server.requests) == 1


def test_broken_server_is_unavailable(outcome: Outcome) -> None:
    problem = outcome(fails(500, "the cat is on the keyboard"))
    assert isinstance(problem, ModelUnavailable)
    assert problem.status == 500
    assert str(problem).endswith("is not available: status 500: the cat is on the keyboard")


def test_broken_server_is_retried(outcome: Outcome, server: StubServer) -> None:
    broken = fails(500, retry_after_ms="10")
    assert outcome(broken, answers("Back."), endpoint={"max_retries": 1}).text == "Back."
    assert len(server.requests) == 2


def test_server_that_breaks_on_a_schema_is_retried_only_once(
    outcome: Outcome, server: StubServer
) -> None:
    """Some servers answer 500 each time to a reply with a schema that reached `max_tokens`."""
    broken = fails(500, "does not match the expected format", retry_after_ms="1")
    act = AnswerSchema(name="act", schema={"type": "object"})
    problem = outcome(broken, schema=act, endpoint={"max_retries": 5})
    assert isinstance(problem, ModelUnavailable)
    assert len(server.requests) == 2


def test_retry_after_beyond_the_time_limit_fails_at_once(
    outcome: Outcome, server: StubServer
) -> None:
    problem = outcome(fails(429, retry_after="3600"), endpoint={"max_retries": 5})
    assert isinstance(problem, ModelUnavailable)
    assert problem.retry_in_seconds == 3600
    assert len(server.requests) == 1


def test_redirect_is_not_followed(outcome: Outcome, server: StubServer) -> None:
    """The key would go to another server."""
    elsewhere = fails(307, "moved", location=server.base_url + "/elsewhere")
    problem = outcome(elsewhere, endpoint={"max_retries": 5})
    assert isinstance(problem, ModelRefused)
    assert problem.status == 307
    assert len(server.requests) == 1


def test_endless_error_body_is_not_read_to_its_end(outcome: Outcome, server: StubServer) -> None:
    def endless(handler: Any) -> None:
        handler.send_response(500)
        handler.end_headers()
        try:
            while not handler.stub.released.is_set():
                handler.send(b"x" * 65_536)
        except OSError:
            handler.stub.left.set()

    problem = outcome(endless)
    assert isinstance(problem, ModelUnavailable)
    assert len(str(problem)) < 400
    assert server.left.wait(60)


def test_too_many_requests_are_retried_when_the_server_says(
    outcome: Outcome, server: StubServer
) -> None:
    busy = fails(429, retry_after="0.05")
    assert outcome(busy, answers("Now."), endpoint={"max_retries": 2}).text == "Now."
    assert len(server.requests) == 2


def test_too_many_requests_until_the_end_is_unavailable(outcome: Outcome) -> None:
    problem = outcome(fails(429, "slow down", retry_after="0.01"), endpoint={"max_retries": 1})
    assert isinstance(problem, ModelUnavailable)
    assert problem.status == 429


@pytest.mark.parametrize("status", [400, 401, 404, 422])
def test_refusal_has_the_servers_words(outcome: Outcome, server: StubServer, status: int) -> None:
    problem = outcome(fails(status, "no such model"), endpoint={"max_retries": 2})
    assert isinstance(problem, ModelRefused)
    assert problem.status == status
    assert f"refused the request with status {status}: no such model; check" in str(problem)
    assert len(server.requests) == 1


def test_connection_closed_early_is_unavailable(outcome: Outcome) -> None:
    problem = outcome(closes_early)
    assert isinstance(problem, ModelUnavailable)
    assert "broke off in the reply" in str(problem)


def test_connection_closed_without_answer_is_unavailable(outcome: Outcome) -> None:
    assert isinstance(outcome(hangs_up), ModelUnavailable)


def test_closed_port_is_unavailable(model: Making, reactor: Handover) -> None:
    closed = StubServer()
    closed.close()
    dead = model(base_url=closed.base_url)
    problem = reactor.outcome_of(dead.complete(a_request()))
    assert isinstance(problem, ModelUnavailable)
    assert "no connection (ConnectError" in str(problem)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "not a JSON object"),
        (b"<html>Welcome to nginx</html>", "not a JSON object"),
        (b'{"choices": [', "not a JSON object"),
        (b"\xff\xfe\x00", "not a JSON object"),
        (b"[" * 100_000, "not a JSON object"),
        (b'"text"', "not a JSON object"),
        (b"{}", "no choices"),
        (b'{"choices": []}', "no choices"),
        (b'{"choices": {"0": 1}}', "no choices"),
        (b'{"choices": ["text"]}', "no choices"),
        (b'{"error": {"message": "over quota"}}', "sent an error: over quota"),
        (b'{"choices": [{}]}', "text is empty"),
        (b'{"choices": [{"message": {"content": null}}]}', "text is empty"),
        (b'{"choices": [{"message": {"content": 7}}]}', "text is empty"),
        (b'{"choices": [{"message": {"content": " "}, "finish_reason": "length"}]}', "'length'"),
    ],
)
def test_answer_of_a_server_that_is_not_a_model_reply_is_refused(
    outcome: Outcome, body: bytes, said: str
) -> None:
    problem = outcome(sends(body))
    assert isinstance(problem, ModelRubbish)
    assert said in str(problem)


def test_model_name_from_the_server_cannot_forge_log_lines(outcome: Outcome) -> None:
    reply = outcome(answers("Aye.", model="tiny\n[EE] forged \x1b[2J" + KEY + "x" * 5000))
    assert isinstance(reply, ChatReply)
    assert reply.model.startswith("tiny [EE] forged [2J***xxx")
    assert len(reply.model) == 200


def test_huge_reply_is_read_only_to_the_limit(outcome: Outcome) -> None:
    problem = outcome(answers("x" * 3_000_000), endpoint={"max_reply_bytes": 50_000})
    assert isinstance(problem, ModelRubbish)
    assert "larger than 50000 bytes" in str(problem)


@pytest.mark.parametrize(
    "behaviour",
    [
        fails(401, f"Incorrect API key provided: {KEY}."),
        fails(500, f"trace: Bearer {KEY}"),
        sends(b'{"error": {"message": "bad key ' + KEY.encode() + b'"}}'),
        sends(KEY.encode()),
        stalls,
        hangs_up,
        closes_early,
    ],
)
def test_openai_errors_never_show_the_key(outcome: Outcome, behaviour: Behaviour) -> None:
    problem = outcome(behaviour, timeout_seconds=0.2)
    assert isinstance(problem, ModelError)
    assert KEY not in told_of(problem)


def test_servers_words_are_quoted_on_one_short_line(outcome: Outcome) -> None:
    problem = outcome(fails(400, "bad\n\x1b[31mrequest" + "!" * 5000))
    assert "bad [31mrequest!" in str(problem)
    assert len(str(problem)) < 400


def test_cancelled_request_leaves_the_client_usable(
    server: StubServer, model: Making, reactor: Handover
) -> None:
    server.behaves(stalls, answers("Still here."))
    chat = model()
    cancelled = chat.complete(a_request())
    cancelled.cancel()
    assert isinstance(reactor.outcome_of(cancelled), CancelledError)
    server.behaves(answers("Still here."))
    assert reactor.outcome_of(chat.complete(a_request())).text == "Still here."


def test_cancelled_openai_request_closes_its_connection(
    server: StubServer, model: Making, reactor: Handover
) -> None:
    server.behaves(stalls_until_left)
    asked = model().complete(a_request())
    server.wait_for_requests(1)
    asked.cancel()
    assert isinstance(reactor.outcome_of(asked), CancelledError)
    assert server.left.wait(60)


def test_request_cancelled_before_a_retry_is_not_sent_again(
    server: StubServer, model: Making, reactor: Handover
) -> None:
    server.behaves(fails(503, retry_after="0.2"))
    asked = model(max_retries=5).complete(a_request())
    server.wait_for_requests(1)
    asked.cancel()
    assert isinstance(reactor.outcome_of(asked), CancelledError)
    sleep(0.4)
    assert len(server.requests) == 1


def test_client_works_again_after_its_bridge_was_stopped(
    model: Making, bridge: AsyncBridge, reactor: Handover
) -> None:
    chat = model()
    assert reactor.outcome_of(chat.complete(a_request())).text == "Hello."
    bridge.stop()
    assert reactor.outcome_of(chat.complete(a_request())).text == "Hello."


def test_closing_twice_or_without_thread_does_no_harm(model: Making, bridge: AsyncBridge) -> None:
    chat = model()
    chat.close()
    chat.close()
    bridge.stop()
    chat.close()
    assert not bridge.running


def test_six_requests_run_at_the_same_time(
    server: StubServer, model: Making, reactor: Handover
) -> None:
    server.behaves(answers_together(6))
    chat = model()
    asked = [chat.complete(a_request()) for _ in range(6)]
    replies = [reactor.outcome_of(one) for one in asked]
    assert [reply.text for reply in replies] == ["Hello."] * 6


MODULES = ("services.llm.clients.openai", "services.llm.clients.anthropic", "services.wiki.backend")
NOT_IMPORTED = ("httpx2", "twisted.internet.reactor", "django", "evennia")
IMPORTING = f"""
import importlib, json, sys
found = {{}}
for module in {MODULES}:
    importlib.import_module(f"evennia_ai.{{module}}")
    found[module] = [name for name in {NOT_IMPORTED} if name in sys.modules]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def imported() -> dict[str, list[str]]:
    """Import the modules one after the other, and return which libraries each import has loaded."""
    command = [sys.executable, "-c", IMPORTING]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("module", MODULES)
def test_client_modules_import_no_http_library_and_no_reactor(
    imported: dict[str, list[str]], module: str
) -> None:
    assert imported[module] == []
