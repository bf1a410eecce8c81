"""The ledger and the limits in a game where NPCs are spoken to."""

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


def test_a_turn_is_a_row_with_whose_words_it_answers(stage: Any) -> None:
    stage.talks_with("Aye.")
    stage.says(stage.anna, "Oren, are you there?")
    stage.passes(5)
    (row,) = rows(stage)
    assert (row.role, row.player_ref, row.turn) == ("speaker", str(stage.anna.id), 1)
    assert (row.outcome, row.input_tokens > 0, row.output_tokens) == ("answered", True, 1)


def test_a_turn_without_a_reply_is_a_row_that_says_why(stage: Any) -> None:
    stage.talks_with(ModelUnavailable("small", "away"))
    stage.says(stage.anna, "Oren, are you there?")
    stage.passes(5)
    (row,) = rows(stage)
    assert row.outcome == "failed:unavailable"


def test_a_player_at_a_limit_is_told_in_character_and_no_model_is_asked(stage: Any) -> None:
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


def test_another_player_is_answered_meanwhile(stage: Any) -> None:
    quotas = replace(Quotas(), player=Quota(calls_per_minute=1))
    stage.talks_with(*["Aye."] * 9, limits=quotas)
    for speaker in (stage.anna, stage.ben):
        stage.says(speaker, "Oren, are you there?")
        stage.passes(5)
    assert told(stage) == ['Oren says, "Aye."', 'Oren says, "Aye."']


def test_a_player_is_answered_again_when_the_minute_is_over(stage: Any) -> None:
    quotas = replace(Quotas(), player=Quota(calls_per_minute=1))
    model = stage.talks_with(*["Aye."] * 9, limits=quotas)
    for _ in range(2):
        stage.says(stage.anna, "Oren, are you there?")
        stage.passes(61)
    assert len(model.requests) == 2


def test_an_npc_of_its_own_limits_is_silent_sooner(stage: Any) -> None:
    from evennia_ai.npc.npc_settings import change_settings

    change_settings(stage.npc, limits={"calls_per_day": 1}, by=THE_GAME)
    model = stage.talks_with(*["Aye."] * 9)
    for speaker in (stage.anna, stage.ben):
        stage.says(speaker, "Oren, are you there?")
        stage.passes(5)
    assert len(model.requests) == 1


def test_a_reload_gives_no_new_day(stage: Any) -> None:
    quotas = replace(Quotas(), player=Quota(calls_per_day=1))
    stage.talks_with("Aye.", limits=quotas)
    stage.says(stage.anna, "Oren, are you there?")
    stage.passes(5)
    model = stage.talks_with("Aye.", limits=quotas)
    stage.says(stage.anna, "Oren, and now?")
    stage.passes(5)
    assert model.requests == []
