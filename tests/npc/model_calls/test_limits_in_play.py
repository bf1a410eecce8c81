"""Rows of calls, and limits, in a game where players talk to NPCs."""

from dataclasses import replace
from typing import Any

from evennia_ai.engine.actors import THE_GAME
from evennia_ai.engine.errors import ModelUnavailable
from evennia_ai.npc.runtime import runtime
from evennia_ai.services.llm.quotas import Quota, Quotas
from tests.store.builders import newest_calls


def rows(stage: Any) -> list[Any]:
    return list(newest_calls(stage.npc.ai.ref, limit=50))


def told(stage: Any) -> list[str]:
    return [line for line in stage.screen_of(stage.ben) if line.startswith("Oren")]


def test_turn_makes_a_row_with_the_player_whose_words_it_answers(stage: Any) -> None:
    stage.talks_with("Aye.")
    stage.says(stage.anna, "Oren, are you there?")
    stage.passes(5)
    (row,) = rows(stage)
    assert (row.role, row.player_ref, row.turn) == ("speaker", str(stage.anna.id), 1)
    assert (row.outcome, row.input_tokens > 0, row.output_tokens) == ("answered", True, 1)


def test_failed_turn_makes_a_row_with_the_reason(stage: Any) -> None:
    stage.talks_with(ModelUnavailable("small", "away"))
    stage.says(stage.anna, "Oren, are you there?")
    stage.passes(5)
    (row,) = rows(stage)
    assert row.outcome == "failed:unavailable"


def test_npc_refuses_in_character_once_when_a_player_reached_a_limit(stage: Any) -> None:
    quotas = replace(Quotas(), player=Quota(calls_per_minute=2))
    model = stage.talks_with(*["Aye."] * 9, limits=quotas)
    for _ in range(4):
        stage.says(stage.anna, "Oren, are you there?")
        stage.passes(5)
    assert told(stage) == [
        'Oren says, "Aye."',
        'Oren says, "Aye."',
        "Oren raises a hand: enough talk for now.",
    ]
    assert len(model.requests) == 2
    assert runtime().limits.refused(stage.npc.ai.ref) == 2
    assert ("fallback", "", "*raises a hand: enough talk for now.*") in stage.records()


def test_other_player_is_answered_when_one_reached_a_limit(stage: Any) -> None:
    quotas = replace(Quotas(), player=Quota(calls_per_minute=1))
    stage.talks_with(*["Aye."] * 9, limits=quotas)
    for speaker in (stage.anna, stage.ben):
        stage.says(speaker, "Oren, are you there?")
        stage.passes(5)
    assert told(stage) == ['Oren says, "Aye."', 'Oren says, "Aye."']


def test_player_is_answered_again_after_the_minute(stage: Any) -> None:
    quotas = replace(Quotas(), player=Quota(calls_per_minute=1))
    model = stage.talks_with(*["Aye."] * 9, limits=quotas)
    for _ in range(2):
        stage.says(stage.anna, "Oren, are you there?")
        stage.passes(61)
    assert len(model.requests) == 2


def test_npc_with_a_daily_limit_of_one_call_answers_once(stage: Any) -> None:
    from evennia_ai.npc.npc_settings import change_settings

    change_settings(stage.npc, limits={"calls_per_day": 1}, by=THE_GAME)
    model = stage.talks_with(*["Aye."] * 9)
    for speaker in (stage.anna, stage.ben):
        stage.says(speaker, "Oren, are you there?")
        stage.passes(5)
    assert len(model.requests) == 1


def test_daily_limit_of_a_player_outlasts_a_reload(stage: Any) -> None:
    quotas = replace(Quotas(), player=Quota(calls_per_day=1))
    stage.talks_with("Aye.", limits=quotas)
    stage.says(stage.anna, "Oren, are you there?")
    stage.passes(5)
    model = stage.talks_with("Aye.", limits=quotas)
    stage.says(stage.anna, "Oren, and now?")
    stage.passes(5)
    assert model.requests == []
