"""Send what is written to a connection at once (`TCP_NODELAY`, which Twisted leaves off).

Evennia's two processes constantly exchange small packets. Without this option, a second small
packet waits until the first one is acknowledged, and the other end delays the acknowledgement by up
to 40 ms (Nagle's algorithm, RFC 896, and delayed acknowledgements, RFC 1122 4.2.3.2). A `look` then
took 40 ms in which neither process did any work.

Name this module in the game's setting `PORTAL_SERVICES_PLUGIN_MODULES`. The Server needs no
setting.
"""

from typing import Any

from twisted.application.service import MultiService
from twisted.internet.interfaces import ITCPTransport
from twisted.internet.protocol import Factory


def start_plugin_services(service: MultiService) -> None:
    """Turn on `TCP_NODELAY` for all connections of the Portal's or the Server's services.

    Evennia calls this function after it created its own services and before it starts them.
    """
    for part in service.services:
        for factory in getattr(part, "args", ()):
            if isinstance(factory, Factory):
                _send_at_once(factory)


def _send_at_once(factory: Any) -> None:
    build = factory.buildProtocol

    def built(address: Any) -> Any:
        protocol = build(address)
        if protocol is None:  # the factory refuses a client that connects too often
            return None
        connect = protocol.makeConnection

        def connected(transport: Any) -> None:
            if ITCPTransport.providedBy(transport):
                transport.setTcpNoDelay(True)
            connect(transport)

        protocol.makeConnection = connected
        return protocol

    factory.buildProtocol = built
