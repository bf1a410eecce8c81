"""Sessions as players have them: each was opened by Evennia's own protocol, as its Portal opens it.

No test names a protocol itself, so none can name one that no session has.
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

# Extras of Evennia's, which make keys of SSH and TLS; no test makes any.
_KEYS: Final = {"bcrypt": ("bcrypt",), "OpenSSL": ("OpenSSL", "twisted.internet.ssl")}
_MISSING: Final = {
    name: MagicMock() for of, names in _KEYS.items() if find_spec(of) is None for name in names
}
sys.modules.update(_MISSING)
try:
    with catch_warnings():
        simplefilter("ignore")  # Twisted lists old ciphers
        from evennia.server.portal.ssh import SshProtocol
        from evennia.server.portal.telnet_ssl import SSLProtocol
finally:
    for _name in _MISSING:
        del sys.modules[_name]


class OwnProtocol(Session):
    """What a game may add: a protocol that Evennia has no word for."""

    factory: Any = None

    def connected(self) -> None:
        """Open the session, as a protocol has to."""
        self.init_session("villagers-api", "127.0.0.1", self.factory.sessionhandler)
        self.factory.sessionhandler.connect(self)


class _Portal:
    """The Portal's list of sessions, as far as a protocol sees it that opens one."""

    def connect(self, session: Session) -> NoReturn:
        raise _OpenedError(session.get_sync_data())


class _OpenedError(Exception):
    """A session was opened, and the protocol goes no further; what the Server is sent of it."""

    def __init__(self, synced: dict[str, Any]) -> None:
        self.synced: Final = synced


def session_at(
    protocol: type, *, screenreader: bool = False, typed_at: float = 0.0
) -> ServerSession:
    """The Server's session of somebody whose client speaks this protocol."""
    session = ServerSession()
    session.init_session("", None, None)
    session.load_sync_data(_synced(protocol))
    session.protocol_flags["SCREENREADER"] = screenreader
    session.cmd_last = typed_at
    session.data_out = lambda **_: None  # nobody looks, unless a test puts a screen here
    return session


def _synced(protocol: type) -> dict[str, Any]:
    """What the Portal tells the Server of a session of this protocol."""
    try:
        _OPENING[protocol](_Portal())
    except _OpenedError as opened:
        return opened.synced
    raise AssertionError(f"{protocol.__name__} opened no session")


def _dial(protocol: type, by: str, portal: _Portal) -> None:
    """Connect, the protocol being told of it by this method."""
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
