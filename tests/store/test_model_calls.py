"""Test stored model calls: with their turn or job, summed by NPC and player, kept for some days."""

from typing import Any

from django.db import transaction

from evennia_ai.engine.prompt.components import Scope, of_npc
from evennia_ai.models import ModelCall, ModelCallDay
from evennia_ai.store import model_calls
from evennia_ai.store.model_calls import DAY_SECONDS, NewCall, Used
from tests.store.builders import newest_calls

NOON = 20_000 * DAY_SECONDS + 43_200.0


def a_call(**values: Any) -> NewCall:
    usual = {
        "npc_ref": "5",
        "player_ref": "7",
        "role": "speaker",
        "started_at": NOON,
        "seconds": 1.5,
        "input_tokens": 100,
        "cached_tokens": 60,
        "output_tokens": 20,
        "nanodollars": 0,
    }
    return NewCall(**{**usual, **values})


def written(*calls: NewCall) -> None:
    for call in calls:
        model_calls.add_call(call)


def test_call_is_read_as_it_was_written() -> None:
    call = a_call(
        profile="cheap",
        model="small",
        turn=3,
        first_piece_seconds=0.4,
        written_tokens=10,
        is_estimated=True,
        outcome="failed:timeout",
    )
    written(call)
    assert newest_calls("5", limit=5) == (call,)


def test_call_is_rolled_back_with_its_transaction() -> None:
    with transaction.atomic():
        written(a_call())
        transaction.set_rollback(True)
    assert model_calls.use_since(0) == Used()


def test_calls_are_summed_by_npc_and_player() -> None:
    written(
        a_call(), a_call(npc_ref="6", outcome="cancelled"), a_call(player_ref="", started_at=5.0)
    )
    one = Used(calls=1, input_tokens=100, cached_tokens=60, output_tokens=20)
    assert model_calls.use_since(NOON, Scope(kind="npc", ref="5")) == one
    assert model_calls.use_since(NOON, Scope(kind="player", ref="7")) == Used(
        calls=2, failures=1, input_tokens=200, cached_tokens=120, output_tokens=40
    )
    assert model_calls.use_since(0).calls == 3


def test_all_npcs_are_summed_with_one_query() -> None:
    written(a_call(), a_call(), a_call(npc_ref="6"))
    found = model_calls.use_by_each("npc_ref", NOON)
    assert {ref: used.calls for ref, used in found.items()} == {"5": 2, "6": 1}


def test_all_players_are_summed_with_one_query() -> None:
    written(a_call(), a_call(player_ref="8"), a_call(player_ref=""))
    assert set(model_calls.use_by_each("player_ref", NOON)) == {"7", "8", ""}


def test_tokens_that_the_server_did_not_report_count_as_zero() -> None:
    written(a_call(cached_tokens=None))
    assert model_calls.use_since(0).cached_tokens == 0


def test_old_days_are_summed_up() -> None:
    old = NOON - 31 * DAY_SECONDS
    written(a_call(started_at=old), a_call(started_at=old + 1, outcome="cancelled"), a_call())
    assert model_calls.sum_up_old(NOON, keep_days=30) == 2
    (day,) = ModelCallDay.objects.values()
    assert (day["day"], day["calls"], day["failures"]) == (20_000 - 31, 2, 1)
    assert (day["input_tokens"], day["cached_tokens"], day["output_tokens"]) == (200, 120, 40)
    assert ModelCall.objects.count() == 1


def test_oldest_kept_day_is_not_summed_up() -> None:
    written(a_call(started_at=(20_000 - 30) * DAY_SECONDS))
    assert model_calls.sum_up_old(NOON, keep_days=30) == 0


def test_old_calls_are_summed_up_in_slices() -> None:
    old = NOON - 31 * DAY_SECONDS
    written(*(a_call(started_at=old + at) for at in range(5)))
    gone = [model_calls.sum_up_old(NOON, keep_days=30, most_calls=2) for _ in range(4)]
    assert gone == [2, 2, 1, 0]
    assert [day.calls for day in ModelCallDay.objects.all()] == [5]


