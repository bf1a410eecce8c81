"""Background work is counted, logged and stopped like turns when it asks models."""

import json
from typing import Any

from evennia_ai.engine.actors import trusted
from evennia_ai.npc.mind import emergency
from evennia_ai.npc.runtime import runtime
from evennia_ai.npc.watch.request_log import RequestLog
from tests.npc.upkeep.compacting_games import (
    FULL,
    GOOD,
    SMALL,
    Talker,
    is_for_summary,
    rules,
    talks,
)
from tests.store.builders import newest_calls


def summaries(stage: Any) -> list[Any]:
    calls = newest_calls(stage.npc.ai.ref, limit=100)
    return [call for call in calls if call.role == "summariser"]


def test_summary_makes_a_row_with_its_role_and_without_a_player(stage: Any) -> None:
    stage.talks_with(Talker(GOOD), compaction=rules(), **SMALL)
    talks(stage, FULL)
    (call,) = summaries(stage)
    assert (call.player_ref, call.turn, call.outcome) == ("", None, "answered")
    assert call.tokens > 0


def test_summary_is_in_the_request_log_with_its_name(stage: Any, logged: list[str]) -> None:
    stage.talks_with(Talker(GOOD), compaction=rules(), **SMALL)
    runtime().watch.add(RequestLog())
    talks(stage, FULL)
    names = [
        json.loads(line.removeprefix("LLM_REQUEST "))["name"]
        for line in logged
        if line.startswith("LLM_REQUEST ")
    ]
    assert names.count("summariser") == 1


def test_no_summary_is_requested_when_the_npc_is_paused(stage: Any) -> None:
    model = stage.talks_with(Talker(GOOD), compaction=rules(enabled=False), **SMALL)
    talks(stage, FULL)
    emergency.pause(stage.npc, by=trusted("Mira"))
    runtime().compactor.compact_room(stage.npc.ai, by=trusted("Mira"))
    stage.passes(10)
    assert not any(is_for_summary(request) for request in model.requests)


def test_no_summary_is_requested_in_idle_time_when_the_game_is_stopped(stage: Any) -> None:
    stage.talks_with(Talker(GOOD), compaction=rules(idle_percent=61, turn_percent=100), **SMALL)
    talks(stage, FULL)
    emergency.stop_all(by=trusted("Mira"))
    stage.passes(30)
    assert summaries(stage) == []
