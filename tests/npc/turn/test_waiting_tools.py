"""Tools for which the turn waits: a late result is used like any other."""

import json

import pytest
from twisted.internet.defer import Deferred

from evennia_ai.engine.actors import THE_GAME
from evennia_ai.engine.prompt.messages import ToolCall
from evennia_ai.npc.npc_settings import change_settings
from evennia_ai.npc.tools import registry as tools
from evennia_ai.npc.tools.registry import ToolError, register_tool
from evennia_ai.npc.tools.tool import Refused, Tool
from evennia_ai.npc.turn.acting import WAIT_SECONDS
from evennia_ai.services.llm.chat import ChatReply
from evennia_ai.store.history import turns

ROOM = "evennia.objects.objects.DefaultRoom"


class Search(Tool):
    """A tool that searches an archive on another machine."""

    name = "search_archive"
    description = "Search the archive."
    waits = True
    asked: list[Deferred] = []

    def run(self, use, arguments):
        self.asked.append(Deferred())
        return self.asked[-1]


class Both(Search):
    name = "both"
    later = True


def a_search(text: str = "") -> ChatReply:
    call = ToolCall(id="x", name="search_archive", arguments=json.dumps({}))
    return ChatReply(text=text, model="scripted", tool_calls=(call,))


@pytest.fixture
def searching(stage, monkeypatch):
    """Return the stage while a turn waits for the tool."""
    Search.asked.clear()
    found = tools.registry_of(("tests.npc.turn.test_waiting_tools.Search",))
    monkeypatch.setattr("evennia_ai.npc.tools.registry.registry", lambda: found)
    change_settings(stage.npc, tools=("search_archive",), by=THE_GAME)
    stage.model = stage.talks_with(a_search(), "In 1702.", "Aye.")
    stage.says(stage.anna, "Oren, when was the bell cast?")
    return stage


def ends(stage, result) -> None:
    if isinstance(result, Exception):
        Search.asked[-1].errback(result)
    else:
        Search.asked[-1].callback(result)
    stage.passes()


def told(stage) -> str:
    """Return the results that the model read."""
    return stage.model.requests[1].messages[-1].content


def test_model_is_asked_again_in_the_same_turn_after_the_result_arrives(searching):
    assert len(searching.model.requests) == 1
    ends(searching, "It was cast in 1702.")
    assert told(searching) == "It was cast in 1702."
    assert searching.screen_of(searching.anna)[-1] == 'Oren says, "In 1702."'


def test_call_and_result_of_a_waiting_tool_are_committed_before_use(searching):
    kinds = [kind for kind, _, _ in searching.records()]
    assert kinds[-1] == "tool_call"
    ends(searching, "1702.")
    assert "tool_result" in [kind for kind, _, _ in searching.records()]
    assert turns.last_turn(searching.npc.ai.ref).state == "done"


def test_line_heard_while_a_tool_waits_follows_it_and_is_answered(searching):
    searching.says(searching.ben, "Oren, and the tower?")
    ends(searching, "1702.")
    searching.passes(2)
    assert told(searching) == "1702."
    assert searching.screen_of(searching.ben)[-1] == 'Oren says, "Aye."'


@pytest.mark.parametrize(
    ("failure", "line"),
    [
        (Refused("The archive is closed."), "The archive is closed."),
        (OSError(), "That did not work."),
    ],
)
def test_turn_goes_on_when_a_waiting_tool_fails(searching, failure, line):
    ends(searching, failure)
    assert told(searching) == line
    assert searching.screen_of(searching.anna)[-1] == 'Oren says, "In 1702."'


def test_waiting_tool_that_never_ends_is_given_up(searching):
    searching.passes(WAIT_SECONDS + 1)
    assert told(searching) == "That was given up."


def test_waiting_tool_is_given_up_when_everybody_has_left(searching):
    searching.ben.location = None
    searching.anna.move_to(searching.make("Quay", ROOM, place=None))
    searching.passes(1)
    assert Search.asked[-1].called
    assert len(searching.model.requests) == 1
    assert turns.last_turn(searching.npc.ai.ref).state != "open"


def test_tool_cannot_be_marked_both_waits_and_later():
    with pytest.raises(ToolError, match="both `waits` and `later`"):
        register_tool(Both)