def test_slice_has_calls_of_one_day() -> None:
    written(a_call(started_at=5.0), a_call(started_at=DAY_SECONDS + 5.0))
    assert [model_calls.sum_up_old(NOON, keep_days=30) for _ in range(3)] == [1, 1, 0]
    assert [day.day for day in ModelCallDay.objects.order_by("day")] == [0, 1]


def test_late_call_joins_the_sum_of_its_day() -> None:
    old = NOON - 31 * DAY_SECONDS
    for _ in range(2):
        written(a_call(started_at=old))
        model_calls.sum_up_old(NOON, keep_days=30)
    assert [day.calls for day in ModelCallDay.objects.all()] == [2]


def test_total_use_of_an_npc_includes_summed_days() -> None:
    written(a_call(started_at=NOON - 31 * DAY_SECONDS), a_call(), a_call(npc_ref="6"))
    model_calls.sum_up_old(NOON, keep_days=30)
    assert model_calls.total_use("5") == Used(
        calls=2, input_tokens=200, cached_tokens=120, output_tokens=40
    )


def test_forgetting_a_player_removes_them_from_calls() -> None:
    written(a_call(), a_call(npc_ref="6"), a_call(player_ref="8"))
    assert model_calls.count_of_player("7") == 2
    assert model_calls.forget_player("7", npc_ref="6") == 1
    assert model_calls.forget_player("7") == 1
    assert set(model_calls.use_by_each("player_ref", 0)) == {"", "8"}


def test_text_too_long_for_its_column_is_cut() -> None:
    written(a_call(outcome="failed:" + "x" * 100, model="m" * 300))
    row = ModelCall.objects.get()
    assert (len(row.outcome), len(row.model)) == (64, 200)


def test_token_counts_of_a_call_are_stored_as_the_nearest_number_that_fits_the_column() -> None:
    written(a_call(input_tokens=-5, output_tokens=10**12, cached_tokens=-1))
    row = ModelCall.objects.get()
    assert (row.input_tokens, row.output_tokens, row.cached_tokens) == (0, 2**31 - 1, 0)


def test_cost_is_summed_and_calls_of_unknown_price_are_counted() -> None:
    written(
        a_call(nanodollars=3_000),
        a_call(nanodollars=None),
        a_call(nanodollars=None, outcome="unsent:player.calls_per_minute"),  # no model was asked
        a_call(npc_ref="6", nanodollars=500),
    )
    used = model_calls.use_by_each("npc_ref", 0)
    assert {ref: (one.nanodollars, one.unpriced_calls) for ref, one in used.items()} == {
        "5": (3_000, 1),
        "6": (500, 0),
    }


def test_cost_of_a_month_includes_days_that_were_summed_up() -> None:
    first = NOON - 10 * DAY_SECONDS
    written(
        a_call(started_at=first - DAY_SECONDS, nanodollars=1),
        a_call(started_at=first, nanodollars=20, player_ref="8"),
        a_call(started_at=first, nanodollars=None),
        a_call(started_at=NOON, nanodollars=300),
        a_call(started_at=NOON, nanodollars=4_000, npc_ref="6", player_ref=""),
    )
    while model_calls.sum_up_old(NOON, keep_days=5):
        pass
    month = model_calls.use_in_days(first)
    assert (month.nanodollars, month.unpriced_calls, month.calls) == (4_320, 1, 4)
    assert model_calls.use_in_days(first, of_npc("5")).nanodollars == 320
    assert model_calls.total_use("5").nanodollars == 321
    npcs, players = model_calls.spent_by_each(first)
    assert npcs == {"5": 320, "6": 4_000}
    assert players == {"7": 300, "": 4_000}  # a sum does not say whose words were answered


def test_cost_of_a_call_is_stored_as_the_highest_number_when_it_is_too_large() -> None:
    written(*[a_call(nanodollars=10**30) for _ in range(3)])
    assert model_calls.use_since(0).nanodollars == 3 * 2**53
