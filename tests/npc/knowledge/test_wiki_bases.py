"""A base that is a wiki: NPCs search it while the game goes on, and do without when it is down."""

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
    """The stage; Oren may search the wiki. `reactor` takes what its thread hands over."""
    knowledge_bases.save_base(HARBOUR, by=trusted("builder"))
    knowledge_bases.bind_base(
        "harbour", Scope(kind="npc", ref=stage.npc.ai.ref), by=trusted("builder")
    )
    change_settings(stage.npc, tools=(TOOL,), by=THE_GAME)
    stage.minds = Minds()
    stage.minds.searches = {"query": "ferry"}
    patient = {"request_seconds": 30, "whole_seconds": 60}  # a busy machine is no broken wiki
    site = Site(key="harbour", api=wiki.api, max_retries=0, **patient)
    stage.install(stage.minds, knowledge_wikis={"harbour": site})
    stage.reactor = Handover()
    runtime().models.bridge._reactor = stage.reactor
    yield stage
    runtime().models.bridge.stop()
    stage.reactor.make_waiting_calls()


def told(stage: Any) -> str:
    """What the NPC's model was told of its search, once the wiki has answered."""
    stage.says(stage.anna, "Oren, the ferry?")
    assert len(stage.minds.requests) == 1
    stage.reactor.make_next_call(within_seconds=60)
    stage.passes()
    last = stage.minds.requests[-1].messages[-1]
    assert last.role == "tool"
    return str(last.content)


def test_a_page_of_the_wiki_is_found_like_any_other(harbour):
    assert told(harbour) == f"[harbour] Ferry: {FERRY}"


def test_a_wiki_that_is_down_is_told_to_the_npc_and_logged(harbour, wiki, logged):
    wiki.behaves(sends(b"", status=500))
    assert "harbour cannot be read just now" in told(harbour)
    assert any("answered with status 500" in line for line in logged)


def test_a_wiki_that_no_setting_names_is_told_to_the_npc(stage, harbour, logged):
    stage.install(stage.minds)
    stage.says(stage.anna, "Oren, the ferry?")
    assert "harbour cannot be read just now" in str(stage.minds.requests[-1].messages[-1].content)
    assert any("EVENNIA_AI_KNOWLEDGE_WIKIS does not name" in line for line in logged)
