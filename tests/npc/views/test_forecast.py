"""Forecasts of an edit: what past turns would have cost, with the share that caches cover."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from django.test import override_settings

from evennia_ai.engine.prompt.messages import Message
from evennia_ai.npc.views.forecast import Forecast, Forecaster
from evennia_ai.npc.views.recomposing import Comparison, PastReader, compare_turn, see_all
from evennia_ai.npc.views.trials import read_trial
from evennia_ai.services.llm.profiles import Price
from evennia_ai.store import model_calls
from evennia_ai.store.history.past_turns import turns_in_order
from evennia_ai.store.model_calls import NewCall
from tests.npc.scripted_games import furnish, play

PRICES = {
    "far": {
        "base_url": "https://api.example/v1",
        "model": "small",
        "price": {"input": 1, "output": 2, "cached": 0.1, "written": 1.25},
    },
    "unpriced": {"base_url": "https://api.example/v1", "model": "small"},
}
WORD = "ferry "
RULES = Message(role="system", content=WORD * 400)
LONGER = Message(role="system", content=WORD * 500)
EARLIER = Message(role="user", content=WORD * 50)
LATER = Message(role="user", content="boats " * 50)


@pytest.fixture(autouse=True)
def _priced() -> Iterator[None]:
    with override_settings(EVENNIA_AI_PROFILES=PRICES):
        yield


def called(number: int, **values: Any) -> None:
    """Store the call of a turn: a thousand tokens, or what `values` say."""
    call = NewCall(
        npc_ref="5", role="speaker", profile="far", model="small", started_at=5.0, seconds=1.0
    )
    usual = {"turn": number, "input_tokens": 1000, "cached_tokens": 0, "output_tokens": 100}
    model_calls.add_call(replace(call, **{**usual, **values}))


def compared(number: int, before: list[Message], after: list[Message]) -> Comparison:
    outcome = "unchanged" if before == after else "changed"
    return Comparison(number=number, outcome=outcome, before=tuple(before), after=tuple(after))


def forecast(*turns: Comparison) -> Forecast:
    forecaster = Forecaster("5")
    for one in turns:
        forecaster.add(one)
    return forecaster.found


def test_edit_that_changes_nothing_costs_as_much_as_before() -> None:
    called(1, cached_tokens=800, written_tokens=100)
    found = forecast(compared(1, [RULES, EARLIER], [RULES, EARLIER]))
    assert found.nanodollars == found.nanodollars_before == 100_000 + 80_000 + 125_000 + 200_000
    assert str(found) == (
        "A turn costs as much as before ($0.00051 -> $0.00051, 1000 -> 1000 tokens over the last"
        " turn)."
    )


def test_longer_prompt_costs_more_in_proportion_to_the_tokens_of_the_provider() -> None:
    called(1)
    found = forecast(compared(1, [RULES], [LONGER]))
    assert found.tokens == pytest.approx(1250, rel=0.01)
    assert found.nanodollars - found.nanodollars_before == (found.tokens - 1000) * 1000


def two_turns(before: list[list[Message]], after: list[list[Message]]) -> Forecast:
    """Forecast two turns with many cached tokens in the second, and return what it adds."""
    called(1, input_tokens=900)
    called(2, cached_tokens=888)
    forecaster = Forecaster("5")
    forecaster.add(compared(1, before[0], after[0]))
    return forecaster.add(compared(2, before[1], after[1]))


def test_text_added_to_the_shared_start_is_cached_from_the_second_turn_on() -> None:
    before = [[RULES, EARLIER], [RULES, LATER]]
    after = [[LONGER, EARLIER], [LONGER, LATER]]
    found = two_turns(before, after)
    added = found.tokens - found.tokens_before
    assert added == pytest.approx(222, abs=5)
    change = found.nanodollars - found.nanodollars_before
    assert change == pytest.approx(added * 100, abs=2000)  # at the price of cached tokens


def test_text_moved_behind_what_changes_costs_more_although_no_prompt_is_longer() -> None:
    before = [[RULES, EARLIER], [RULES, LATER]]
    after = [[EARLIER, RULES], [LATER, RULES]]
    found = two_turns(before, after)
    assert found.tokens == pytest.approx(found.tokens_before, abs=1)
    change = found.nanodollars - found.nanodollars_before
    assert change == pytest.approx(888 * 900, rel=0.01)  # none of it is cached any longer


def test_turns_without_a_price_or_a_prompt_are_counted_and_named() -> None:
    called(1, profile="unpriced")
    called(2, profile="removed since")
    called(4)
    found = forecast(
        compared(1, [RULES], [LONGER]),
        compared(2, [RULES], [LONGER]),
        compared(3, [RULES], [LONGER]),  # a limit or the offline responder: no call
        Comparison(number=4, outcome="unknown"),
    )
    assert (found.turns, found.unpriced, found.unasked, found.unknown) == (0, 2, 1, 1)
    assert str(found) == (
        "No turn can be forecast; 1 asked no model; 1 cannot be compared; 2 asked a model without"
        " a known price."
    )


def test_calls_of_other_roles_cost_the_same_with_the_edit() -> None:
    called(1, role="decider")
    found = forecast(compared(1, [RULES], [LONGER]))
    assert found.turns == 1
    assert found.nanodollars == found.nanodollars_before > 0


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (40_000_000, 60_000_000, "A turn costs $0.020 more ($0.040 -> $0.060, "),
        (60_000_000, 40_000_000, "A turn costs $0.020 less ($0.060 -> $0.040, "),
        (0, 0, "A turn costs nothing: "),
    ],
)
def test_forecast_says_how_much_a_turn_costs_over_how_many_turns(
    before: int, after: int, words: str
) -> None:
    found = Forecast(
        turns=200,
        nanodollars_before=200 * before,
        nanodollars=200 * after,
        tokens_before=600_000,
        tokens=620_000,
    )
    assert str(found).startswith(words)
    assert "3000 -> 3100 tokens over the last 200 turns" in str(found)


def test_trial_on_turns_of_a_real_game_is_forecast(stage: Any) -> None:
    furnish(stage)
    priced = {"default": {"price": Price(input=1000, output=1000)}}
    stage.talks_with(lambda _: "Aye, mind the planks.", given_profiles=priced)
    play(stage, rounds=1)
    ref, reader, forecaster = stage.npc.ai.ref, PastReader(), Forecaster(stage.npc.ai.ref)
    edit = read_trial(["note:note.off=yes"])
    with override_settings(EVENNIA_AI_PROFILES={"default": {"price": {"input": 1, "output": 1}}}):
        for turn in turns_in_order(ref):
            forecaster.add(compare_turn(turn, edit, reader, see_all))
    found = forecaster.found
    assert found.turns > 3
    assert found.unknown == 0
    assert found.nanodollars < found.nanodollars_before
