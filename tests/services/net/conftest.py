"""A bridge whose results the test takes. Other folders import these fixtures."""

from collections.abc import Iterator

import pytest

from evennia_ai.services.net.bridge import AsyncBridge
from tests.services.net.handover import Handover


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
