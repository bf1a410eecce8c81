"""What a server sends is counted before it is worked on: a flood is no reply, and soon told so."""

import json
from collections.abc import Callable
from time import monotonic, process_time
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from evennia_ai.llm import reply_bounds, sse, transport
from evennia_ai.llm.bridge import AsyncBridge
from evennia_ai.llm.chat import ChatReply, ChatRequest, Usage
from evennia_ai.llm.errors import ModelRubbish, ModelTimeout
from evennia_ai.llm.json_answers import MAX_WRITTEN_CHARACTERS, written
from evennia_ai.llm.reply_bounds import MOST_CALLS, MOST_UNSEEN_TOKENS
from evennia_ai.llm.setbacks import retry_after_seconds
from tests.llm.builders import a_message, a_request
from tests.llm.conftest import Making, MakingClaude
from tests.llm.handover import Handover
from tests.llm.stub_server import Behaviour, StubServer, answers, delta, event, sends, streams

MANY = 300_000
DRIPS = "100000 chunks"
"""Why a stream in small chunks ends; on a busy machine its time limit may come first."""

PROCESSOR_SECONDS = 8.0
"""What a flood may cost in all, server and test included; a good deal less is usual."""

LATER_SECONDS = 10.0
"""How much longer another reply may take meanwhile; on a quiet machine it is under one."""

A_LONG_PROMPT = a_request(messages=tuple(a_message("user", "word " * 100) for _ in range(200)))


def in_chunks(body: bytes, *, of: int, content_type: str = "text/event-stream") -> Behaviour:
    """Send a body in HTTP chunks of so many bytes."""

    def behave(handler: Any) -> None:
        handler.protocol_version = "HTTP/1.1"
        handler.send_response(200)
        handler.send_header("Content-Type", content_type)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        pieces = (body[at : at + of] for at in range(0, len(body), of))
        handler.send(b"".join(b"%x\r\n%s\r\n" % (len(one), one) for one in pieces) + b"0\r\n\r\n")

    return behave


def whole(**message: Any) -> Behaviour:
    return sends(json.dumps({"choices": [{"message": message}]}, separators=(",", ":")).encode())


def block_start(index: int) -> bytes:
    block = {"type": "tool_use", "name": "look"}
    return event({"type": "content_block_start", "index": index, "content_block": block})


