"""Test that floods of a server are counted before they are processed, and refused soon."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from evennia_ai.engine.errors import ModelRubbish, ModelTimeout
from evennia_ai.services.llm.chat import ChatReply, ChatRequest, Usage
from evennia_ai.services.llm.clients.answers import MOST_CALLS, MOST_UNSEEN_TOKENS
from evennia_ai.services.llm.structured import MAX_WRITTEN_CHARACTERS, json_objects
from evennia_ai.services.net import events, http
from evennia_ai.services.net.http import retry_after_seconds
from tests.services.llm.builders import a_message, a_request
from tests.services.llm.clients.floods import ANTHROPIC, DRIPS, OPENAI, Flood, whole
from tests.services.llm.clients.stub_server import StubServer, answers, delta, event, streams
from tests.services.llm.conftest import Making, MakingClaude
from tests.services.net.handover import Handover

MOST_RECEIVED_BYTES = 20 * 1_000_000 + 65_536
"""The most bytes of a stream, including its framing and one chunk too many."""

A_LONG_PROMPT = a_request(
    messages=tuple(a_message("user", "word " * 100) for _ in range(200)), timeout_seconds=60
)


@dataclass(slots=True)
class Work:
    """The work that was done on what a server sent."""

    looked_at: int = 0
    chunks: int = 0
    received_bytes: int = 0
    hashed: int = 0


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    """Count the work: received chunks and bytes, bodies and events read as JSON, hashes."""
    counted, next_chunk = Work(), http._next

    def loads(text: Any) -> Any:
        counted.looked_at += 1
        return json.loads(text)

    async def comes(chunks: Any) -> bytes | None:
        chunk = await next_chunk(chunks)
        counted.chunks += 1
        counted.received_bytes += len(chunk or b"")
        return chunk

    def hashes(_: object) -> str:
        counted.hashed += 1
        return "0"

    monkeypatch.setattr(http, "json", SimpleNamespace(loads=loads))
    monkeypatch.setattr(http, "_next", comes)
    monkeypatch.setattr("evennia_ai.services.llm.chat.sent_sha256", hashes)
    return counted


def asked(chat: Any, request: ChatRequest, *, heard: bool) -> Deferred[ChatReply]:
    listener: Callable[[str], None] | None = (lambda _: None) if heard else None
    asking: Deferred[ChatReply] = chat.complete(request, listener=listener)
    return asking


def assert_ends_early(
    chat: Any, reactor: Handover, flood: Flood, server: StubServer, work: Work
) -> None:
    server.behaves(flood.sent())
    outcome = reactor.outcome_of(asked(chat, A_LONG_PROMPT, heard=flood.heard), within_seconds=90)
    if flood.reason != DRIPS or not isinstance(outcome, ModelTimeout):
        assert isinstance(outcome, ModelRubbish), outcome
        assert flood.reason in str(outcome)
    assert work.looked_at <= flood.looked_at
    assert work.chunks <= http.MOST_CHUNKS + 1
    assert work.received_bytes <= MOST_RECEIVED_BYTES
    assert work.hashed == 0


@pytest.mark.long
@pytest.mark.parametrize("name", OPENAI)
def test_flood_of_chunks_is_refused_and_not_read_further(
    server: StubServer, model: Making, reactor: Handover, work: Work, name: str
) -> None:
    chat = model(timeout_seconds=60, idle_seconds=50)
    assert_ends_early(chat, reactor, OPENAI[name], server, work)


@pytest.mark.parametrize("name", ANTHROPIC)
def test_flood_of_blocks_is_refused_and_not_read_further(
    server: StubServer, claude: MakingClaude, reactor: Handover, work: Work, name: str
) -> None:
    chat = claude(timeout_seconds=60, idle_seconds=50)
    assert_ends_early(chat, reactor, ANTHROPIC[name], server, work)


@pytest.mark.parametrize(
    ("chunks", "size"), [(10 * http.CHUNKS_BETWEEN, 100), (5, 3 * http.BYTES_BETWEEN)]
)
def test_other_requests_proceed_while_a_flood_is_read(chunks: int, size: int) -> None:
    turns: list[int] = []

    async def flood() -> AsyncIterator[bytes]:
        for _ in range(chunks):
            yield b"x" * size

    async def other() -> None:
        while True:
            turns.append(1)
            await asyncio.sleep(0)

    async def both() -> None:
        going = asyncio.create_task(other())
        response = SimpleNamespace(aiter_bytes=flood)
        await http.receive_body(response, lambda _: None, limit_bytes=1_000_000)
        going.cancel()

    asyncio.run(both())
    assert len(turns) >= 10


def test_reply_may_have_the_maximum_number_of_calls(
    server: StubServer, model: Making, reactor: Handover
) -> None:
    server.behaves(whole(tool_calls=[{}] * MOST_CALLS))
    assert len(reactor.outcome_of(asked(model(), a_request(), heard=False)).tool_calls) == 64


def test_earlier_messages_are_hashed_once_for_all_calls(
    server: StubServer, model: Making, reactor: Handover, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[int] = []
    monkeypatch.setattr(
        "evennia_ai.services.llm.chat.sent_sha256", lambda messages: hashed.append(1) or "0"
    )
    server.behaves(whole(tool_calls=[{}] * MOST_CALLS))
    reactor.outcome_of(asked(model(), a_request(), heard=False))
    assert hashed == [1]


def test_impossible_token_counts_are_reduced(
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


def test_impossible_token_counts_of_a_stream_are_reduced(
    server: StubServer, model: Making, reactor: Handover
) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 2**31}
    last = {"choices": [], "usage": usage}
    server.behaves(streams(event(delta("Aye.", finish="stop")), event(last), event("[DONE]")))
    told = reactor.outcome_of(asked(model(), a_request(max_tokens=50), heard=True)).usage
    assert told.input_tokens == 10
    assert told.output_tokens < 50 + 1_000


def test_flood_is_not_searched_for_an_answer_to_a_schema() -> None:
    assert "characters" in json_objects("<" * (MAX_WRITTEN_CHARACTERS + 1)).problem


def test_retry_after_is_read_only_up_to_the_length_of_a_date() -> None:
    assert retry_after_seconds({"retry-after": "1" + " " * 100_000 + "x"}) == 1.0


def test_bounds_allow_the_longest_honest_reply() -> None:
    assert events.MOST_EVENTS >= 65_536  # One event per token, reasoning included
    assert events.LARGEST_EVENT_BYTES >= 1_000_000
    assert http.MOST_REASON_CHUNKS >= 64
