"""Test the client for the Messages API over HTTP: requests, replies and failures."""

import json
from collections.abc import Callable
from hashlib import sha256
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
from evennia_ai.engine.prompt.messages import ToolCall
from evennia_ai.services.llm.chat import AnswerSchema, ChatReply, Usage
from evennia_ai.services.llm.profiles import Sampling
from evennia_ai.services.net.secrets import SecretText
from tests.services.llm.builders import a_request
from tests.services.llm.clients.stub_server import (
    Behaviour,
    StubServer,
    closes_early,
    event,
    fails,
    hangs_up,
    sends,
    stalls,
    stalls_until_left,
    streams,
    streams_and_stalls,
)
from tests.services.llm.conftest import KEY, MakingClaude
from tests.services.net.handover import Handover, told_of

Outcome = Callable[..., Any]

USAGE = {
    "input_tokens": 14,
    "cache_read_input_tokens": 767,
    "cache_creation_input_tokens": 20,
    "output_tokens": 5,
}
ACT = AnswerSchema(name="act", schema={"type": "object"})


def a_text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def a_use(name: str = "look", given: Any = None, **more: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": "toolu_1", "name": name, "input": given or {}} | more


def a_body(*content: dict[str, Any], stop: str | None = "end_turn", **more: Any) -> dict[str, Any]:
    body = {"id": "m1", "type": "message", "role": "assistant", "model": "claude-tiny"}
    return body | {"content": list(content), "stop_reason": stop, "usage": USAGE} | more


def says(*content: dict[str, Any], **more: Any) -> Behaviour:
    return sends(json.dumps(a_body(*content, **more)).encode())


def block(index: int, begun: dict[str, Any], *deltas: dict[str, Any]) -> list[bytes]:
    """Return the events of one block of a stream."""
    return [
        event({"type": "content_block_start", "index": index, "content_block": begun}),
        *(event({"type": "content_block_delta", "index": index, "delta": one}) for one in deltas),
        event({"type": "content_block_stop", "index": index}),
    ]


def text_block(index: int, *texts: str) -> list[bytes]:
    return block(index, a_text(""), *({"type": "text_delta", "text": one} for one in texts))


def use_block(index: int, name: str, *pieces: str) -> list[bytes]:
    deltas = ({"type": "input_json_delta", "partial_json": piece} for piece in pieces)
    return block(index, a_use(name), *deltas)


BEGIN = event({"type": "message_start", "message": a_body(stop=None)})
PING = event({"type": "ping"})


def ending(stop: str = "end_turn") -> list[bytes]:
    last = {"delta": {"stop_reason": stop}, "usage": {"output_tokens": 9, "input_tokens": None}}
    return [event({"type": "message_delta", **last}), event({"type": "message_stop"})]


@pytest.fixture
def outcome(server: StubServer, claude: MakingClaude, reactor: Handover) -> Outcome:
    """Return the outcome of a request to a server with the given behaviours."""

    def asked(
        *behaviours: Behaviour,
        endpoint: dict[str, Any] | None = None,
        listener: Callable[[str], None] | None = None,
        **more: Any,
    ) -> Any:
        server.behaves(*behaviours)
        chat = claude(**(endpoint or {}))
        request = a_request(model="", **more)
        return reactor.outcome_of(chat.complete(request, listener=listener))

    return asked


def test_request_goes_to_the_messages_api_with_the_key(
    outcome: Outcome, server: StubServer
) -> None:
    sampling = Sampling(temperature=0.5, seed=7, extra={"top_k": 5, "messages": []})
    outcome(says(a_text("Aye.")), cache_key="npc-12", sampling=sampling)
    (seen,) = server.requests
    assert seen.path == "/v1/messages"
    assert any(KEY in value for value in seen.headers.values())
    assert seen.body == {
        "model": "claude-tiny",
        "max_tokens": 64,
        "system": [a_text("You are Oren.")],
        "messages": [{"role": "user", "content": [a_text("Hello?")]}],
        "temperature": 0.5,
        "top_k": 5,
        "metadata": {"user_id": sha256(b"\0npc-12").hexdigest()[:32]},
    }


def test_usage_counts_cached_tokens_as_input(outcome: Outcome) -> None:
    assert outcome(says(a_text("The ferry "), a_text("is late."))) == ChatReply(
        text="The ferry is late.",
        model="claude-tiny",
        finish_reason="stop",
        usage=Usage(input_tokens=801, output_tokens=5, cached_tokens=767, written_tokens=20),
    )


def test_tool_call_has_its_input_as_json(outcome: Outcome) -> None:
    calls = [a_use("look"), a_use("give", {"to": "Zoë"}, id="toolu_2")]
    reply = outcome(says(a_text("Here."), *calls, stop="tool_use"))
    assert (reply.text, reply.finish_reason) == ("Here.", "tool_calls")
    assert reply.tool_calls == (
        ToolCall(id="toolu_1", name="look", arguments="{}"),
        ToolCall(id="toolu_2", name="give", arguments='{"to": "Zoë"}'),
    )


def test_thinking_is_not_part_of_the_text(outcome: Outcome) -> None:
    thinking = {"type": "thinking", "thinking": "He lies.", "signature": "x"}
    assert outcome(says(thinking, a_text("Aye."))).text == "Aye."
    assert isinstance(outcome(says(thinking, stop="max_tokens")), ModelRubbish)


def test_schema_becomes_a_forced_tool_whose_input_is_the_text(
    outcome: Outcome, server: StubServer
) -> None:
    reply = outcome(says(a_use("act", {"say": "Aye."}), stop="tool_use"), schema=ACT)
    assert (reply.text, reply.tool_calls, reply.finish_reason) == ('{"say": "Aye."}', (), "stop")
    body = server.requests[0].body
    assert body["tool_choice"] == {"type": "tool", "name": "act"}
    assert body["tools"][0]["input_schema"] == ACT.schema


@pytest.mark.parametrize(
    ("stop", "finish"),
    [
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("pause_turn", "pause_turn"),
        (None, "stop"),
    ],
)
def test_stop_reason_is_translated_to_the_common_words(
    outcome: Outcome, stop: str | None, finish: str
) -> None:
    assert outcome(says(a_text("Aye."), stop=stop)).finish_reason == finish


# Streams


def test_listener_hears_the_stream_in_order_before_the_reply(
    outcome: Outcome, server: StubServer
) -> None:
    thinking = block(0, {"type": "thinking"}, {"type": "thinking_delta", "thinking": "He lies."})
    texts = text_block(1, "The ", "ferry ", "is late.")
    pieces: list[str] = []
    behaviour = streams(BEGIN, PING, *thinking, *texts, *ending(), pause=0.01)
    assert outcome(behaviour, listener=pieces.append) == ChatReply(
        text="The ferry is late.",
        model="claude-tiny",
        finish_reason="stop",
        usage=Usage(input_tokens=801, output_tokens=9, cached_tokens=767, written_tokens=20),
    )
    assert "".join(pieces) == "The ferry is late."
    assert server.requests[0].body["stream"] is True


def test_stream_without_input_count_has_no_usage(outcome: Outcome) -> None:
    reply = outcome(streams(*text_block(0, "Aye."), *ending()), listener=lambda _: None)
    assert (reply.text, reply.usage) == ("Aye.", None)


def test_tool_calls_of_a_stream_are_complete_and_not_heard(outcome: Outcome) -> None:
    pieces: list[str] = []
    uses = use_block(0, "give", '{"to"', ': "Anna"}'), use_block(1, "look")
    behaviour = streams(BEGIN, *uses[0], *uses[1], *ending("tool_use"))
    first, second = outcome(behaviour, listener=pieces.append).tool_calls
    assert (first.name, first.arguments) == ("give", '{"to": "Anna"}')
    assert (second.name, second.arguments) == ("look", "{}")
    assert first.id != second.id
    assert pieces == []


def test_listener_hears_the_same_schema_answer_that_is_returned(outcome: Outcome) -> None:
    pieces: list[str] = []
    behaviour = streams(BEGIN, *use_block(0, "act", '{"say":', '  "Aye."}'), *ending("tool_use"))
    reply = outcome(behaviour, listener=pieces.append, schema=ACT)
    assert reply.text == "".join(pieces) == '{"say":  "Aye."}'


def test_stream_that_breaks_off_is_an_error(outcome: Outcome) -> None:
    half = use_block(0, "look", '{"at":')
    problem = outcome(streams(BEGIN, *half), listener=lambda _: None)
    assert isinstance(problem, ModelUnavailable)
    assert "broke off in the reply" in str(problem)


def test_text_stream_without_end_mark_is_a_reply(outcome: Outcome) -> None:
    assert outcome(streams(BEGIN, *text_block(0, "Aye.")), listener=lambda _: None).text == "Aye."


def text_delta(text: str, index: int = 0) -> bytes:
    delta = {"type": "text_delta", "text": text}
    return event({"type": "content_block_delta", "index": index, "delta": delta})


@pytest.mark.parametrize(
    ("events", "text", "arguments"),
    [
        ([text_delta("Aye.")], "Aye.", []),
        ([*text_block(0, "Wait."), *use_block(0, "look", '{"at":', '"boat"}')], "Wait.", ["boat"]),
        (
            [
                *block(0, {"type": "thinking"}, {"type": "thinking_delta", "thinking": "He lies."}),
                *text_block(0, "Aye."),
            ],
            "Aye.",
            [],
        ),
        ([*block(0, {"type": "thinking"}), text_delta("Aye.")], "Aye.", []),
        (
            block(
                0,
                a_use("look", {"at": "boat"}),
                {"type": "input_json_delta", "partial_json": '{"at":'},
                {"type": "input_json_delta", "partial_json": '"boat"}'},
            ),
            "",
            ["boat"],
        ),
        (
            [
                *use_block(0, "look"),
                *text_block(0, "Wait."),
                event(
                    {
                        "type": "content_block_delta",
                        "index": 0,
                        "delta": {"type": "input_json_delta", "partial_json": '{"at": "boat"}'},
                    }
                ),
            ],
            "Wait.",
            ["boat"],
        ),
    ],
)
def test_blocks_with_a_shared_index_or_without_start_are_complete(
    outcome: Outcome, events: list[bytes], text: str, arguments: list[str]
) -> None:
    pieces: list[str] = []
    reply = outcome(streams(BEGIN, *events, *ending()), listener=pieces.append)
    assert (reply.text, "".join(pieces)) == (text, text)
    assert [json.loads(call.arguments)["at"] for call in reply.tool_calls] == arguments


def test_stalled_stream_fails_at_the_idle_limit(outcome: Outcome) -> None:
    stalled = streams_and_stalls(BEGIN, *text_block(0, "The"))
    problem = outcome(stalled, listener=lambda _: None, endpoint={"idle_seconds": 0.2})
    assert isinstance(problem, ModelTimeout)
    assert "silent after 0.2 seconds" in str(problem)


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        ({"type": "overloaded_error", "message": "Busy"}, ModelUnavailable, "Busy"),
        ({"type": "invalid_request_error", "message": "No"}, ModelRefused, "No"),
        ({"type": "odd", "message": "Hm"}, ModelRubbish, "sent an error: Hm"),
    ],
)
def test_error_in_a_stream_fails_the_request(
    outcome: Outcome, error: dict[str, str], kind: type[Exception], said: str
) -> None:
    problem = outcome(
        streams(BEGIN, event({"type": "error", "error": error})), listener=lambda _: None
    )
    assert isinstance(problem, kind)
    assert said in str(problem)


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"type": "content_block_delta", "index": 7, "delta": {"text": "lost"}},
        {"type": "content_block_start", "content_block": 3},
        {"type": "message_delta", "usage": [1], "delta": None},
    ],
)
def test_unknown_events_add_no_text(outcome: Outcome, odd: dict[str, Any]) -> None:
    behaviour = streams(BEGIN, event(odd), *text_block(1, "Aye."), *ending())
    assert outcome(behaviour, listener=lambda _: None).text == "Aye."


