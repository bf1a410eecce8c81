"""What is written to a connection is sent at once: `TCP_NODELAY`, which Twisted leaves off.

Evennia's two processes tell each other small things all the time. Without it a second small packet
waits until the first one is acknowledged, and the other end delays that by up to 40 ms (Nagle's
algorithm, RFC 896, and delayed acknowledgements, RFC 1122 4.2.3.2): a `look` took 40 ms in which
nobody worked.

Named in a game's settings, `PORTAL_SERVICES_PLUGIN_MODULES`. The Server's end needs no setting.
"""

from typing import Any

from twisted.application.service import MultiService
from twisted.internet.interfaces import ITCPTransport
from twisted.internet.protocol import Factory


def start_plugin_services(service: MultiService) -> None:
    """Have all connections of the Portal's or the Server's services send at once.

    Evennia calls it when its own services are made and none of them has begun.
    """
    for part in service.services:
        for factory in getattr(part, "args", ()):
            if isinstance(factory, Factory):
                _send_at_once(factory)


def _send_at_once(factory: Any) -> None:
    build = factory.buildProtocol

    def built(address: Any) -> Any:
        protocol = build(address)
        if protocol is None:  # refused: a client that connects too often
            return None
        connect = protocol.makeConnection

        def connected(transport: Any) -> None:
            if ITCPTransport.providedBy(transport):
                transport.setTcpNoDelay(True)
            connect(transport)

        protocol.makeConnection = connected
        return protocol

    factory.buildProtocol = built
