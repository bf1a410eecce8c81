"""Test quotas per minute and day, and the meters of their use."""

import pytest

from evennia_ai.engine.errors import FormatError
from evennia_ai.services.llm.quotas import (
    DAY_SECONDS,
    LIMITS,
    Meter,
    Quota,
    Quotas,
    read_quotas,
)

NOON = 20_000 * DAY_SECONDS + DAY_SECONDS / 2


def a_meter(*, calls: int = 0, tokens: int = 0, at: float = NOON) -> Meter:
    meter = Meter()
    for _ in range(calls):
        meter.begun(at, reserved_tokens=0)
    if tokens:
        meter.ended(at, reserved_tokens=0, tokens=tokens)
    return meter


def test_meter_without_limit_is_never_reached() -> None:
    assert a_meter(calls=10_000, tokens=10**9).reached(NOON, Quota()) is None


def test_last_call_of_a_minute_is_allowed_and_the_next_refused() -> None:
    quota = Quota(calls_per_minute=2)
    assert a_meter(calls=1).reached(NOON, quota) is None
    reached = a_meter(calls=2).reached(NOON, quota)
    assert reached is not None
    assert (reached.limit, reached.most) == ("calls_per_minute", 2)


def test_call_stops_counting_for_the_minute_after_sixty_seconds() -> None:
    meter = a_meter(calls=1)
    assert meter.reached(NOON + 59.9, Quota(calls_per_minute=1)) is not None
    assert meter.reached(NOON + 60, Quota(calls_per_minute=1)) is None


def test_full_minute_says_when_there_is_room() -> None:
    reached = a_meter(calls=1).reached(NOON + 20, Quota(calls_per_minute=1))
    assert reached is not None
    assert reached.retry_in_seconds == 40


def test_full_day_says_when_the_next_begins() -> None:
    reached = a_meter(calls=1).reached(NOON, Quota(calls_per_day=1))
    assert reached is not None
    assert reached.retry_in_seconds == DAY_SECONDS / 2


def test_call_counts_only_for_its_own_day() -> None:
    meter = a_meter(calls=1)
    assert meter.reached(NOON + 3600, Quota(calls_per_day=1)) is not None
    assert meter.reached(NOON + DAY_SECONDS / 2, Quota(calls_per_day=1)) is None


def test_tokens_of_a_running_call_are_reserved() -> None:
    meter = Meter()
    meter.begun(NOON, reserved_tokens=900)
    quota = Quota(tokens_per_minute=1000)
    assert meter.reached(NOON, quota, tokens=100) is None
    assert meter.reached(NOON, quota, tokens=101) is not None


def test_reserved_tokens_are_replaced_by_used_ones() -> None:
    meter = Meter()
    meter.begun(NOON, reserved_tokens=900)
    meter.ended(NOON + 1, reserved_tokens=900, tokens=200)
    read = meter.reading(NOON + 1)
    assert (read.tokens_per_minute, read.tokens_per_day) == (200, 200)


def test_call_running_at_midnight_counts_for_the_day_it_ends() -> None:
    midnight = 20_001 * DAY_SECONDS
    meter = Meter()
    meter.begun(midnight - 1, reserved_tokens=900)
    meter.ended(midnight + 1, reserved_tokens=900, tokens=200)
    read = meter.reading(midnight + 1)
    assert (read.calls_per_day, read.tokens_per_day) == (0, 200)


def test_restored_use_counts_for_the_day_only() -> None:
    meter = Meter()
    meter.restored(NOON, calls=7, tokens=70)
    read = meter.reading(NOON)
    assert (read.calls_per_minute, read.calls_per_day, read.tokens_per_day) == (0, 7, 70)


def test_meter_is_idle_when_nothing_counts() -> None:
    meter = a_meter(calls=1)
    assert not meter.is_idle(NOON)
    assert meter.is_idle(NOON + DAY_SECONDS)


def test_meter_size_does_not_grow_with_use() -> None:
    meter = Meter()
    for at in range(100_000):
        meter.begun(NOON + at / 1000, reserved_tokens=0)
    assert meter.reading(NOON + 99.999).calls_per_minute == 60_000
    assert len(meter._minute) <= 61


def test_own_limit_narrows_and_never_widens() -> None:
    quota = Quota(calls_per_minute=10, calls_per_day=100)
    narrowed = quota.narrowed(
        {"calls_per_minute": 5, "calls_per_day": 500, "tokens_per_day": 9, "of_old": 1}
    )
    assert narrowed == Quota(calls_per_minute=5, calls_per_day=100, tokens_per_day=9)


def test_limits_that_a_game_does_not_set_keep_their_defaults() -> None:
    read = read_quotas({"player": {"calls_per_minute": 3}}, where="LIMITS")
    assert read.player == Quota(calls_per_minute=3, calls_per_day=Quotas().player.calls_per_day)
    assert read.npc == Quotas().npc


def test_none_removes_a_limit() -> None:
    read = read_quotas({"game": dict.fromkeys(LIMITS)}, where="LIMITS")
    assert read.game == Quota()


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ([], "LIMITS: must be a dictionary"),
        ({"players": {}}, "LIMITS: there is no scope 'players'; did you mean player?"),
        ({"npc": 3}, "LIMITS.npc: must be a dictionary"),
        (
            {"npc": {"calls_a_minute": 3}},
            "LIMITS.npc: there is no limit 'calls_a_minute'; did you mean calls_per_minute?",
        ),
        (
            {"npc": {"calls_per_day": 0}},
            "LIMITS.npc.calls_per_day: must be a whole number from 1 on, or None, not 0",
        ),
        (
            {"npc": {"calls_per_day": True}},
            "LIMITS.npc.calls_per_day: must be a whole number from 1 on, or None, not True",
        ),
    ],
)
def test_invalid_limits_are_reported(given: object, problem: str) -> None:
    with pytest.raises(FormatError) as refused:
        read_quotas(given, where="LIMITS")
    assert refused.value.message == problem
