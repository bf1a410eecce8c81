"""Everything that is written to a connection is sent at once."""

from typing import Any

import pytest
from django.conf import settings
from django.test import override_settings
from twisted.application import internet
from twisted.internet.address import IPv4Address
from twisted.internet.interfaces import ITCPTransport
from twisted.internet.protocol import Factory
from twisted.internet.testing import StringTransport
from zope.interface import implementer

from tests.npc.test_web_origins import ids

PLUGIN = "evennia_ai.web.nodelay"
SOMEBODY = IPv4Address("TCP", "127.0.0.1", 4000)


@implementer(ITCPTransport)
class Line(StringTransport):
    """A connection that keeps the options that were set for it."""

    sends_at_once = False

    def setTcpNoDelay(self, enabled: bool) -> None:
        self.sends_at_once = enabled


def factories(service: Any) -> dict[str, Any]:
    """Return the factories of a service's parts, by the names of the parts."""
    return {
        part.name: one
        for part in service.services
        for one in getattr(part, "args", ())
        if isinstance(one, Factory)
    }


def line_of(factory: Any) -> Line:
    """Return the connection of a protocol that this factory made."""
    line, protocol = Line(), factory.buildProtocol(SOMEBODY)
    protocol.connectionMade = lambda: None  # there is no peer to greet
    protocol.makeConnection(line)
    return line


def evennias_portal() -> Any:
    """Return Evennia's own Portal, with all its ports, before it starts."""
    from evennia.server.portal.service import EvenniaPortalService

    portal = EvenniaPortalService()
    portal.register_amp()
    portal.register_telnet()
    portal.register_webserver()
    return portal


def evennias_server() -> Any:
    """Return Evennia's own Server, with its connection to the Portal."""
    from evennia.server.service import EvenniaServerService

    server = EvenniaServerService()
    server.register_amp()
    return server


@override_settings(WEBCLIENT_ENABLED=True, WEBSOCKET_CLIENT_ENABLED=True)
def test_evennias_portal_sends_everything_at_once(db: None) -> None:
    portal = evennias_portal()
    before = {name: line_of(one).sends_at_once for name, one in factories(portal).items()}
    assert len(before) == 4
    assert not any(before.values()), "Twisted's default changed: the plugin is needless"
    portal.register_plugins()
    sent = {name: line_of(one).sends_at_once for name, one in factories(portal).items()}
    assert all(sent.values()), sent


def test_server_sends_at_once_without_a_setting(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    from evennia.server.service import EvenniaServerService

    # Its options for SQLite cannot be set inside the transaction of a test.
    monkeypatch.setattr(EvenniaServerService, "sqlite3_prep", lambda _: None)
    assert PLUGIN in settings.SERVER_SERVICES_PLUGIN_MODULES
    server = evennias_server()
    server.register_plugins()
    assert [line_of(one).sends_at_once for one in factories(server).values()] == [True]


def test_refused_connection_is_still_refused() -> None:
    from twisted.application.service import MultiService

    from evennia_ai.web.nodelay import start_plugin_services

    class Refusing(Factory):
        def buildProtocol(self, addr: Any) -> None:
            return None

    service, factory = MultiService(), Refusing()
    internet.TCPServer(0, factory).setServiceParent(service)
    start_plugin_services(service)
    assert factory.buildProtocol(SOMEBODY) is None


def test_check_warns_of_a_portal_that_does_not_send_at_once() -> None:
    assert PLUGIN in settings.PORTAL_SERVICES_PLUGIN_MODULES
    assert "evennia_ai.W025" in ids(PORTAL_SERVICES_PLUGIN_MODULES=[])
    assert ids(PORTAL_SERVICES_PLUGIN_MODULES=PLUGIN) == ["evennia_ai.W027"]
