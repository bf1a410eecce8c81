"""The wire between Portal and Server, which stays whole however much is said on it.

Evennia guesses by the first byte of each packet whether a web browser speaks there, unless the
packet before ended within a box. Where it ended one byte behind a box it takes the next packet for
a browser's and hangs up: the Server is started again, and all that waits in it is lost. Packets are
full, and cut anywhere, when players make the game say a lot: twenty of them with a burst of lines
are enough. Here who spoke AMP once is believed to go on.

Named in a game's settings, `AMP_SERVER_PROTOCOL_CLASS` and `AMP_CLIENT_PROTOCOL_CLASS`.
"""

from evennia.server import amp_client
from evennia.server.amp_client import AMPServerClientProtocol
from evennia.server.portal.amp import NUL, AMPMultiConnectionProtocol
from evennia.server.portal.amp_server import AMPServerProtocol


class _Steady(AMPMultiConnectionProtocol):
    """Who spoke AMP once is never taken for a browser."""

    multibatches: int
    """Evennia's count of messages of which more is to come."""

    _speaks_amp = False

    def dataReceived(self, data: bytes) -> None:  # noqa: N802 - Twisted's name
        if self._speaks_amp:
            self.multibatches = max(1, self.multibatches)
        self._speaks_amp = self._speaks_amp or data[:1] == NUL
        super().dataReceived(data)


class SteadyPortal(_Steady, AMPServerProtocol):
    """The Portal's end."""


class SteadyServer(_Steady, AMPServerClientProtocol):
    """The Server's end."""


# Evennia 5 and 6 read `AMP_CLIENT_PROTOCOL_CLASS`, which imports this, and then make the class of
# this name all the same (`AMPClientFactory.buildProtocol`).
amp_client.AMPServerClientProtocol = SteadyServer
