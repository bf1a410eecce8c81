"""Calls that no model got count against no limit, and refused utterances are recorded."""

from dataclasses import replace
from typing import Any

import pytest

from evennia_ai.engine.errors import ModelUnavailable
from evennia_ai.npc.model_calls.limits import CallKey, Limits
from evennia_ai.npc.runtime import runtime
from evennia_ai.services.endpoints import Access
from evennia_ai.services.llm.clients.scripted import ScriptedModel
from evennia_ai.services.llm.offline.responder import OfflineResponder
from evennia_ai.services.llm.quotas import Quota, Quotas
from evennia_ai.services.llm.resilience import CircuitBreaker, Guarded
from evennia_ai.store import model_calls
from evennia_ai.store.core.snapshots import forget_everything
from evennia_ai.store.model_calls import Used
from tests.store.builders import newest_calls

TIGHT = replace(Quotas(), player=Quota(calls_per_minute=2))


def asks(stage: Any, times: int, *, seconds: float = 5.0) -> None:
    for _ in range(times):
        stage.says(stage.anna, "Oren, are you there?")
        stage.passes(seconds)


def used(stage: Any, scope: Any = "player") -> tuple[int, int]:
    """Return the calls of the last minute and of the day."""
    ref = {"player": str(stage.anna.id), "npc": stage.npc.ai.ref, "game": ""}[scope]
    reading = runtime().limits.reading(scope, ref)
    return reading.calls_per_minute, reading.calls_per_day


def outcomes(stage: Any) -> list[str]:
    rows = newest_calls(stage.npc.ai.ref, limit=50)
    return [row.outcome for row in reversed(rows)]


@pytest.fixture
def resting(stage: Any, logged: list[str]) -> Any:
    """A stage whose model failed once, so that its breaker is open."""
    away = ScriptedModel([ModelUnavailable("small", "away"), *["Aye."] * 9])
    breaker = CircuitBreaker(seconds=stage.clock.seconds, failures=1, rest_seconds=100)
    stage.install(Guarded(away, breaker=breaker, clock=stage.clock), limits=TIGHT)
    asks(stage, 1)
    return stage


class TestABreaker:
    @pytest.mark.parametrize("scope", ["player", "npc", "game"])
    def test_call_refused_by_the_breaker_counts_against_no_limit(
        self, resting: Any, scope: str
    ) -> None:
        assert used(resting, scope) == (1, 1)
        asks(resting, 5)
        assert used(resting, scope) == (1, 1)

    def test_calls_refused_by_the_breaker_cause_no_refusal_by_limits(self, resting: Any) -> None:
        asks(resting, 5)
        assert runtime().limits.refused(resting.npc.ai.ref) == 0

    def test_call_refused_by_the_breaker_is_recorded_as_unsent(self, resting: Any) -> None:
        asks(resting, 1)
        assert outcomes(resting) == ["failed:unavailable", "unsent:unavailable"]

    def test_stored_use_does_not_count_calls_refused_by_the_breaker(self, resting: Any) -> None:
        asks(resting, 5)
        assert model_calls.use_by_each("npc_ref", 0.0)[resting.npc.ai.ref].calls == 1
        assert model_calls.use_by_each("player_ref", 0.0)[str(resting.anna.id)].calls == 1

    def test_call_that_failed_at_the_server_counts(self, stage: Any, logged: Any) -> None:
        stage.talks_with(*[ModelUnavailable("small", "away")] * 2, limits=TIGHT)
        asks(stage, 2)
        assert used(stage) == (2, 2)


class TestNoModel:
    @pytest.fixture
    def offline(self, stage: Any) -> Any:
        stage.opens(Access(model=OfflineResponder("Hm.")), limits=TIGHT)
        asks(stage, 6)
        return stage

    def test_offline_responder_answers_without_limits(self, offline: Any) -> None:
        said = [line for line in offline.screen_of(offline.ben) if line.startswith("Oren")]
        assert len(said) == 6

    def test_calls_of_the_offline_responder_count_against_no_limit(self, offline: Any) -> None:
        assert used(offline) == (0, 0)
        assert model_calls.use_since(0.0) == Used()

    def test_player_at_a_limit_is_still_answered_offline(self, offline: Any) -> None:
        key = CallKey(npc_ref=offline.npc.ai.ref, player_ref=str(offline.anna.id))
        for _ in range(2):
            runtime().limits.begun(key)
        before = len(offline.screen_of(offline.ben))
        asks(offline, 1)
        assert offline.screen_of(offline.ben)[before:][-1].startswith("Oren says")

    def test_calls_of_the_offline_responder_have_the_outcome_unsent_offline(
        self, offline: Any
    ) -> None:
        assert set(outcomes(offline)) == {"unsent:offline"}


class TestALimit:
    @pytest.fixture
    def refused(self, stage: Any) -> Any:
        stage.talks_with(*["Aye."] * 9, limits=TIGHT)
        asks(stage, 6)
        return stage

    def test_each_refused_utterance_is_recorded_with_its_limit(self, refused: Any) -> None:
        ref = refused.npc.ai.ref
        found = model_calls.refused_sayings(ref, since=0.0, until=float("inf"), limit=50)
        assert len(found) == 4
        assert {one.limit for one in found} == {"player.calls_per_minute"}
        assert {(one.event, one.speaker) for one in found} == {("say", "Anna")}
        assert len({one.record for one in found}) == 4

    def test_refusals_are_listed_with_player_count_and_time(self, refused: Any) -> None:
        (one,) = model_calls.refused_times(0.0, limit=9)
        assert (one.player_ref, one.npc_ref) == (str(refused.anna.id), refused.npc.ai.ref)
        assert one.times == 4
        assert one.last_at > 0

    def test_refused_utterances_count_against_no_limit(self, refused: Any) -> None:
        assert used(refused) == (2, 2)
        assert model_calls.use_since(0.0).calls == 2

    def test_refusals_are_kept_after_a_restart(self, refused: Any) -> None:
        forget_everything()
        (one,) = model_calls.refused_times(0.0, limit=9)
        assert one.times == 4

    def test_refusals_lose_the_player_when_the_player_is_forgotten(self, refused: Any) -> None:
        model_calls.forget_player(str(refused.anna.id))
        (one,) = model_calls.refused_times(0.0, limit=9)
        assert one.player_ref == ""


def test_unsent_call_no_longer_counts_for_the_minute() -> None:
    from tests.npc.model_calls.test_limits import KEY, NOON, Hands, limits_of

    clock = Hands()
    limits: Limits = limits_of(clock, player={"calls_per_minute": 1})
    call = limits.begun(KEY)
    clock.now = NOON + 20
    limits.ended(call, None, "unsent:timeout", pricing=lambda used: 0)
    assert limits.reading("player", "7").calls_per_minute == 0
    clock.now = NOON + 61
    limits.begun(KEY)
    assert limits.reading("player", "7").calls_per_minute == 1
    assert limits.reading("player", "7").calls_per_day == 1
