"""Another process composes turns from execution requests to the same bytes, without a game."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.execution_request import ExecutionRequest
from evennia_ai.engine.knowledge.pages.page import BaseInfo
from evennia_ai.engine.prompt.components import GAME
from evennia_ai.engine.prompt.messages import ToolCall
from evennia_ai.npc.inputs import gather
from evennia_ai.npc.tools import registry
from evennia_ai.services.llm.chat import ChatReply
from evennia_ai.store.history import turns
from evennia_ai.store.history.past_turns import turns_in_order
from evennia_ai.store.knowledge import knowledge_bases
from tests.npc.scripted_games import furnish, play

# The code of the other process. It has the package and reads requests from stdin.
WORKER = """
import json, sys
from evennia_ai.engine.execution_request import ExecutionRequest
from evennia_ai.engine.history.turn.sending import storable_messages
from evennia_ai.engine.prompt.messages import messages_sha256

told = []
for line in sys.stdin:
    request = ExecutionRequest.from_json(line)
    prompt = request.composed().prompt
    told.append([messages_sha256(storable_messages(prompt.messages)), request.kb_meta_prompt])
roots = {name.partition(".")[0] for name in sys.modules}
game = sorted(roots & {"evennia", "django", "twisted"})
knowledge = [name for name in sys.modules if name.startswith("evennia_ai.engine.knowledge")]
print(json.dumps([told, game, knowledge]))
"""


def worked(lines):
    """Return what the other process printed: prompts, and imported frameworks and modules."""
    made = subprocess.run(
        [sys.executable, "-c", WORKER],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert made.returncode == 0, made.stderr
    return json.loads(made.stdout)


@pytest.fixture
def requests(monkeypatch):
    """Return the execution requests of the first rounds of some turns, in their serialised form."""
    made = []

    def kept(request):
        made.append(request.to_json())
        return original(request)

    original = ExecutionRequest.composed
    monkeypatch.setattr(ExecutionRequest, "composed", kept)
    return made


def sha256s(stage):
    return [turn.manifest.sha256 for turn in turns_in_order(stage.npc.ai.ref)]


def a_base():
    info = BaseInfo(key="harbour", name="The harbour", summary="Tides and tolls.")
    knowledge_bases.save_base(info, by=trusted("builder"))
    knowledge_bases.assign_base("harbour", GAME, by=trusted("builder"))


@pytest.mark.long
@pytest.mark.req("S0-14", "S1-03", "S1-05")
def test_other_process_composes_each_turn_to_the_bytes_that_were_sent(stage, requests):
    stage.room.db.desc = "Planks, ropes and fog."
    furnish(stage)
    a_base()
    registry.choose_tools(stage.npc, ["knowledge_base_search", "look"], by=trusted("builder"))
    stage.talks_with(lambda request: f"Aye, {len(request.messages)}.")
    play(stage)
    told, frameworks, knowledge = worked(requests)
    assert len(told) == 16
    assert [sha256 for sha256, _ in told] == sha256s(stage)
    assert all("Tides and tolls." in kb_meta_prompt for _, kb_meta_prompt in told)
    assert (frameworks, knowledge) == ([], [])


@pytest.mark.long
def test_rounds_after_tools_are_composed_from_the_execution_request(stage, requests):
    call = ToolCall(id="1", name="look", arguments="{}")
    registry.choose_tools(stage.npc, ["look"], by=trusted("builder"))
    stage.talks_with(ChatReply(text="", model="scripted", tool_calls=(call,)), "Fog.")
    stage.says(stage.anna, "Oren, what do you see?")
    told, _, _ = worked(requests)
    assert [sha256 for sha256, _ in told] == sha256s(stage)
    assert len(told) == 2


def test_turn_is_composed_only_from_its_execution_request(stage, monkeypatch):
    def other(*args, **options):
        request = original(*args, **options)
        values = {**request.inputs.values, "char": "Sent"}
        return replace(request, inputs=replace(request.inputs, values=values))

    furnish(stage)
    original = gather.execution_request
    monkeypatch.setattr(gather, "execution_request", other)
    stage.talks_with("Aye.")
    stage.says(stage.anna, "Oren?")
    assert turns.last_turn(stage.npc.ai.ref).manifest.inputs["values"]["char"] == "Sent"
    assert "Sent rows the visitor over." in str(stage.model.requests[-1].messages)
