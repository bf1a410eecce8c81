"""Test quotas per minute and day, and the meters of their use."""

from datetime import UTC, datetime

import pytest

from evennia_ai.engine.errors import FormatError
from evennia_ai.services.llm.money import NANODOLLARS
from evennia_ai.services.llm.quotas import (
    DAY_SECONDS,
    LIMITS,
    Meter,
    Quota,
    Quotas,
    month_of,
    most_in_words,
    read_quotas,
)

NOON = 20_000 * DAY_SECONDS + DAY_SECONDS / 2


def a_meter(*, calls: int = 0, tokens: int = 0, at: float = NOON) -> Meter:
    meter = Meter()
    for _ in range(calls):
        meter.begun(at, reserved_tokens=0)
    if tokens:
        meter.ended(at, reserved_tokens=0, tokens=tokens, nanodollars=0)
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
    meter.ended(NOON + 1, reserved_tokens=900, tokens=200, nanodollars=0)
    read = meter.reading(NOON + 1)
    assert (read.tokens_per_minute, read.tokens_per_day) == (200, 200)


def test_call_running_at_midnight_counts_for_the_day_it_ends() -> None:
    midnight = 20_001 * DAY_SECONDS
    meter = Meter()
    meter.begun(midnight - 1, reserved_tokens=900)
    meter.ended(midnight + 1, reserved_tokens=900, tokens=200, nanodollars=0)
    read = meter.reading(midnight + 1)
    assert (read.calls_per_day, read.tokens_per_day) == (0, 200)


def test_restored_use_counts_for_the_day_only() -> None:
    meter = Meter()
    meter.restored(NOON, calls=7, tokens=70, nanodollars=0)
    read = meter.reading(NOON)
    assert (read.calls_per_minute, read.calls_per_day, read.tokens_per_day) == (0, 7, 70)


# Noon on the last day of October 2026, and times after it.
LAST_NOON = datetime(2026, 10, 31, 12, tzinfo=UTC).timestamp()
HOUR = 3600.0


@pytest.mark.parametrize(
    ("spent_dollars", "quota", "after_hours", "reached"),
    [
        (0.99, Quota(dollars_per_day=1), 0, None),
        (1.0, Quota(dollars_per_day=1), 0, ("dollars_per_day", 12 * HOUR)),
        (1.0, Quota(dollars_per_day=1), 11, ("dollars_per_day", HOUR)),
        (1.0, Quota(dollars_per_day=1), 12, None),
        (1.0, Quota(dollars_per_month=1), 11, ("dollars_per_month", HOUR)),
        (1.0, Quota(dollars_per_month=1), 12, None),
        (1.0, Quota(dollars_per_day=2, dollars_per_month=1), 0, ("dollars_per_month", 12 * HOUR)),
    ],
)
def test_limit_of_money_holds_until_its_day_or_month_ends(
    spent_dollars: float,
    quota: Quota,
    after_hours: float,
    reached: tuple[str, float] | None,
) -> None:
    meter = Meter()
    spent = round(spent_dollars * NANODOLLARS)
    meter.ended(LAST_NOON, reserved_tokens=0, tokens=9, nanodollars=spent)
    found = meter.reached(LAST_NOON + after_hours * HOUR, quota)
    assert (found and (found.limit, found.retry_in_seconds)) == reached


def test_money_of_this_month_is_kept_overnight() -> None:
    meter, first_noon = Meter(), LAST_NOON + DAY_SECONDS
    meter.restored_month(first_noon, nanodollars=3 * NANODOLLARS)
    meter.restored(first_noon, calls=1, tokens=9, nanodollars=NANODOLLARS)
    read = meter.reading(first_noon)
    assert (read.dollars_per_day, read.dollars_per_month) == (1.0, 3.0)
    read = meter.reading(first_noon + DAY_SECONDS)
    assert (read.dollars_per_day, read.dollars_per_month) == (0.0, 3.0)
    assert not meter.is_idle(first_noon + 29 * DAY_SECONDS)
    assert meter.is_idle(first_noon + 30 * DAY_SECONDS)


@pytest.mark.parametrize(
    ("at", "begin", "end"),
    [
        ("2026-12-31T23:59:59", "2026-12-01T00:00:00", "2027-01-01T00:00:00"),
        ("2028-02-29T00:00:00", "2028-02-01T00:00:00", "2028-03-01T00:00:00"),
        ("2027-01-01T00:00:00", "2027-01-01T00:00:00", "2027-02-01T00:00:00"),
    ],
)
def test_month_of_a_time_is_the_month_in_utc(at: str, begin: str, end: str) -> None:
    now, *month = (datetime.fromisoformat(f"{one}Z").timestamp() for one in (at, begin, end))
    assert month_of(now) == tuple(month)


@pytest.mark.parametrize(
    ("limit", "most", "words"),
    [
        ("calls_per_minute", 20, "20 calls per minute"),
        ("dollars_per_day", 2.5, "$2.50 per day"),
        ("dollars_per_month", 0.004, "$0.0040 per month"),
    ],
)
def test_limit_is_rendered_with_its_unit(limit: str, most: float, words: str) -> None:
    assert most_in_words(limit, most) == words


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
        (
            {"game": {"dollars_per_month": 0}},
            "LIMITS.game.dollars_per_month: must be a number of dollars over 0, or None, not 0",
        ),
    ],
)
def test_invalid_limits_are_reported(given: object, problem: str) -> None:
    with pytest.raises(FormatError) as refused:
        read_quotas(given, where="LIMITS")
    assert refused.value.message == problem
