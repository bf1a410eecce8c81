"""The connection between Portal and Server: it survives packets that are split anywhere.

Issue 14: a suite of attacks found that the Server was disconnected while it had much to send.
"""

from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import settings
from twisted.internet.testing import StringTransport
from twisted.protocols.amp import AmpBox

BOXES = [AmpBox(_ask=b"%d" % n, _command=b"MsgServer2Portal", packed=b"x" * n) for n in range(4)]
SENT = b"".join(box.serialize() for box in BOXES)
CUTS = range(1, len(SENT))


def ends() -> list[Any]:
    from evennia_ai.web.amp import SteadyPortal, SteadyServer

    return [SteadyPortal, SteadyServer]


def received(kind: Any, *packets: bytes) -> list[AmpBox]:
    """Return the boxes that arrive at this end, which must not close the connection."""
    arrived: list[AmpBox] = []

    class Listening(kind):  # type: ignore[misc]
        def ampBoxReceived(self, box: AmpBox) -> None:
            arrived.append(box)

        def connectionMade(self) -> None:
            """Do nothing, because there is no peer to greet."""

    line, wire = Listening(), StringTransport()
    line.makeConnection(wire)
    for packet in packets:
        line.dataReceived(packet)
    assert not wire.disconnecting, wire.value()
    return arrived


@pytest.mark.parametrize("at_the_server", [False, True])
def test_all_messages_arrive_wherever_packets_are_split(db: None, at_the_server: bool) -> None:
    kind = ends()[at_the_server]
    for cut in CUTS:
        assert received(kind, SENT[:cut], SENT[cut:], SENT) == BOXES * 2, cut
    assert received(kind, *(SENT[at : at + 1] for at in range(len(SENT)))) == BOXES


def test_connection_of_a_browser_is_closed(db: None) -> None:
    for kind in ends():
        with pytest.raises(AssertionError, match="HTTP"):
            received(kind, b"GET / HTTP/1.1\r\n\r\n")


def test_evennia_creates_our_classes_for_connections(db: None) -> None:
    from evennia.server.amp_client import AMPClientFactory
    from evennia.server.portal.amp_server import AMPServerFactory

    server, portal = SimpleNamespace(), SimpleNamespace()
    made = [AMPClientFactory(server).buildProtocol(None)]
    made.append(AMPServerFactory(portal).buildProtocol(None))
    assert [type(one).__name__ for one in made] == ["SteadyServer", "SteadyPortal"]


def test_demo_uses_the_steady_protocols() -> None:
    assert settings.AMP_SERVER_PROTOCOL_CLASS == "evennia_ai.web.amp.SteadyPortal"
    assert settings.AMP_CLIENT_PROTOCOL_CLASS == "evennia_ai.web.amp.SteadyServer"
