"""What is worth another attempt, and when."""

import asyncio
import time
from email.utils import formatdate
from typing import Any

import pytest

from evennia_ai.llm.chat import ChatReply
from evennia_ai.llm.endpoint import Endpoint
from evennia_ai.llm.errors import ModelError, ModelRefused, ModelUnavailable
from evennia_ai.llm.retries import pause_seconds, persistently
from evennia_ai.llm.setbacks import Setback, setback_of_status

ENDPOINT = Endpoint(name="stub", base_url="http://127.0.0.1:1/v1", model="tiny")
REPLY = ChatReply(text="Aye.", model="tiny")


def a_setback(status: int = 503, **headers: str) -> Setback:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return setback_of_status(ENDPOINT, status, "out of order", named)


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 529])
def test_a_busy_or_broken_server_is_worth_another_attempt(status: int) -> None:
    setback = a_setback(status)
    assert isinstance(setback.error, ModelUnavailable)
    assert (setback.error.status, setback.again) == (status, True)


@pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 413, 422])
def test_a_refusal_is_not(status: int) -> None:
    setback = a_setback(status)
    assert isinstance(setback.error, ModelRefused)
    assert not setback.again


def test_a_server_can_say_that_another_attempt_is_no_use() -> None:
    assert not a_setback(429, x_should_retry="false").again


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
def test_the_time_a_server_asks_for_is_read(headers: dict[str, str], seconds: float | None) -> None:
    setback = a_setback(429, **headers)
    assert setback.after_seconds == seconds
    assert isinstance(setback.error, ModelUnavailable)
    assert setback.error.retry_in_seconds == seconds


def test_a_date_to_come_is_so_many_seconds_away() -> None:
    after = a_setback(429, retry_after=formatdate(time.time() + 60, usegmt=True)).after_seconds
    assert after is not None
    assert 50 < after <= 61


@pytest.mark.parametrize("date", ["Wed, 99 Foo 99999 99:99:99", "Fri, 31 Dec 99999 23:59:59 GMT"])
def test_a_date_that_is_none_is_nothing(date: str) -> None:
    assert a_setback(429, retry_after=date).after_seconds is None


@pytest.mark.parametrize(
    ("retried", "chance", "seconds"),
    [(0, 0, 0.25), (0, 1, 0.5), (1, 1, 1.0), (4, 1, 8.0), (50, 1, 8.0), (50, 0, 4.0)],
)
def test_pauses_double_up_to_a_limit_and_vary(retried: int, chance: float, seconds: float) -> None:
    assert pause_seconds(retried, after_seconds=None, chance=chance) == seconds


def test_who_is_told_to_wait_waits_as_long_and_a_little_more() -> None:
    assert pause_seconds(0, after_seconds=2, chance=0) == 2
    assert pause_seconds(0, after_seconds=2, chance=1) == pytest.approx(2.2)


def tried(*outcomes: ChatReply | Setback, seconds: float = 5, **more: Any) -> tuple[Any, int]:
    """What attempts with these outcomes come to, and how many were made."""
    left = list(outcomes)

    async def attempt() -> ChatReply | Setback:
        return left.pop(0)

    async def run() -> ChatReply | ModelError:
        until = asyncio.get_running_loop().time() + seconds
        wanted = {"max_retries": 2, "again": lambda _: True}
        return await persistently(attempt, until=until, **(wanted | more))

    return asyncio.run(run()), len(outcomes) - len(left)


def test_a_reply_ends_the_attempts() -> None:
    assert tried(a_setback(retry_after="0"), REPLY, REPLY) == (REPLY, 2)


def test_the_last_attempts_error_is_the_outcome() -> None:
    last = a_setback(502)
    outcome, attempts = tried(*[a_setback(retry_after="0")] * 2, last)
    assert (outcome, attempts) == (last.error, 3)


def test_what_is_no_use_is_not_tried_again() -> None:
    refused = a_setback(400)
    assert tried(refused, REPLY) == (refused.error, 1)
    assert tried(a_setback(), REPLY, max_retries=0)[1] == 1
    assert tried(a_setback(), REPLY, again=lambda _: False)[1] == 1


def test_who_has_no_time_for_the_pause_gives_up_at_once() -> None:
    began = time.monotonic()
    busy = a_setback(429, retry_after="60")
    assert tried(busy, REPLY, seconds=5) == (busy.error, 1)
    assert time.monotonic() - began < 1
