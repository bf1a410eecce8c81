"""A turn reads the view and the settings once, at its start."""

from collections import Counter
from typing import Any

import pytest

from evennia_ai.engine.actors import THE_GAME
from evennia_ai.engine.prompt.messages import ToolCall
from evennia_ai.npc.mind import handler
from evennia_ai.npc.npc_settings import change_settings
from evennia_ai.npc.turn.turn import Turn
from evennia_ai.services.llm.chat import ChatReply
from tests.npc.upkeep.compacting_games import FULL, GOOD, SMALL, Talker, rules, segment_of, talks


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count how often a view is made and the settings are read while a turn runs."""
    found: Counter[str] = Counter()
    running: list[Turn] = []

    def counted(name: str, read: Any) -> Any:
        def counting(*args: Any, **options: Any) -> Any:
            found[name] += len(running)
            return read(*args, **options)

        return counting

    def run(turn: Turn) -> Any:
        running.append(turn)
        return taken(turn).addBoth(over)

    def over(ended: Any) -> Any:
        running.pop()
        return ended

    taken = Turn.run
    monkeypatch.setattr(Turn, "run", run)
    monkeypatch.setattr(handler, "sources_of", counted("view", handler.sources_of))
    reading = handler.AIHandler._read_settings
    monkeypatch.setattr(handler.AIHandler, "_read_settings", counted("settings", reading))
    return found


def test_turn_reads_view_and_settings_once(stage: Any, read: Counter[str]) -> None:
    stage.talks_with("Aye.")
    stage.says(stage.anna, "Oren?")
    assert read == {"view": 1, "settings": 1}


def test_turn_with_tools_reads_view_and_settings_once(stage: Any, read: Counter[str]) -> None:
    change_settings(stage.npc, tools=("look", "say", "remember"), by=THE_GAME)
    calls = (
        ToolCall(id="1", name="look", arguments="{}"),
        ToolCall(id="2", name="say", arguments='{"text": "Hm."}'),
        ToolCall(id="3", name="remember", arguments='{"text": "The tide is out."}'),
    )
    model = stage.talks_with(ChatReply(text="", model="scripted", tool_calls=calls), "Fog.")
    stage.says(stage.anna, "Oren?")
    assert len(model.requests) == 2
    assert read == {"view": 1, "settings": 1}


def test_turn_with_a_compaction_reads_only_the_view_again(stage: Any, read: Counter[str]) -> None:
    stage.talks_with(Talker(GOOD), compaction=rules(), **SMALL)
    talks(stage, FULL)
    assert segment_of(stage) == 2
    assert read == {"view": FULL + 1, "settings": FULL}
