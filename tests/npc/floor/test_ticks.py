"""Ticks: events that make an NPC act on its own after its interval."""

from itertools import pairwise

import pytest

from evennia_ai.engine.actors import THE_GAME, trusted
from evennia_ai.npc import service
from evennia_ai.npc.floor.ticks import QUIET, STIRRED, Ticker, stored_ticks
from evennia_ai.npc.mind.handler import HABITS
from evennia_ai.npc.npc_settings import ATTRIBUTE, change_settings
from evennia_ai.services.llm.offline.responder import OfflineResponder
from evennia_ai.store.model_calls import Halt, add_halt


@pytest.fixture
def ticks(stage):
    """A ticker on the stage's clock, in which Oren ticks every minute."""
    change_settings(stage.npc, tick_seconds=60, by=THE_GAME)
    ticker = Ticker(stage.clock)
    ticker.take_in(stored_ticks())
    yield ticker
    ticker.close()


@pytest.fixture
def told(stage):
    events = []
    stage.npc.ai.hear = events.append
    return events


def test_npc_gets_a_tick_event_at_each_interval(stage, ticks, told):
    for _ in range(3):
        stage.passes(60)
    assert [(event.kind, event.text, event.wants_answer) for event in told] == [
        ("tick", QUIET, True)
    ] * 3


def test_npc_with_habits_does_the_next_one_at_each_tick_without_a_model(stage, ticks, told):
    stage.npc.attributes.add(HABITS, ["*ties a knot.*", "She is talking yet."])
    for _ in range(3):
        stage.passes(60)
    assert told == []
    assert stage.screen_of(stage.anna) == [
        "Oren ties a knot.",
        'Oren says, "She is talking yet."',
        "Oren ties a knot.",
    ]


def test_npc_without_a_model_and_without_habits_does_nothing_at_its_ticks(stage, ticks, told):
    stage.install(OfflineResponder("Hm."))
    stage.passes(60)
    assert (told, stage.screen_of(stage.anna)) == ([], [])


def test_npc_without_an_interval_never_ticks(stage, told):
    ticker = Ticker(stage.clock)
    ticker.stirs(stage.npc)
    stage.passes(3600)
    assert (ticker.count, told) == (0, [])


def test_tick_text_says_whether_something_reached_the_npc_since_the_last(stage, ticks, told):
    ticks.stirs(stage.npc)
    stage.passes(60)
    stage.passes(60)
    assert [event.text for event in told] == [STIRRED, QUIET]


@pytest.mark.parametrize(
    "hindered",
    [
        lambda npc: setattr(npc, "ai_enabled", False),
        lambda npc: setattr(npc, "why_unable", lambda: "it is asleep"),
        lambda npc: setattr(npc, "location", None),
        lambda npc: change_settings(npc, tick_seconds=None, by=THE_GAME),
        lambda npc: npc.delete(),
    ],
)
def test_npc_does_not_tick_when_it_cannot_act(stage, ticks, told, hindered):
    hindered(stage.npc)
    stage.passes(60)
    stage.passes(60)
    assert told == []


def test_npc_ticks_without_a_player_present_only_with_ticks_alone(stage, ticks, told):
    for player in (stage.anna, stage.ben):
        player.__dict__.pop("sessions")
    stage.passes(60)
    assert told == []
    alone = Ticker(stage.clock, ticks_alone=True)
    alone.take_in(stored_ticks())
    stage.passes(60)
    assert len(told) == 1


def test_busy_npc_does_not_tick(stage, ticks, told):
    stage.talks_with("Aye.", delay_seconds=500)
    stage.npc.ai.hear = stage.npc.ai.attention.hear
    stage.says(stage.anna, "Oren?")
    stage.npc.ai.hear = told.append
    stage.passes(60)
    assert stage.npc.ai.is_busy
    assert told == []


def test_paused_npc_does_not_tick(stage, ticks, told):
    add_halt(Halt(npc_ref=stage.npc.ai.ref, halted_by="Mara", halted_at=0.0), by=trusted("Ada"))
    stage.passes(60)
    assert told == []


def test_changed_interval_applies_when_something_reaches_the_npc(stage, ticks, told):
    change_settings(stage.npc, tick_seconds=10, by=THE_GAME)
    ticks.stirs(stage.npc)
    for _ in range(6):
        stage.passes(10)
    assert len(told) == 6


@pytest.mark.parametrize("stored", [0.01, -5, "soon", None, float("inf"), {}, True])
def test_invalid_stored_interval_makes_no_tick(stage, told, stored):
    stage.npc.attributes.add(ATTRIBUTE, {"values": {"tick_seconds": stored}})
    ticker = Ticker(stage.clock)
    ticker.take_in(stored_ticks())
    for _ in range(10):
        stage.passes(1)
    assert told == []


@pytest.mark.long
def test_ticks_of_many_npcs_are_spread_over_the_interval(stage):
    told = []
    for number in range(40):
        npc = stage.make(f"Oren {number}", "evennia_ai.typeclasses.AINPC")
        npc.ai.hear = lambda event, npc=npc: told.append((stage.clock.seconds(), npc.id))
        change_settings(npc, tick_seconds=60, by=THE_GAME)
    ticker = Ticker(stage.clock)
    ticker.take_in(stored_ticks())
    for _ in range(600):
        stage.clock.advance(0.1)
    times = [when for when, _ in told]
    assert sorted(npc_id for _, npc_id in told) == sorted({npc_id for _, npc_id in told})
    assert len(told) == 40
    assert all(later - sooner > 0.09 for sooner, later in pairwise(times))
    assert max(times) - min(times) > 30


def test_stored_ticks_makes_one_query(stage):
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    change_settings(stage.npc, tick_seconds=60, by=THE_GAME)
    change_settings(
        stage.make("Brida", "evennia_ai.typeclasses.AINPC"), talkativeness=0.1, by=THE_GAME
    )
    with CaptureQueriesContext(connection) as queries:
        assert stored_ticks() == [(stage.npc.id, 60.0)]
    assert len(queries) == 1


def test_ticker_makes_no_query_between_ticks(stage, ticks, told, no_queries):
    stage.passes(60)
    with no_queries():
        stage.passes(30)
        ticks.stirs(stage.npc)
        stage.passes(30)
    assert len(told) == 2


def test_ticker_uses_one_timer_for_all_npcs(stage):
    for number in range(5):
        change_settings(
            stage.make(f"Oren {number}", "evennia_ai.typeclasses.AINPC"),
            tick_seconds=60,
            by=THE_GAME,
        )
    before = len(stage.clock.getDelayedCalls())
    ticker = Ticker(stage.clock)
    ticker.take_in(stored_ticks())
    assert len(stage.clock.getDelayedCalls()) == before + 1


@pytest.mark.req("S2-10")
def test_tick_is_recorded_and_stays_in_the_next_prompt(stage, ticks):
    model = stage.talks_with("*counts the boats*", "Aye.")
    stage.passes(60)
    stage.passes(1)
    stage.says(stage.anna, "Oren, is the ferry in?")
    stage.passes(1)
    assert ("event", "", QUIET) in stage.records()
    shown = [[m.content for m in request.messages].count(QUIET) for request in model.requests]
    assert shown == [1, 1]


def test_npc_ticks_after_server_start_and_not_after_stop(stage, told):
    change_settings(stage.npc, tick_seconds=60, by=THE_GAME)
    service.at_server_start()
    stage.passes(60)
    service.at_server_stop()
    stage.passes(600)
    assert [event.text for event in told] == [QUIET]