# Failures


def test_busy_server_is_retried_after_the_time_it_names(
    outcome: Outcome, server: StubServer
) -> None:
    busy = fails(429, "slow down", retry_after="0.05")
    assert outcome(busy, says(a_text("Now.")), endpoint={"max_retries": 1}).text == "Now."
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("behaviour", "kind"),
    [
        (fails(429, f"key {KEY}"), ModelUnavailable),
        (fails(529), ModelUnavailable),
        (fails(401, f"invalid {KEY}"), ModelRefused),
        (hangs_up, ModelUnavailable),
        (closes_early, ModelUnavailable),
        (stalls, ModelTimeout),
        (sends(b"<html>"), ModelRubbish),
        (sends(b"{}"), ModelRubbish),
        (sends(b'{"content": []}'), ModelRubbish),
        (sends(b'{"type": "error", "error": {"type": "api_error"}}'), ModelUnavailable),
        (sends(b'{"content": [{"type": "text", "text": "' + b"x" * 99_999 + b'"}]}'), ModelRubbish),
    ],
)
def test_error_message_is_translated_and_has_no_key(
    outcome: Outcome, behaviour: Behaviour, kind: type[ModelError]
) -> None:
    # Only a stalled server may reach the limit, not an answer on a busy machine.
    limit = 0.3 if kind is ModelTimeout else 30.0
    problem = outcome(behaviour, timeout_seconds=limit, endpoint={"max_reply_bytes": 50_000})
    assert isinstance(problem, kind)
    assert KEY not in told_of(problem)


def test_cancelled_request_closes_its_connection(
    server: StubServer, claude: MakingClaude, reactor: Handover
) -> None:
    server.behaves(stalls_until_left)
    asked = claude().complete(a_request())
    server.wait_for_requests(1)
    asked.cancel()
    assert isinstance(reactor.outcome_of(asked), CancelledError)
    assert server.left.wait(60)


def test_client_without_key_does_not_read_the_environment(
    outcome: Outcome, server: StubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-of-another-provider")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "another-token")
    outcome(says(a_text("Aye.")), endpoint={"api_key": SecretText()})
    assert "another" not in str(server.requests[0].headers)
