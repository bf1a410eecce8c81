"""The limits for bodies of requests, which are enforced before a body is kept."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.test import override_settings
from twisted.internet.address import IPv4Address
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.web.resource import Resource
from twisted.web.server import Site

from tests.npc.test_web_nodelay import evennias_portal, evennias_server, factories
from tests.npc.test_web_origins import ids

PLUGIN = "evennia_ai.web.bodies"
FORM = b"Content-Type: application/x-www-form-urlencoded\r\n"


class Echo(Resource):
    """A page that returns the body of its request."""

    isLeaf = True  # noqa: N815 - Twisted's name

    def __init__(self) -> None:
        super().__init__()
        self.served: list[dict[str, Any]] = []

    def render(self, request: Any) -> bytes:
        headers = request.requestHeaders
        self.served.append(
            {
                "method": request.method,
                "size": len(request.content.read()),
                "arguments": request.args,
                "length": headers.getRawHeaders("content-length"),
                "from": headers.getRawHeaders("x-forwarded-for"),
                "coding": headers.getRawHeaders("transfer-encoding"),
            }
        )
        return b"served"


class Wire(StringTransport):
    """A connection with the attribute `client`, from which Evennia reads the address."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self.client = (address, 54321)

    def getPeer(self) -> IPv4Address:
        return IPv4Address("TCP", *self.client)


class Web:
    """A web port with limited bodies, and one connection to it."""

    def __init__(self, address: str = "192.168.1.1") -> None:
        from evennia_ai.web.bodies import BoundedRequest

        self.page, self.clock = Echo(), Clock()
        site = Site(self.page, requestFactory=BoundedRequest, reactor=self.clock)
        self.wire = Wire(address)
        self.channel = site.buildProtocol(None)
        self.channel.makeConnection(self.wire)

    def gets(self, *pieces: bytes) -> bytes:
        """Return the answer to these bytes."""
        for piece in pieces:
            self.channel.dataReceived(piece)
        return self.wire.value()


@pytest.fixture
def web(db: None) -> Iterator[Web]:
    yield Web()


def head(length: int | None, more: bytes = b"") -> bytes:
    size = b"Transfer-Encoding: chunked" if length is None else b"Content-Length: %d" % length
    return b"POST /page HTTP/1.1\r\nHost: localhost\r\n%s%s\r\n\r\n" % (more, size)


def cookie_of_somebody() -> bytes:
    from django.contrib.auth import SESSION_KEY
    from django.contrib.sessions.backends.db import SessionStore

    session = SessionStore()
    session[SESSION_KEY] = "1"
    session.create()
    return f"Cookie: {settings.SESSION_COOKIE_NAME}={session.session_key}\r\n".encode()


def test_body_within_the_limit_is_served(web: Web) -> None:
    assert web.gets(head(1_000_000), b"x" * 1_000_000).endswith(b"served")
    assert web.page.served[0]["size"] == 1_000_000


@pytest.mark.parametrize(
    "more",
    [
        b"",
        FORM,
        b"Expect: 100-continue\r\n",
        b"Cookie: sessionid=abcdefghijklmnopqrstuvwxyz012345\r\n",
        b"Cookie: sessionid=\xff\xfe\r\n",
        b"Cookie: sessionid=\r\n",
        b"Content-Type: multipart/form-data; boundary=x\r\n",
    ],
)
def test_announced_body_is_refused_before_it_is_kept(web: Web, more: bytes) -> None:
    answer = web.gets(head(300_000_000, more))
    assert answer.startswith(b"HTTP/1.1 413 ") and b"1,000,000 bytes" in answer
    assert answer.count(b"HTTP/1.1") == 1, "the client is not asked to go on"
    assert web.gets(*[b"x" * 65_536] * 40) == answer
    assert web.page.served == []


def test_chunked_body_is_refused_as_soon_as_it_is_too_large(web: Web) -> None:
    chunk = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
    web.gets(head(None), *[chunk] * 15)
    assert web.wire.value() == b""
    assert web.gets(chunk).startswith(b"HTTP/1.1 413 ")
    assert b"served" not in web.gets(*[chunk] * 50, b"0\r\n\r\n")
    assert web.page.served == []
    assert web.wire.disconnecting


