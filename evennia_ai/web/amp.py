"""Keep the AMP connection between Evennia's Portal and Server open under heavy load.

Evennia's two processes exchange messages over AMP. To detect a web browser that has connected by
mistake, Evennia inspects the first byte of each packet, unless it knows that the packet continues
an AMP box. If a packet ends exactly one byte after the end of a box, Evennia does not know this
about the next packet. It takes the next packet for a browser's request and closes the connection.
The Server is then restarted, and all waiting messages are lost. Full packets are split at any byte,
so twenty players who each send a burst of lines are enough to cause this.

The classes in this module inspect only the first packet of a connection. A peer that has once sent
AMP is trusted from then on. Set the classes in the game's settings as `AMP_SERVER_PROTOCOL_CLASS`
and `AMP_CLIENT_PROTOCOL_CLASS`.
"""

from evennia.server import amp_client
from evennia.server.amp_client import AMPServerClientProtocol
from evennia.server.portal.amp import NUL, AMPMultiConnectionProtocol
from evennia.server.portal.amp_server import AMPServerProtocol


class _Steady(AMPMultiConnectionProtocol):
    """An AMP connection that looks for a web browser only in its first packet."""

    multibatches: int
    """Evennia's count of messages with parts still to come. Above 0, Evennia skips its check."""

    _speaks_amp = False

    def dataReceived(self, data: bytes) -> None:  # noqa: N802 - Twisted's name
        if self._speaks_amp:
            self.multibatches = max(1, self.multibatches)
        self._speaks_amp = self._speaks_amp or data[:1] == NUL
        super().dataReceived(data)


class SteadyPortal(_Steady, AMPServerProtocol):
    """The Portal's end of the connection, for `AMP_SERVER_PROTOCOL_CLASS`."""


class SteadyServer(_Steady, AMPServerClientProtocol):
    """The Server's end of the connection, for `AMP_CLIENT_PROTOCOL_CLASS`."""


# Evennia 5 and 6 import the class that `AMP_CLIENT_PROTOCOL_CLASS` names, but
# `AMPClientFactory.buildProtocol` creates `amp_client.AMPServerClientProtocol` instead.
amp_client.AMPServerClientProtocol = SteadyServer
