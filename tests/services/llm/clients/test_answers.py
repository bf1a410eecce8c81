"""Test which failures are retried and when, and what an answer says about the prompt."""

import json
import time
from email.utils import formatdate
from typing import Any

import pytest

from evennia_ai.engine.errors import ModelRefused, ModelRubbish, ModelUnavailable
from evennia_ai.services.llm.chat import ChatMessage, ChatRequest
from evennia_ai.services.llm.clients.answers import (
    FailedRequest,
    ReplyReader,
    failed_with_status,
)
from evennia_ai.services.llm.clients.anthropic import AnthropicReply
from evennia_ai.services.llm.clients.openai import OpenAIReply
from evennia_ai.services.llm.profiles import Endpoint
from tests.services.llm.builders import a_request

ENDPOINT = Endpoint(name="stub", base_url="http://127.0.0.1:1/v1", model="tiny")


def a_failure(status: int = 503, **headers: str) -> FailedRequest:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return failed_with_status(ENDPOINT, status, "out of order", named, request=a_request())


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 529])
def test_busy_or_broken_server_is_retried(status: int) -> None:
    failure = a_failure(status)
    assert isinstance(failure.error, ModelUnavailable)
    assert (failure.error.status, failure.again) == (status, True)


@pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 413, 422])
def test_refusal_is_not_retried(status: int) -> None:
    failure = a_failure(status)
    assert isinstance(failure.error, ModelRefused)
    assert not failure.again


def test_server_can_forbid_a_retry() -> None:
    assert not a_failure(429, x_should_retry="false").again


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry_after": "2"}, 2),
        ({"retry_after": " 0.5 "}, 0.5),
        ({"retry_after_ms": "250", "retry_after": "9"}, 0.25),
        ({"retry_after": "-1"}, None),
        ({"retry_after": "nan"}, None),
        ({"retry_after": "inf"}, None),
        ({"retry_after": "soon"}, None),
        ({"retry_after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0),
        ({}, None),
    ],
)
def test_retry_after_of_a_server_is_read(headers: dict[str, str], seconds: float | None) -> None:
    failure = a_failure(429, **headers)
    assert failure.after_seconds == seconds
    assert isinstance(failure.error, ModelUnavailable)
    assert failure.error.retry_in_seconds == seconds


def test_retry_after_date_becomes_seconds() -> None:
    after = a_failure(429, retry_after=formatdate(time.time() + 60, usegmt=True)).after_seconds
    assert after is not None
    assert 50 < after <= 61


@pytest.mark.parametrize("date", ["Wed, 99 Foo 99999 99:99:99", "Fri, 31 Dec 99999 23:59:59 GMT"])
def test_invalid_retry_after_header_is_ignored(date: str) -> None:
    assert a_failure(429, retry_after=date).after_seconds is None


@pytest.mark.parametrize(("characters", "names_it"), [(200, False), (20_000, True)])
def test_empty_reply_to_a_long_prompt_names_the_window(characters: int, names_it: bool) -> None:
    request = ChatRequest(
        messages=(ChatMessage(role="user", content="x" * characters),),
        model="m",
        max_tokens=9,
        timeout_seconds=1.0,
    )
    body = b'{"choices": [{"message": {"content": ""}, "finish_reason": "stop"}]}'
    with pytest.raises(ModelRubbish) as raised:
        OpenAIReply(request, ENDPOINT).read_body(body)
    assert ("longer than the server's window" in str(raised.value)) is names_it


@pytest.mark.parametrize("truncated", [True, False, None, "true"])
def test_reply_of_llama_cpp_says_when_the_server_shortened_the_prompt(truncated: object) -> None:
    request = ChatRequest(messages=(), model="m", max_tokens=9, timeout_seconds=1.0)
    body = {"choices": [{"message": {"content": "Aye."}}], "truncated": truncated}
    reply = OpenAIReply(request, ENDPOINT).read_body(json.dumps(body).encode())
    assert reply.prompt_cut is (truncated is True)


@pytest.mark.parametrize(
    ("kind", "answer", "client"),
    [
        (
            OpenAIReply,
            {"type": "message", "content": [{"type": "text", "text": "Aye."}]},
            "anthropic",
        ),
        (OpenAIReply, {"type": "message_start", "message": {"content": []}}, "anthropic"),
        (AnthropicReply, {"choices": [{"message": {"content": "Aye."}}]}, "openai"),
        (AnthropicReply, {"choices": [{"delta": {"content": "Aye."}}]}, "openai"),
    ],
)
@pytest.mark.parametrize("is_streamed", [True, False])
def test_server_with_the_other_protocol_is_named_with_its_client(
    kind: type[ReplyReader], answer: dict[str, Any], client: str, is_streamed: bool
) -> None:
    reader, body = kind(a_request(), ENDPOINT), json.dumps(answer)
    with pytest.raises(ModelRubbish, match=f'client of the profile to "{client}"'):
        reader.read_event(body) if is_streamed else reader.read_body(body.encode())
