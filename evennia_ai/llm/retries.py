"""Asks again, later and later, as long as that is worth it and there is time.

A server's `Retry-After` is obeyed; without one the pauses double. Chance stretches each pause, so
that many who were turned away together do not come back together.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Final

from evennia_ai.llm.chat import ChatReply
from evennia_ai.llm.errors import ModelError
from evennia_ai.llm.setbacks import Setback

FIRST_PAUSE_SECONDS: Final = 0.5
LONGEST_PAUSE_SECONDS: Final = 8.0

Attempt = Callable[[], Awaitable[ChatReply | Setback]]


async def persistently(
    attempt: Attempt, *, max_retries: int, until: float, again: Callable[[Setback], bool]
) -> ChatReply | ModelError:
    """What `attempt` comes to in the end; `until` is the last moment, by the loop's clock.

    `again` may give up what would be worth another attempt.
    """
    now = asyncio.get_running_loop().time
    for retried in range(max_retries + 1):
        outcome = await attempt()
        if isinstance(outcome, ChatReply):
            return outcome
        pause = pause_seconds(retried, after_seconds=outcome.after_seconds, chance=random.random())
        in_time = now() + pause < until
        if retried == max_retries or not (outcome.again and in_time and again(outcome)):
            return outcome.error
        await asyncio.sleep(pause)
    raise AssertionError("there is always a first attempt")


def pause_seconds(retried: int, *, after_seconds: float | None, chance: float) -> float:
    """How long to wait after the attempt number `retried`; `chance` is from 0 to 1."""
    if after_seconds is not None:
        return after_seconds * (1 + chance / 10)
    longest = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2.0 ** min(retried, 10))
    return longest * (1 + chance) / 2
