"""Limits of a day and of a month that workers read from the table of calls before a call."""

from typing import Any

import pytest

from evennia_ai.npc.jobs.worker.tools import _why_never
from evennia_ai.services.llm.quotas import DAY_SECONDS, Quota, month_of
from evennia_ai.store.model_calls import NewCall, add_call
from tests.store.conftest import _fresh

__all__ = ["_fresh"]

NOON = 20_000 * DAY_SECONDS + 43_200.0
FIRST = month_of(NOON)[0]
DOLLAR = 10**9


@pytest.mark.parametrize(
    ("quota", "reached"),
    [
        ({}, None),
        ({"dollars_per_day": 1.5}, None),
        ({"dollars_per_day": 1}, "the limits of the day of the game are reached"),
        ({"dollars_per_month": 3.5}, None),
        ({"dollars_per_month": 3}, "the limit of the month of the game is reached"),
        ({"calls_per_day": 1}, "the limits of the day of the game are reached"),
    ],
)
def test_worker_asks_no_model_when_the_money_of_a_day_or_month_is_spent(
    quota: dict[str, Any], reached: str | None
) -> None:
    for at, dollars in ((FIRST - 1, 50), (FIRST + 1, 2), (NOON, 1)):
        add_call(
            NewCall(
                npc_ref="5",
                role="speaker",
                started_at=at,
                seconds=1.0,
                nanodollars=dollars * DOLLAR,
            )
        )
    assert _why_never("", Quota(**quota), tokens=1, now=NOON) == reached
