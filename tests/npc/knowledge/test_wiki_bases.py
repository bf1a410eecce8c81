"""A base that is a wiki: searching it never blocks the game, also when the wiki is down."""

from collections.abc import Iterator
from typing import Any

import pytest

from evennia_ai.engine.actors import THE_GAME, trusted
from evennia_ai.engine.knowledge.meta_prompt import TOOL
from evennia_ai.engine.knowledge.pages.page import BaseInfo
from evennia_ai.engine.prompt.components import Scope
from evennia_ai.npc.npc_settings import change_settings
from evennia_ai.npc.runtime import runtime
from evennia_ai.services.wiki.site import Site
from evennia_ai.store.knowledge import knowledge_bases
from tests.npc.knowledge.cellars import Minds
from tests.services.net.handover import Handover
from tests.services.wiki.stub_wiki import StubWiki, sends

FERRY = "The ferry sails with the tide."
HARBOUR = BaseInfo(key="harbour", name="The harbour", backend="mediawiki")


@pytest.fixture
def wiki(monkeypatch: pytest.MonkeyPatch) -> Iterator[StubWiki]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    wiki = StubWiki()
    wiki.pages_there = 1
    wiki.texts["Ferry"] = FERRY
    yield wiki
    wiki.close()


@pytest.fixture
def harbour(stage: Any, wiki: StubWiki) -> Iterator[Any]:
    """The stage, where Oren may search the wiki. `reactor` gets calls from the HTTP thread."""
    knowledge_bases.save_base(HARBOUR, by=trusted("builder"))
    knowledge_bases.assign_base(
        "harbour", Scope(kind="npc", ref=stage.npc.ai.ref), by=trusted("builder")
    )
    change_settings(stage.npc, tools=(TOOL,), by=THE_GAME)
    stage.minds = Minds()
    stage.minds.searches = {"query": "ferry"}
    patient = {
        "request_seconds": 30,
        "whole_seconds": 60,
    }  # so that a slow test machine causes no timeout
    site = Site(key="harbour", api=wiki.api, max_retries=0, **patient)
    stage.install(stage.minds, knowledge_wikis={"harbour": site})
    stage.reactor = Handover()
    runtime().models.bridge._reactor = stage.reactor
    yield stage
    runtime().models.bridge.stop()
    stage.reactor.make_waiting_calls()


def told(stage: Any) -> str:
    """Ask Oren something, let the wiki answer, and return the result of his search."""
    stage.says(stage.anna, "Oren, the ferry?")
    assert len(stage.minds.requests) == 1
    stage.reactor.make_next_call(within_seconds=60)
    stage.passes()
    last = stage.minds.requests[-1].messages[-1]
    assert last.role == "tool"
    return str(last.content)


def test_search_finds_a_page_of_a_wiki(harbour):
    assert told(harbour) == f"[harbour] Ferry: {FERRY}"


def test_failing_wiki_is_named_in_the_result_and_logged(harbour, wiki, logged):
    wiki.behaves(sends(b"", status=500))
    assert "harbour cannot be read just now" in told(harbour)
    assert any("answered with status 500" in line for line in logged)


def test_wiki_without_a_setting_is_named_in_the_result_and_logged(stage, harbour, logged):
    stage.install(stage.minds)
    stage.says(stage.anna, "Oren, the ferry?")
    assert "harbour cannot be read just now" in str(stage.minds.requests[-1].messages[-1].content)
    assert any("EVENNIA_AI_KNOWLEDGE_WIKIS does not name" in line for line in logged)
