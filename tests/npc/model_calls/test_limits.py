"""Limits of calls and tokens, the rows of calls, and halts of NPCs or the whole game."""

from dataclasses import replace
from typing import Any

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.npc.model_calls.limits import (
    CallKey,
    Limits,
    Refusal,
    is_stopped,
    why_halted,
)
from evennia_ai.services.llm.chat import Usage
from evennia_ai.services.llm.money import NANODOLLARS
from evennia_ai.services.llm.quotas import DAY_SECONDS, Quota, Quotas, QuotaUse, month_of
from evennia_ai.store.model_calls import Halt, NewCall, Used, add_halt, remove_halt

NOON = 20_000 * DAY_SECONDS + 43_200.0
MONTH = month_of(NOON)[0]
KEY = CallKey(npc_ref="5", player_ref="7", prompt_tokens=100, reply_tokens=50)


class Hands:
    """A clock whose time the test sets."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Hands:
    return Hands()


def free(usage: Usage) -> int:
    return 0


def limits_of(
    clock: Hands, *, npcs: Any = None, players: Any = None, spent: Any = None, **scopes: Any
) -> Limits:
    none = Quotas(player=Quota(), npc=Quota(), game=Quota())
    given = {scope: Quota(**limits) for scope, limits in scopes.items()}
    return Limits(
        replace(none, **given),
        now=clock,
        used_since=lambda since: (npcs or {}, players or {}),
        spent_since=lambda since: spent or ({}, {}),
    )


def refusal(limits: Limits, **of: Any) -> Refusal | None:
    return limits.refusal(**{"npc_ref": "5", "player_ref": "7", **of})


def scope_refused(limits: Limits, **of: Any) -> str:
    refused = refusal(limits, **of)
    return refused.scope if refused else ""


@pytest.mark.parametrize("scope", ["player", "npc", "game"])
def test_call_is_refused_when_its_player_npc_or_game_reached_its_limit(
    clock: Hands, scope: str
) -> None:
    limits = limits_of(clock, **{scope: {"calls_per_minute": 1}})
    assert scope_refused(limits) == ""
    limits.begun(KEY)
    assert scope_refused(limits) == scope


@pytest.mark.parametrize(("ref", "scope"), [("5", "npc"), ("", "game"), ("6", "")])
def test_use_by_workers_in_this_minute_counts(clock: Hands, ref: str, scope: str) -> None:
    limits = limits_of(clock, **{one: {"calls_per_minute": 1} for one in ("player", "npc", "game")})
    limits.set_worker_use({ref: QuotaUse(calls_per_minute=1)})
    assert scope_refused(limits) == scope


def test_limit_of_one_player_does_not_affect_another(clock: Hands) -> None:
    limits = limits_of(clock, player={"calls_per_minute": 1})
    limits.begun(KEY)
    assert scope_refused(limits, player_ref="8") == ""


def test_call_without_a_player_does_not_count_for_a_player(clock: Hands) -> None:
    limits = limits_of(clock, player={"calls_per_minute": 1})
    limits.begun(replace(KEY, player_ref=""))
    assert scope_refused(limits, player_ref="") == ""


def test_own_limits_of_an_npc_make_its_quota_tighter(clock: Hands) -> None:
    limits = limits_of(clock, npc={"calls_per_day": 100})
    limits.begun(KEY)
    assert scope_refused(limits, npc_limits={"calls_per_day": 1}) == "npc"
    assert scope_refused(limits, npc_ref="6", npc_limits={"calls_per_day": 1}) == ""


def test_reserved_tokens_of_a_running_call_count(clock: Hands) -> None:
    limits = limits_of(clock, npc={"tokens_per_minute": 150})
    call = limits.begun(KEY)
    assert scope_refused(limits) == "npc"
    limits.ended(call, Usage(input_tokens=100, output_tokens=10), pricing=free)
    assert scope_refused(limits) == ""


def test_refusal_text_names_the_player_the_use_and_the_setting(clock: Hands) -> None:
    limits = limits_of(clock, player={"calls_per_minute": 1})
    limits.begun(KEY)
    clock.now += 37
    refused = refusal(limits)
    assert refused is not None
    assert refused.retry_in_seconds == 23
    assert refused.told == (
        "player #7 has used its 1 calls per minute; again in 23 s"
        " (EVENNIA_AI_LIMITS, player, calls_per_minute)"
    )


def test_refusals_are_counted_until_the_end_of_the_day(clock: Hands) -> None:
    limits = limits_of(clock, npc={"calls_per_minute": 1})
    limits.begun(KEY)
    refusal(limits)
    refusal(limits)
    assert limits.refused("5") == 2
    clock.now += DAY_SECONDS
    assert limits.refused("5") == 0


def test_row_has_the_usage_that_the_provider_reported(clock: Hands) -> None:
    limits = limits_of(clock)
    call = limits.begun(replace(KEY, role="decider", profile="cheap", model="small", turn=4))
    clock.now += 2
    usage = Usage(input_tokens=90, output_tokens=9, cached_tokens=80, written_tokens=7)
    row = limits.ended(call, usage, first_piece_seconds=0.5, pricing=free)
    assert (row.npc_ref, row.player_ref, row.turn, row.role) == ("5", "7", 4, "decider")
    assert (row.profile, row.model, row.outcome) == ("cheap", "small", "answered")
    assert (row.started_at, row.seconds, row.first_piece_seconds) == (NOON, 2.0, 0.5)
    assert (row.input_tokens, row.output_tokens) == (90, 9)
    assert (row.cached_tokens, row.written_tokens, row.is_estimated) == (80, 7, False)


def test_row_is_estimated_when_the_provider_reports_no_usage(clock: Hands) -> None:
    limits = limits_of(clock)
    row = limits.ended(limits.begun(KEY), None, reply_tokens=12, pricing=free)
    assert (row.input_tokens, row.output_tokens, row.is_estimated) == (100, 12, True)
    assert (row.cached_tokens, row.written_tokens) == (None, None)


def test_call_that_reached_no_model_costs_no_tokens(clock: Hands) -> None:
    limits = limits_of(clock)
    row = limits.ended(limits.begun(KEY), None, "failed:unavailable", pricing=free)
    assert row.tokens == 0


def test_timed_out_call_costs_the_tokens_of_its_prompt(clock: Hands) -> None:
    limits = limits_of(clock)
    row = limits.ended(limits.begun(KEY), None, "failed:timeout", pricing=free)
    assert row.tokens == 100


def test_use_of_today_is_read_again_after_a_restart(clock: Hands) -> None:
    used = Used(calls=1, input_tokens=10)
    limits = limits_of(clock, npcs={"5": used}, players={"7": used, "": used})
    assert limits.reading("npc", "5").calls_per_day == 1
    assert limits.reading("player", "7").tokens_per_day == 10
    assert limits.reading("game").calls_per_day == 1


def test_use_is_read_once_from_midnight_and_money_from_the_first_of_the_month(clock: Hands) -> None:
    asked: list[float] = []

    def used_since(since: float) -> Any:
        asked.append(since)
        return {}, {}

    limits = Limits(Quotas(), now=clock, used_since=used_since, spent_since=used_since)
    refusal(limits)
    refusal(limits)
    assert asked == [20_000 * DAY_SECONDS, MONTH]


def test_meters_of_a_day_are_dropped_the_next_day(clock: Hands) -> None:
    limits = limits_of(clock)
    for ref in range(50):
        limits.ended(limits.begun(replace(KEY, player_ref=str(ref))), None, pricing=free)
    clock.now += DAY_SECONDS
    refusal(limits)
    assert limits._meters == {}


USAGE = Usage(input_tokens=100, output_tokens=10)


def spend(limits: Limits, dollars: float | None, **of: Any) -> NewCall:
    """Make a call that costs this much; None for a price that is not known."""
    cost = None if dollars is None else round(dollars * NANODOLLARS)
    return limits.ended(limits.begun(replace(KEY, **of)), USAGE, pricing=lambda used: cost)


@pytest.mark.parametrize("scope", ["player", "npc", "game"])
@pytest.mark.parametrize("limit", ["dollars_per_day", "dollars_per_month"])
def test_call_is_refused_when_the_money_of_its_player_npc_or_game_is_spent(
    clock: Hands, scope: str, limit: str
) -> None:
    limits = limits_of(clock, **{scope: {limit: 0.5}})
    spend(limits, 0.49)
    assert scope_refused(limits) == ""
    spend(limits, 0.02)  # a call that has begun may exceed the limit
    assert scope_refused(limits) == scope


def test_call_with_an_unknown_price_does_not_count_as_money(clock: Hands) -> None:
    limits = limits_of(clock, game={"dollars_per_day": 0.5})
    assert spend(limits, None).nanodollars is None
    assert spend(limits, 0.1).nanodollars == NANODOLLARS // 10
    assert limits.reading("game").dollars_per_day == 0.1
    assert scope_refused(limits) == ""


def test_offline_call_does_not_count_as_money(clock: Hands) -> None:
    limits = limits_of(clock, game={"dollars_per_day": 0.5})
    spend(limits, 9.0, is_offline=True)
    assert limits.reading("game").dollars_per_day == 0.0


def test_money_counts_again_after_a_restart(clock: Hands) -> None:
    dime = NANODOLLARS // 10
    npcs, players = {"5": Used(nanodollars=dime)}, {"7": Used(nanodollars=dime)}
    spent = ({"5": 3 * dime, "6": dime}, {"7": 2 * dime, "": dime})
    limits = limits_of(clock, npcs=npcs, players=players, spent=spent)
    reading = {one: limits.reading(*one) for one in (("npc", "5"), ("player", "7"), ("game", ""))}
    found = {one: (use.dollars_per_day, use.dollars_per_month) for one, use in reading.items()}
    assert found == {
        ("npc", "5"): (0.1, 0.3),
        ("player", "7"): (0.1, 0.2),
        ("game", ""): (0.1, 0.4),
    }
    assert [ref for ref, _ in limits.spenders("npc", most=5)] == ["5", "6"]
    assert [ref for ref, _ in limits.spenders("player", most=5)] == ["7"]


def test_money_of_a_worker_call_counts_once_for_the_game(clock: Hands) -> None:
    limits = limits_of(clock, game={"dollars_per_day": 0.5})
    limits.count_worker_call(
        NewCall(npc_ref="5", role="summariser", started_at=NOON, seconds=1.0, nanodollars=10**9)
    )
    read = limits.reading("game")
    assert (read.dollars_per_day, read.dollars_per_month) == (1.0, 1.0)
    assert scope_refused(limits) == "game"


def test_refusal_over_money_says_how_much_and_which_setting(clock: Hands) -> None:
    limits = limits_of(clock, game={"dollars_per_day": 0.5})
    assert limits.game_reached() is None
    spend(limits, 0.5)
    reached = limits.game_reached()
    assert reached is not None
    assert reached.told == (
        "the game has used its $0.50 per day; again in 43200 s"
        " (EVENNIA_AI_LIMITS, game, dollars_per_day)"
    )
    assert limits.refused("5") == 0  # looking is no refusal


STOP = Halt(npc_ref="", halted_by="Mira", halted_at=5.0, reason="spam")


@pytest.fixture(autouse=True)
def _fresh(stage: Any) -> None:
    """Use the stage, so that each test starts with an empty database and empty caches."""


def test_game_is_stopped_until_the_halt_is_removed() -> None:
    assert is_stopped() == ""
    add_halt(STOP, by=trusted("Ada"))
    assert is_stopped() == "stopped by Mira: spam"
    remove_halt("", by=trusted("Ada"))
    assert is_stopped() == ""


def test_pause_of_one_npc_does_not_affect_others(stage: Any) -> None:
    add_halt(Halt(npc_ref=stage.npc.ai.ref, halted_by="Mira", halted_at=5.0), by=trusted("Ada"))
    assert why_halted(stage.npc.ai.ref) == "paused by Mira"
    assert is_stopped() == ""


def test_stopped_game_halts_npcs_without_pausing_them(stage: Any) -> None:
    add_halt(STOP, by=trusted("Ada"))
    assert why_halted(stage.npc.ai.ref) == "stopped by Mira: spam"
