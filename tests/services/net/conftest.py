"""A bridge whose results the test takes. Other folders import these fixtures."""

from collections.abc import Iterator
from functools import cache

import httpcore2
import pytest

from evennia_ai.services.net.bridge import AsyncBridge
from tests.services.net.handover import Handover


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture(scope="session", autouse=True)
def _one_tls_context() -> Iterator[None]:
    """Read the certificates of this machine once, because each client would read them again.

    That takes longer than an exchange with a stub server, which uses no certificates.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(httpcore2, "default_ssl_context", cache(httpcore2.default_ssl_context))
        yield


@pytest.fixture
def reactor() -> Handover:
    return Handover()


@pytest.fixture
def bridge(reactor: Handover) -> Iterator[AsyncBridge]:
    bridge = AsyncBridge(reactor)
    yield bridge
    bridge.stop()
