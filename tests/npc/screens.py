"""Sessions as players have them, opened by Evennia's protocols in the same way as in its Portal.

Tests do not write the names of protocols themselves, so they cannot use a wrong one.
"""

import sys
from functools import partial
from importlib.util import find_spec
from typing import Any, Final, NoReturn
from unittest.mock import MagicMock
from warnings import catch_warnings, simplefilter

from evennia.server.portal.telnet import TelnetProtocol
from evennia.server.portal.webclient import WebSocketClient
from evennia.server.portal.webclient_ajax import AjaxWebClient, AjaxWebClientSession
from evennia.server.serversession import ServerSession
from evennia.server.session import Session
from twisted.web.test.requesthelper import DummyRequest

# Optional packages that Evennia imports for keys of SSH and TLS. No test creates a key.
_KEYS: Final = {"bcrypt": ("bcrypt",), "OpenSSL": ("OpenSSL", "twisted.internet.ssl")}
_MISSING: Final = {
    name: MagicMock() for of, names in _KEYS.items() if find_spec(of) is None for name in names
}
sys.modules.update(_MISSING)
try:
    with catch_warnings():
        simplefilter("ignore")  # Twisted warns of old ciphers
        from evennia.server.portal.ssh import SshProtocol
        from evennia.server.portal.telnet_ssl import SSLProtocol
finally:
    for _name in _MISSING:
        del sys.modules[_name]


class OwnProtocol(Session):
    """A protocol that a game may add, whose name Evennia does not know."""

    factory: Any = None

    def connected(self) -> None:
        """Open the session, as Evennia requires of a protocol."""
        self.init_session("villagers-api", "127.0.0.1", self.factory.sessionhandler)
        self.factory.sessionhandler.connect(self)


class _Portal:
    """A Portal with the only method that a protocol needs to open a session."""

    def connect(self, session: Session) -> NoReturn:
        raise _OpenedError(session.get_sync_data())


class _OpenedError(Exception):
    """Ends the work of a protocol that opened a session. It holds what the Server would get."""

    def __init__(self, synced: dict[str, Any]) -> None:
        self.synced: Final = synced


def session_at(
    protocol: type, *, screenreader: bool = False, typed_at: float = 0.0
) -> ServerSession:
    """Return the Server's session of a player whose client speaks this protocol."""
    session = ServerSession()
    session.init_session("", None, None)
    session.load_sync_data(_synced(protocol))
    session.protocol_flags["SCREENREADER"] = screenreader
    session.cmd_last = typed_at
    session.data_out = lambda **_: None  # nobody reads the output, unless a test adds a screen
    return session


def _synced(protocol: type) -> dict[str, Any]:
    """Return what the Portal sends the Server about a session of this protocol."""
    try:
        _OPENING[protocol](_Portal())
    except _OpenedError as opened:
        return opened.synced
    raise AssertionError(f"{protocol.__name__} opened no session")


def _dial(protocol: type, by: str, portal: _Portal) -> None:
    """Open a connection by calling this method of the protocol."""
    line: Any = protocol()
    line.factory = MagicMock(sessionhandler=portal)
    line.transport = MagicMock(client=("10.0.0.9", 4000))
    line.http_request_uri = "/"
    getattr(line, by)()


def _dial_ssh(portal: _Portal) -> None:
    line = SshProtocol((None, MagicMock(sessionhandler=portal)))
    line.terminal = MagicMock()
    line.terminalSize(80, 24)


def _ask_by_ajax(portal: _Portal) -> None:
    page = AjaxWebClient()
    page.sessionhandler = portal
    page.client_protocol = AjaxWebClientSession
    page.keep_alive = MagicMock()
    request = DummyRequest([b""])
    request.args = {b"csessid": [b"one"], b"cuid": [b"two"], b"browserstr": [b"three"]}
    request.getRequestHostname = lambda: "localhost"
    request.getHost = lambda: MagicMock(port=4001)
    request.client = MagicMock(host="10.0.0.9")
    page.mode_init(request)


_OPENING: Final[dict[type, Any]] = {
    TelnetProtocol: partial(_dial, TelnetProtocol, "connectionMade"),
    SSLProtocol: partial(_dial, SSLProtocol, "connectionMade"),
    WebSocketClient: partial(_dial, WebSocketClient, "onOpen"),
    OwnProtocol: partial(_dial, OwnProtocol, "connected"),
    SshProtocol: _dial_ssh,
    AjaxWebClientSession: _ask_by_ajax,
}