CALLS_IN_EVENTS = b"".join(event(delta(tool_calls=[{"index": n}])) for n in range(60_000))
BLOCKS_IN_EVENTS = b"".join(map(block_start, range(60_000)))
OPENAI: dict[str, tuple[Behaviour, bool, str]] = {
    "calls in one body": (whole(tool_calls=[{}] * MANY), False, "64 tool calls"),
    "calls in one event": (
        streams(event(delta(tool_calls=[{}] * (MANY // 2)))),
        True,
        "64 tool calls",
    ),
    "calls in one event without an end": (
        streams(event(delta(tool_calls=[{}] * 65)).rstrip()),
        True,
        "64 tool calls",
    ),
    "calls in events of their own": (streams(CALLS_IN_EVENTS), True, "64 tool calls"),
    "calls again and again": (
        streams(event(delta(tool_calls=[{}] * 64)) * 30_000),
        True,
        "100000 pieces",
    ),
    "arguments letter by letter": (
        streams(event(delta(tool_calls=[{"function": {"arguments": "x" * 2_000}}])) * 60),
        True,
        "100000 characters of arguments",
    ),
    "parts of a message": (
        whole(content=[{"type": "text"}] * 30_000),
        False,
        "1024 parts of a message",
    ),
    "choices": (sends(b'{"choices":[' + b"{}," * MANY + b"{}]}"), False, "1024 choices"),
    "empty events": (streams(b"data:{}\n\n" * 1_000_000), True, "100000 events"),
    "comments": (streams(b":\n" * 5_000_000), True, "400000 lines"),
    "a large event": (
        streams(b"data:[" + b"[]," * 3_000_000 + b"[]]\n\n"),
        True,
        "larger than 1000000 bytes",
    ),
    "a body byte by byte": (
        in_chunks(b" " * 300_000, of=1, content_type="application/json"),
        False,
        "chunks of less than 32 bytes",
    ),
    "a stream byte by byte": (
        in_chunks(b":" + b" " * 300_000, of=1),
        True,
        "chunks of less than 32 bytes",
    ),
    "a stream in small chunks": (
        in_chunks((b":" + b" " * 30 + b"\n\n") * 121_000, of=33),
        True,
        DRIPS,
    ),
}
ANTHROPIC: dict[str, tuple[Behaviour, bool, str]] = {
    "blocks in one body": (
        sends(b'{"content":[' + b"{}," * MANY + b"{}]}"),
        False,
        "1024 blocks",
    ),
    "calls in one body": (
        sends(json.dumps({"content": [{"type": "tool_use"}] * 1_000}).encode()),
        False,
        "64 tool calls",
    ),
    "calls in events": (streams(BLOCKS_IN_EVENTS), True, "64 tool calls"),
    "arguments in pieces": (
        streams(
            block_start(0),
            event(
                {
                    "type": "content_block_delta",
                    "index": 0,
                    "delta": {"partial_json": "x" * 2_000},
                }
            )
            * 60,
        ),
        True,
        "100000 characters of arguments",
    ),
}


def asked(chat: Any, request: ChatRequest, *, heard: bool) -> Deferred[ChatReply]:
    listener: Callable[[str], None] | None = (lambda _: None) if heard else None
    asking: Deferred[ChatReply] = chat.complete(request, listener=listener)
    return asking


def assert_ends_soon(
    chat: Any, reactor: Handover, flood: tuple[Behaviour, bool, str], server: StubServer
) -> None:
    behaviour, heard, reason = flood
    server.behaves(behaviour)
    before = process_time()
    outcome = reactor.outcome_of(asked(chat, A_LONG_PROMPT, heard=heard), within_seconds=30)
    if reason != DRIPS or not isinstance(outcome, ModelTimeout):
        assert isinstance(outcome, ModelRubbish), outcome
        assert reason in str(outcome)
    assert process_time() - before < PROCESSOR_SECONDS


@pytest.mark.parametrize("name", OPENAI)
def test_a_flood_is_no_reply_and_costs_little(
    server: StubServer, model: Making, reactor: Handover, name: str
) -> None:
    chat = model(timeout_seconds=30, idle_seconds=20)
    assert_ends_soon(chat, reactor, OPENAI[name], server)


@pytest.mark.parametrize("name", ANTHROPIC)
def test_a_flood_of_blocks_is_no_reply_and_costs_little(
    server: StubServer, claude: MakingClaude, reactor: Handover, name: str
) -> None:
    chat = claude(timeout_seconds=30, idle_seconds=20)
    assert_ends_soon(chat, reactor, ANTHROPIC[name], server)


@pytest.mark.parametrize("name", ["calls in one body", "empty events", "a stream in small chunks"])
def test_another_reply_does_not_wait_while_a_flood_is_read(
    server: StubServer, model: Making, reactor: Handover, bridge: AsyncBridge, name: str
) -> None:
    behaviour, heard, reason = OPENAI[name]
    flooded, other = model(timeout_seconds=30, idle_seconds=20), StubServer()
    well = model(base_url=other.base_url, timeout_seconds=30)
    reactor.outcome_of(well.complete(a_request()))
    server.behaves(behaviour)
    flood = asked(flooded, A_LONG_PROMPT, heard=heard)
    slowest, ended = 0.0, flood.addErrback(lambda failure: failure.value)
    while not ended.called:
        began = monotonic()
        assert isinstance(reactor.outcome_of(well.complete(a_request())), ChatReply)
        slowest = max(slowest, monotonic() - began)
    other.close()
    print(f"slowest other reply: {slowest:.3f} s")
    outcome = reactor.outcome_of(ended)
    assert isinstance(outcome, ModelRubbish) or (reason == DRIPS and type(outcome) is ModelTimeout)
    assert slowest < LATER_SECONDS


def test_as_many_calls_as_may_be_are_read(
    server: StubServer, model: Making, reactor: Handover
) -> None:
    server.behaves(whole(tool_calls=[{}] * MOST_CALLS))
    assert len(reactor.outcome_of(asked(model(), a_request(), heard=False)).tool_calls) == 64


def test_all_that_was_said_before_is_hashed_once_for_all_calls(
    server: StubServer, model: Making, reactor: Handover, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[int] = []
    monkeypatch.setattr(
        "evennia_ai.llm.tool_calls.sent_sha256", lambda messages: hashed.append(1) or "0"
    )
    server.behaves(whole(tool_calls=[{}] * MOST_CALLS))
    reactor.outcome_of(asked(model(), a_request(), heard=False))
    assert hashed == [1]


def test_tokens_are_believed_as_far_as_they_can_be_true(
    server: StubServer, model: Making, reactor: Handover
) -> None:
    details = {"cached_tokens": 2**31, "cache_write_tokens": 2**40}
    usage = {"prompt_tokens": 2**31, "completion_tokens": 10**30, "prompt_tokens_details": details}
    server.behaves(answers("Hello.", usage=usage))
    request = a_request(max_tokens=50)
    told = reactor.outcome_of(asked(model(), request, heard=False)).usage
    assert isinstance(told, Usage)
    most_read = MOST_UNSEEN_TOKENS + 1_000
    assert max(told.input_tokens, told.cached_tokens, told.written_tokens) < most_read
    assert told.output_tokens < 50 + 1_000


def test_tokens_of_a_stream_are_believed_as_far_as_they_can_be_true(
    server: StubServer, model: Making, reactor: Handover
) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 2**31}
    last = {"choices": [], "usage": usage}
    server.behaves(streams(event(delta("Aye.", finish="stop")), event(last), event("[DONE]")))
    told = reactor.outcome_of(asked(model(), a_request(max_tokens=50), heard=True)).usage
    assert told.input_tokens == 10
    assert told.output_tokens < 50 + 1_000


def test_an_answer_of_a_form_is_not_looked_for_in_a_flood() -> None:
    assert "characters" in written("<" * (MAX_WRITTEN_CHARACTERS + 1)).problem


def test_a_header_is_read_no_further_than_a_date_is_long() -> None:
    assert retry_after_seconds({"retry-after": "1" + " " * 100_000 + "x"}) == 1.0


def test_the_bounds_leave_room_for_the_longest_honest_reply() -> None:
    assert reply_bounds.MOST_EVENTS >= 65_536  # an event a token, reasoning included
    assert sse.LARGEST_EVENT_BYTES >= 1_000_000
    assert transport.MOST_REASON_CHUNKS >= 64