def test_connection_is_closed_some_seconds_after_a_refusal(web: Web) -> None:
    web.gets(head(300_000_000))
    assert not web.wire.disconnecting, "a browser that sends would not read the answer"
    web.clock.advance(5.0)
    assert web.wire.disconnecting


def test_refused_body_that_ends_ends_the_connection(web: Web) -> None:
    web.gets(head(1_000_001), b"x" * 1_000_001)
    assert web.wire.disconnecting
    assert web.page.served == []


def test_body_of_a_logged_in_client_may_contain_a_card(web: Web) -> None:
    from evennia_ai.services.settings.conf import conf

    most = conf().card_limits.file_bytes + 100_000
    cookie = cookie_of_somebody()
    assert web.gets(head(2_000_000, cookie), b"x" * 2_000_000).endswith(b"served")
    assert b"413" in Web().gets(head(most + 1, cookie))
    other = Web()
    other.gets(head(None, cookie), *[b"10000\r\n" + b"x" * 65_536 + b"\r\n"] * 40, b"0\r\n\r\n")
    assert other.page.served[0]["size"] == 40 * 65_536


def test_chunked_body_is_passed_on_with_its_length(web: Web) -> None:
    web.gets(head(None, FORM), b"3\r\na=b\r\n0\r\n\r\n")
    (served,) = web.page.served
    assert (served["length"], served["coding"], served["arguments"]) == (
        ["3"],
        None,
        {b"a": [b"b"]},
    )


def test_large_form_is_not_parsed_in_the_reactors_thread(web: Web) -> None:
    web.gets(head(70_000, FORM), b"a=b&" * 17_500)
    (served,) = web.page.served
    assert (served["method"], served["arguments"]) == (b"POST", {})


@override_settings(WEBCLIENT_ENABLED=True, WEBSOCKET_CLIENT_ENABLED=True)
def test_bodies_are_limited_at_all_web_ports(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    from evennia.server.service import EvenniaServerService

    from evennia_ai.web.bodies import BoundedRequest

    monkeypatch.setattr(EvenniaServerService, "sqlite3_prep", lambda _: None)
    assert PLUGIN in settings.SERVER_SERVICES_PLUGIN_MODULES
    portal, server = evennias_portal(), evennias_server()
    server.register_webserver()
    for service in (portal, server):
        service.register_plugins()
        sites = [one for one in factories(service).values() if isinstance(one, Site)]
        assert sites
        assert {one.requestFactory for one in sites} == {BoundedRequest}


def test_check_warns_of_a_game_without_limits_for_bodies() -> None:
    nodelay = "evennia_ai.web.nodelay"
    assert ids(PORTAL_SERVICES_PLUGIN_MODULES=[nodelay]) == ["evennia_ai.W027"]
    assert ids(PORTAL_SERVICES_PLUGIN_MODULES=[nodelay], WEBSERVER_ENABLED=False) == []
    looking = "tests.npc.test_web_origins.LookingWebSocket"
    assert ids(WEBSOCKET_PROTOCOL_CLASS=looking) == ["evennia_ai.W028"]
    assert ids(WEBSOCKET_PROTOCOL_CLASS=looking, WEBSOCKET_CLIENT_ENABLED=False) == []


@pytest.mark.parametrize(
    ("peer", "said", "told"),
    [
        ("203.0.113.9", b"", "203.0.113.9"),
        ("203.0.113.9", b"X-Forwarded-For: 10.0.0.7\r\n", "203.0.113.9"),
        ("127.0.0.1", b"X-Forwarded-For: 203.0.113.9\r\n", "203.0.113.9"),
    ],
    ids=["nothing said", "a client lies", "a web server in front"],
)
def test_page_gets_the_real_address_of_a_client_that_forges_a_header(
    db: None, peer: str, said: bytes, told: str
) -> None:
    web = Web(peer)
    web.gets(head(1, said), b"x")
    assert web.page.served[0]["from"] == [told]
