"""Test that attempts are repeated with growing pauses, while that is useful and in time."""

import asyncio
import time
from typing import Any

import pytest

from evennia_ai.services.net.http import FailedAttempt, pause_seconds, retry_attempts


@pytest.mark.parametrize(
    ("retried", "chance", "seconds"),
    [(0, 0, 0.25), (0, 1, 0.5), (1, 1, 1.0), (4, 1, 8.0), (50, 1, 8.0), (50, 0, 4.0)],
)
def test_pauses_double_up_to_a_limit_and_vary(retried: int, chance: float, seconds: float) -> None:
    assert pause_seconds(retried, after_seconds=None, chance=chance) == seconds


def test_retry_after_is_waited_for_with_a_random_part() -> None:
    assert pause_seconds(0, after_seconds=2, chance=0) == 2
    assert pause_seconds(0, after_seconds=2, chance=1) == pytest.approx(2.2)


ANSWER = "Aye."
BUSY = FailedAttempt(again=True, after_seconds=0)


def tried(*outcomes: str | FailedAttempt, seconds: float = 5, max_retries: int = 2) -> Any:
    """Return the outcome of attempts with these results, and how many were made."""
    left = list(outcomes)

    async def attempt() -> str | FailedAttempt:
        return left.pop(0)

    outcome = asyncio.run(
        retry_attempts(attempt, max_retries=max_retries, may_pause=lambda pause: pause < seconds)
    )
    return outcome, len(outcomes) - len(left)


def test_success_ends_the_attempts() -> None:
    assert tried(BUSY, ANSWER, ANSWER) == (ANSWER, 2)


def test_outcome_is_the_failure_of_the_last_attempt() -> None:
    last = FailedAttempt(again=True)
    outcome, attempts = tried(BUSY, BUSY, last)
    assert outcome is last
    assert attempts == 3


def test_useless_attempt_is_not_repeated() -> None:
    refused = FailedAttempt()
    assert tried(refused, ANSWER) == (refused, 1)
    assert tried(BUSY, ANSWER, max_retries=0)[1] == 1


def test_attempts_end_when_there_is_no_time_for_the_pause() -> None:
    began = time.monotonic()
    busy = FailedAttempt(again=True, after_seconds=60)
    assert tried(busy, ANSWER, seconds=50) == (busy, 1)
    assert time.monotonic() - began < 50
