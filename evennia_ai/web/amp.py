"""A connection between Portal and Server that a heavy load of messages does not break.

Evennia's two processes talk over AMP. Evennia inspects the first byte of a packet to find out
whether a web browser has connected by mistake. It skips this check only if the previous packet
ended inside an AMP box. A packet that ends exactly one byte after a box therefore makes Evennia
take the next packet for a browser's, and it closes the connection. The Server is then restarted,
and all messages that wait in it are lost. Twenty players who each send a burst of lines are enough
to cause this, because full packets are split anywhere. These classes check only the first packet: a
peer that has spoken AMP once is trusted from then on.

Set them in a game's settings as `AMP_SERVER_PROTOCOL_CLASS` and `AMP_CLIENT_PROTOCOL_CLASS`.
"""

from evennia.server import amp_client
from evennia.server.amp_client import AMPServerClientProtocol
from evennia.server.portal.amp import NUL, AMPMultiConnectionProtocol
from evennia.server.portal.amp_server import AMPServerProtocol


class _Steady(AMPMultiConnectionProtocol):
    """An AMP connection that never takes a peer for a browser after its first AMP packet."""

    multibatches: int
    """Evennia's count of messages of which more parts will follow."""

    _speaks_amp = False

    def dataReceived(self, data: bytes) -> None:  # noqa: N802 - Twisted's name
        if self._speaks_amp:
            self.multibatches = max(1, self.multibatches)
        self._speaks_amp = self._speaks_amp or data[:1] == NUL
        super().dataReceived(data)


class SteadyPortal(_Steady, AMPServerProtocol):
    """The Portal's end of the connection."""


class SteadyServer(_Steady, AMPServerClientProtocol):
    """The Server's end of the connection."""


# Evennia 5 and 6 import this module because of `AMP_CLIENT_PROTOCOL_CLASS`, but then create the
# class by this name in `amp_client` (`AMPClientFactory.buildProtocol`).
amp_client.AMPServerClientProtocol = SteadyServer
