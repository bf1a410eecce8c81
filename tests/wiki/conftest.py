"""A stub of a wiki, a bridge whose results the test takes, and the wiki as a knowledge base."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from evennia_ai.llm.bridge import AsyncBridge
from evennia_ai.llm.endpoint import SecretText
from evennia_ai.wiki.backend import MediaWikiBackend
from evennia_ai.wiki.site import Site
from tests.llm.handover import Handover
from tests.wiki.stub_wiki import PASSWORD, StubWiki

Making = Callable[..., MediaWikiBackend]
Outcome = Callable[[Any], Any]


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def reactor() -> Handover:
    return Handover()


@pytest.fixture
def bridge(reactor: Handover) -> Iterator[AsyncBridge]:
    bridge = AsyncBridge(reactor)
    yield bridge
    bridge.stop()


@pytest.fixture
def outcome(reactor: Handover) -> Outcome:
    """What an answer of the base comes to: its result, or the exception it fails with."""
    return lambda answer: reactor.outcome_of(answer, within_seconds=30)


@pytest.fixture
def wiki() -> Iterator[StubWiki]:
    wiki = StubWiki()
    yield wiki
    wiki.close()


@pytest.fixture
def base(wiki: StubWiki, bridge: AsyncBridge) -> Making:
    """Makes the knowledge base `harbour` of the stub's pages; it does not try twice."""

    def made(**values: Any) -> MediaWikiBackend:
        wanted = {"key": "harbour", "api": wiki.api, "max_retries": 0, **values}
        return MediaWikiBackend("harbour", Site(**wanted), bridge)

    return made


@pytest.fixture
def editor(base: Making) -> MediaWikiBackend:
    """The knowledge base, with somebody who may edit."""
    return base(user="Admin@game", password=SecretText(PASSWORD))
