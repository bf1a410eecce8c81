"""Calls in a running game are stored with their cost, and spent money stops the NPCs softly."""

from dataclasses import replace
from typing import Any

from evennia_ai.npc.runtime import runtime
from evennia_ai.services.llm.profiles import Price
from evennia_ai.services.llm.quotas import Quota, Quotas
from evennia_ai.store import model_calls
from tests.store.builders import newest_calls

# The scripted model counts words as tokens, so a token costs a tenth of a dollar.
PRICED = {"default": {"price": Price(input=100_000, output=100_000)}}
UNLIMITED = Quotas(player=Quota(), npc=Quota(), game=Quota())


def asks(stage: Any, times: int) -> None:
    for _ in range(times):
        stage.says(stage.anna, "Oren, are you there?")
        stage.passes(61.0)


def test_call_is_stored_with_its_cost_and_counted_for_player_npc_and_game(stage: Any) -> None:
    stage.talks_with("Aye, I am here.", given_profiles=PRICED)
    asks(stage, 1)
    (row,) = newest_calls(stage.npc.ai.ref, limit=5)
    assert row.nanodollars == (row.input_tokens + row.output_tokens) * 10**8
    limits = runtime().limits
    for scope, ref in (("player", str(stage.anna.id)), ("npc", row.npc_ref), ("game", "")):
        read = limits.reading(scope, ref)
        assert read.dollars_per_day == read.dollars_per_month == row.tokens / 10


def test_model_without_a_price_on_this_machine_costs_nothing(stage: Any) -> None:
    stage.talks_with("Aye.")
    asks(stage, 1)
    assert newest_calls(stage.npc.ai.ref, limit=5)[0].nanodollars == 0


def test_spent_money_of_the_game_stops_new_turns_and_the_npc_says_its_limit_line(
    stage: Any,
) -> None:
    limits = replace(UNLIMITED, game=Quota(dollars_per_day=0.1))
    model = stage.talks_with(
        *["Aye."] * 9, given_profiles=PRICED, limits=limits, limit_line="I am tired."
    )
    asks(stage, 3)
    assert len(model.requests) == 1
    said = [line for line in stage.screen_of(stage.anna) if line.startswith("Oren says")]
    assert said[0] == 'Oren says, "Aye."'
    assert said[1:] == ['Oren says, "I am tired."'] * len(said[1:])
    assert len(said) > 1
    refused = model_calls.refused_times(0.0, limit=9)
    assert [(one.limit, one.times) for one in refused] == [("game.dollars_per_day", 2)]


def test_spent_money_of_the_day_counts_after_a_reload(stage: Any) -> None:
    limits = replace(UNLIMITED, game=Quota(dollars_per_day=0.1))
    stage.talks_with("Aye.", given_profiles=PRICED, limits=limits)
    asks(stage, 1)
    model = stage.talks_with("Aye.", given_profiles=PRICED, limits=limits)
    asks(stage, 1)
    assert model.requests == []
