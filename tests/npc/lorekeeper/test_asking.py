"""Wikipedia is asked only if the settings name its address, and its failures never stop a task."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from evennia_ai.engine.knowledge.assembly.requests import Failed
from evennia_ai.npc.lorekeeper import asking
from evennia_ai.services.net.bridge import AsyncBridge
from tests.services.net.handover import Handover
from tests.services.wiki.stub_wiki import StubWiki, answers, sends

PAGE = {"ns": 0, "title": "Ferry", "pageid": 1, "extract": "A ferry is a boat."}


class Models:
    """The attributes of the game's models that this module uses."""

    def __init__(self, bridge: AsyncBridge) -> None:
        self.bridge = bridge


@pytest.fixture
def wiki(monkeypatch: pytest.MonkeyPatch) -> Iterator[StubWiki]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    wiki = StubWiki()
    yield wiki
    wiki.close()


@pytest.fixture
def introduction() -> Iterator[Callable[[str, str], Any]]:
    """Return what the Wikipedia at an address says about a subject."""
    reactor = Handover()
    bridge = AsyncBridge(reactor)
    models = Models(bridge)

    def introduction(entity: str, address: str) -> Any:
        return reactor.outcome_of(
            asking.fetch_introduction(models, address, entity), within_seconds=30
        )

    yield introduction
    bridge.stop()


@pytest.mark.req("S4-17")
def test_wikipedia_is_not_asked_without_an_address_in_the_settings(introduction, wiki):
    assert introduction("Ferry", "") == Failed(asking.OFF)
    assert wiki.requests == []


@pytest.mark.req("S4-17")
def test_introduction_has_the_title_and_text_of_the_article(introduction, wiki):
    wiki.behaves(answers({"query": {"pages": [PAGE]}}))
    found = introduction("Ferry", wiki.api)

    assert (found.title, found.text) == ("Ferry", "A ferry is a boat.")


@pytest.mark.req("S4-17")
def test_wikipedia_failure_gives_a_reason_and_one_log_line(introduction, wiki, monkeypatch):
    lines: list[str] = []
    monkeypatch.setattr(asking.logger, "log_warn", lines.append)
    wiki.behaves(sends(b"<html>"))
    found = introduction("Ferry", wiki.api)

    assert isinstance(found, Failed)
    assert "did not answer with JSON" in found.why
    assert lines == [f"evennia_ai: Wikipedia gave no introduction of 'Ferry': {found.why}"]
