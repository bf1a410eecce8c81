"""News: builders who asked for it read about problems, and are never flooded."""

from types import SimpleNamespace

import pytest

from evennia_ai.engine.errors import ModelUnavailable
from evennia_ai.npc.jobs.counting import ModelStopped
from evennia_ai.npc.mind.news import MOST, SECONDS, News
from evennia_ai.npc.model_calls.limits import Refusal
from evennia_ai.services.llm.quotas import DAY_SECONDS


@pytest.fixture
def told():
    return []


@pytest.fixture
def clock():
    return SimpleNamespace(now=1000.0)


@pytest.fixture
def watcher(told, clock):
    def tell(line, **whom):
        told.append(line)
        return 1

    return News(now=lambda: clock.now, tell=tell)


def a_call(endpoint="fast"):
    key = SimpleNamespace(npc_ref="999999", role="speaker", profile="default")
    return SimpleNamespace(endpoint=endpoint, name="speaker", key=key)


FAILED = SimpleNamespace(outcome="failed:timeout")


def fails(watcher, endpoint="fast", error=None):
    watcher.failed(a_call(endpoint), error or ModelUnavailable("fast", "away"), FAILED)


def a_turn(reason):
    manifest = SimpleNamespace(break_reason=reason, broken_by="component:mood")
    return SimpleNamespace(manifest=manifest, npc_ref="999999", number=7)


def test_failed_call_is_one_line_with_the_reason_and_the_command_for_more(watcher, told):
    fails(watcher)
    why = "model 'fast' is not available: away"
    assert told == [f"[ai] a call for #999999 (speaker) failed: {why}; ai/log #999999"]


def test_repeated_failure_is_reported_once_a_minute_with_a_count(watcher, told, clock):
    for _ in range(9):
        fails(watcher)
    assert len(told) == 1
    clock.now += SECONDS
    fails(watcher)
    assert told[1].endswith("(8 more lines were left out)")


def test_failures_of_many_models_are_a_few_lines_in_total(watcher, told):
    for number in range(20):
        fails(watcher, f"model-{number}")
    assert len(told) == MOST


def test_stopped_call_is_not_reported(watcher, told):
    fails(watcher, error=ModelStopped("fast", "paused"))
    assert told == []


def test_reached_limit_is_reported(watcher, told):
    reached = SimpleNamespace(scope="npc", limit="calls_per_day", told="10 calls per day")
    watcher.refused("999999", reached)
    assert told == ["[ai] #999999 asks no model: 10 calls per day; ai/limits"]


def spent(at, *, scope="game", limit="dollars_per_day"):
    return Refusal(
        scope=scope,
        ref="",
        limit=limit,
        told="the game has used its $2.00 per day",
        retry_in_seconds=DAY_SECONDS - at % DAY_SECONDS,
        at=at,
    )


SPENT = "no NPC asks a model: the game has used its $2.00 per day; ai shows what to do"


def test_spent_money_of_the_game_is_reported_once_a_day(watcher, told, logged):
    for at in (1000.0, 1000.5, 80_000.0, DAY_SECONDS + 7.0):
        watcher.refused("999999", spent(at))
    assert told == [f"[ai] {SPENT}"] * 2
    assert [line for line in logged if SPENT in line] == [f"evennia_ai: {SPENT}"] * 2


def test_spent_money_is_reported_again_until_a_builder_is_there(logged):
    told = []

    def tell(line, *, everybody):
        told.append(everybody)
        return len(told) - 1  # nobody is there at first

    watcher = News(now=lambda: 1000.0, tell=tell)
    for at in (1.0, 2.0, 3.0):
        watcher.refused("999999", spent(at))
    assert told == [True, True]
    assert len([line for line in logged if SPENT in line]) == 1


@pytest.mark.parametrize(("reason", "lines"), [("revision", 1), ("moving", 0), (None, 0)])
def test_unusual_cache_break_is_reported(watcher, told, reason, lines):
    watcher.prompted(a_turn(reason))
    assert len(told) == lines


def a_row(read, whole=None):
    return SimpleNamespace(input_tokens=read, whole_tokens=whole, outcome="answered")


def test_shortened_prompt_is_reported_to_builders_once_until_the_window_is_larger(watcher, told):
    for read in (256, 256, 250):
        watcher.answered(a_call(), None, a_row(read, 5700))
    assert len(told) == 1
    assert "read 256 of about 5700 tokens" in told[0]
    watcher.answered(a_call("another"), None, a_row(256, 5700))
    assert len(told) == 2
    watcher.answered(a_call(), None, a_row(200))  # a short prompt says nothing about the window
    watcher.answered(a_call(), None, a_row(256, 5700))
    assert len(told) == 2
    watcher.answered(a_call(), None, a_row(5000))
    watcher.answered(a_call(), None, a_row(4096, 5700))
    assert len(told) == 3


def test_failures_in_a_row_are_counted_by_reason_until_an_answer(clock):
    told = []
    watcher = News(now=lambda: clock.now, tell=lambda line, **whom: told.append((line, whom)))

    def fails_with(reason):
        del told[:]
        watcher.turn_failed("999999", "7", ModelUnavailable("fast", reason))
        return told

    line, whom = fails_with("again in 30 seconds")[0]
    assert line.startswith("[ai] #999999 has no answer: model 'fast' is not available: again in")
    assert whom == {"to": "7", "knows": False}
    assert "(2 in a row)" in fails_with("again in 29.5 seconds")[0][0]
    to_speaker, to_others = fails_with("again in 2 seconds")
    assert "(3 in a row)" in to_speaker[0]
    assert to_others == (to_speaker[0], {"near": "999999", "but": "7"})
    assert len(fails_with("again in 1 seconds")) == 1
    assert "in a row" not in fails_with("no such model")[0][0]
    assert "(2 in a row)" in fails_with("no such model")[0][0]
    watcher.turn_ended(SimpleNamespace(npc_ref="999999"), "answered", 1.0)
    assert "in a row" not in fails_with("no such model")[0][0]


def test_failure_without_a_speaker_is_reported_when_it_repeats(clock):
    told = []
    watcher = News(now=lambda: clock.now, tell=lambda line, **whom: told.append(whom))
    for _ in range(10):
        watcher.turn_failed("999999", "", ValueError("a hook"))
    assert told == [{"near": "999999", "but": ""}] * 2
