"""Fixtures for tests of clients: a stub server, a bridge, and clients of the stub server."""

# ruff: noqa: F811 - fixtures of another folder

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from twisted.internet.task import Clock

from evennia_ai.services.llm.clients.anthropic import AnthropicChat
from evennia_ai.services.llm.clients.openai import OpenAIChat
from evennia_ai.services.llm.profiles import Endpoint
from evennia_ai.services.net.bridge import AsyncBridge
from evennia_ai.services.net.secrets import SecretText
from tests.services.llm.clients.stub_server import StubServer
from tests.services.net.conftest import (  # noqa: F401 - fixtures
    _no_proxy,
    _one_tls_context,
    bridge,
    reactor,
)
from tests.services.net.handover import Handover
from tests.services.net.keys import KEY

Making = Callable[..., OpenAIChat]
MakingClaude = Callable[..., AnthropicChat]


@pytest.fixture
def server() -> Iterator[StubServer]:
    server = StubServer()
    yield server
    server.close()


@pytest.fixture
def model(server: StubServer, bridge: AsyncBridge, reactor: Handover) -> Making:
    """A function that makes a client of the stub server, ready for requests."""

    def made(**values: Any) -> OpenAIChat:
        wanted = {"base_url": server.base_url, "max_retries": 0, "api_key": SecretText(KEY)}
        model = OpenAIChat(Endpoint(name="stub", model="tiny", **(wanted | values)), bridge)
        reactor.outcome_of(model.prepare(), within_seconds=30)
        return model

    return made


@pytest.fixture
def claude(server: StubServer, bridge: AsyncBridge, reactor: Handover) -> MakingClaude:
    """A function that makes an Anthropic client of the stub server, ready for requests."""

    def made(**values: Any) -> AnthropicChat:
        wanted = {"base_url": server.base_url, "max_retries": 0, "api_key": SecretText(KEY)}
        endpoint = Endpoint(name="stub", model="claude-tiny", **(wanted | values))
        chat = AnthropicChat(endpoint, bridge)
        reactor.outcome_of(chat.prepare(), within_seconds=30)
        return chat

    return made


@pytest.fixture
def clock() -> Clock:
    return Clock()
