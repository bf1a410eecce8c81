"""A stub of a wiki, a bridge, and the wiki as a knowledge base."""

# ruff: noqa: F811 - fixtures of another folder

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from evennia_ai.services.net.bridge import AsyncBridge
from evennia_ai.services.net.secrets import SecretText
from evennia_ai.services.wiki.backend import MediaWikiBackend
from evennia_ai.services.wiki.site import Site
from tests.services.net.conftest import (  # noqa: F401 - fixtures
    _no_proxy,
    _one_tls_context,
    bridge,
    reactor,
)
from tests.services.net.handover import Handover
from tests.services.wiki.stub_wiki import PASSWORD, StubWiki

Making = Callable[..., MediaWikiBackend]
Outcome = Callable[[Any], Any]


@pytest.fixture
def outcome(reactor: Handover) -> Outcome:
    """Return the outcome of a request to the base: its result, or its exception."""
    return lambda answer: reactor.outcome_of(answer, within_seconds=30)


@pytest.fixture
def wiki() -> Iterator[StubWiki]:
    wiki = StubWiki()
    yield wiki
    wiki.close()


@pytest.fixture
def base(wiki: StubWiki, bridge: AsyncBridge) -> Making:
    """A function that makes the knowledge base `harbour` from the stub's pages, without retries."""

    def made(**values: Any) -> MediaWikiBackend:
        wanted = {"key": "harbour", "api": wiki.api, "max_retries": 0, **values}
        return MediaWikiBackend("harbour", Site(**wanted), bridge)

    return made


@pytest.fixture
def editor(base: Making) -> MediaWikiBackend:
    """The knowledge base, with an account that may edit."""
    return base(user="Admin@game", password=SecretText(PASSWORD))
