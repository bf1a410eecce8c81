"""News: builders who asked for it are told what goes wrong, and never flooded."""

from types import SimpleNamespace

import pytest

from evennia_ai.errors import ModelUnavailable
from evennia_ai.game.mind.news import MOST, SECONDS, News
from evennia_ai.work.counting import ModelStopped


@pytest.fixture
def told():
    return []


@pytest.fixture
def clock():
    return SimpleNamespace(now=1000.0)


@pytest.fixture
def watcher(told, clock):
    return News(now=lambda: clock.now, tell=told.append)


def a_call(endpoint="fast"):
    return SimpleNamespace(endpoint=endpoint, name="speaker", key=SimpleNamespace(npc_ref="999999"))


FAILED = SimpleNamespace(outcome="failed:timeout")


def fails(watcher, endpoint="fast", error=None):
    watcher.failed(a_call(endpoint), error or ModelUnavailable("fast", "away"), FAILED)


def a_turn(reason):
    manifest = SimpleNamespace(break_reason=reason, broken_by="component:mood")
    return SimpleNamespace(manifest=manifest, npc_ref="999999", number=7)


def test_a_call_that_failed_is_one_line_with_its_kind_and_where_more_is_told(watcher, told):
    fails(watcher)
    assert told == ["[ai] a call of fast for #999999 (speaker) failed: timeout; ai/log #999999"]


def test_a_model_that_goes_on_failing_is_told_once_a_minute_with_how_often(watcher, told, clock):
    for _ in range(9):
        fails(watcher)
    assert len(told) == 1
    clock.now += SECONDS
    fails(watcher)
    assert told[1].endswith("(8 more were not told)")


def test_many_models_that_fail_are_a_few_lines_in_all(watcher, told):
    for number in range(20):
        fails(watcher, f"model-{number}")
    assert len(told) == MOST


def test_what_a_person_stopped_is_no_news(watcher, told):
    fails(watcher, error=ModelStopped("fast", "paused"))
    assert told == []


def test_a_limit_is_told(watcher, told):
    watcher.refused("999999", SimpleNamespace(limit="calls_per_day", told="10 calls per day"))
    assert told == ["[ai] #999999 asks no model: 10 calls per day; ai/limits"]


@pytest.mark.parametrize(("reason", "lines"), [("revision", 1), ("moving", 0), (None, 0)])
def test_a_cache_that_breaks_otherwise_than_always_is_told(watcher, told, reason, lines):
    watcher.prompted(a_turn(reason))
    assert len(told) == lines
