"""Web pages of strangers in a player's browser, and other uninvited requests to our ports.

A request of a stranger's page is refused before anything of it is read. A password that was once
public lets nobody in.
"""

import base64
import socket
import urllib.error
import urllib.request
from collections.abc import Mapping
from urllib.parse import urlencode, urlsplit

import pytest

from server.ports import HOST
from server.steps import StepError
from tests.acceptance.crawling import Crawler
from tests.acceptance.games import logs_of
from tests.acceptance.test_foreign_pages import STRANGERS
from tests.acceptance.web_client import RefusedError, WebClient
from tests.hostile.audit import audit
from tests.hostile.harbour import Harbour

pytestmark = pytest.mark.server

ORIGINS = (
    *STRANGERS,
    *("http://localhost.evil.example", "http://evil.example#http://localhost"),
    *("http://localhost@evil.example", "http://evil.example/localhost", "HTTP://LOCALHOST.:1"),
    *("chrome-extension://abc", "data:text/html,x", "javascript:alert(1)", "http://[::1]", "*"),
    *("http://127.0.0.1.nip.io", "http://0.0.0.0", "http://2130706433", "//localhost", " null"),
)
PATHS = (
    *("/", "/webclient/", "/api/objects/", "/api/accounts/", "/admin/", "/admin/login/"),
    *("/auth/login/", "/characters/", "/help/"),
)
ODD = (
    *("/ai/npc/2~4/", "/ai/npc/2~/", "/ai/npc/~4/", "/ai/npc/2~4~5/", "/ai/npc/2%7E4/turn/1/"),
    *("/ai/npc/2~4/next/", "/ai/npc/2~4/pause/", "/ai/npc/2~%0a/", "/ai/npc/2~..%2f4/turn/1/"),
    *("/ai/npc/2~4/turn/99999999999999999999/", "/ai/npc/2~4/diff/1/1/?with=x", "/ai/last/?npc=~"),
    *("/ai/live/?format=json%00", "/ai/npc/2/next/?say=%00%1b%5b2J", "/ai/lore/%0a/"),
    *("/ai/npc/99999999999999999999/next/", "/ai/cards/%00/1/", "/ai/kb/-/page/%0d%0a/"),
    "/ai/lore//x/",
)
"""Addresses of branches, of the next prompt and with odd names. None of them may fail."""
LOGIN = "/auth/login/"
LOGGED_OUT = 302
FORM = {"mode": "init", "csessid": "x", "cuid": "y", "browserstr": "z"}
KNOWN = (
    # The password that tests give to the superuser.
    *("builder harbour-builder-1", "anna harbour-player-1"),
    *("admin admin", "admin password", "builder builder", "anna anna", "admin ", "guest"),
)
TELNET = {
    "a form that types": b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n\r\n",
    "a page that asks": b"GET / HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n\r\n",
    "options": b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
}


def test_hostile_texts_do_no_harm_on_web_pages(harbour: Harbour) -> None:
    harbour.scene("pages", npc="Page")
    name, password = harbour.demo.player
    with audit("pages", harbour) as subject:
        for origin in ORIGINS:
            with subject.attack(f"a websocket of {origin!r}"):
                assert is_refused(harbour, origin), "a connection was opened"
            with subject.attack(f"the fallback of {origin!r}"):
                assert asked(harbour, "/webclientdata", {"Origin": origin}, FORM) == 403
        for path in PATHS:
            with subject.attack(f"{path} by a stranger's page"):
                found = {one: asked(harbour, path, {"Origin": one}) for one in STRANGERS}
                assert {*found.values()} == {403}, found
        for who, login in (("player", (name, password)), ("superuser", harbour.demo.superuser)):
            with subject.attack(f"the {who}'s password with a request of the REST API"):
                basic = base64.b64encode(":".join(login).encode()).decode()
                assert asked(harbour, "/api/objects/", {"Authorization": f"Basic {basic}"}) == 403
        with subject.attack("another host that leads here"):
            assert asked(harbour, "/", {"Host": "rebound.example"}) in (400, 403)
        for login in KNOWN:
            with subject.attack(f"a login as {login!r}"):
                with WebClient(HOST, harbour.game.ports.websocket) as client:
                    client.wait_for("connect <name> <password>")
                    client.send(f"connect {login}")
                    read = client.wait_for_quiet(quiet_seconds=0.5)
                    assert "You become" not in read, read
        crawler = Crawler(f"http://{HOST}:{harbour.game.ports.web}", *harbour.demo.builder)
        for path in ODD:
            with subject.attack(f"{path} by somebody who is not logged in"):
                assert asked(harbour, path, {}) in (LOGGED_OUT, 404)
            with subject.attack(f"{path} by a builder"):
                seen = crawler.visit(path)
                assert seen.status in (200, 400, 404, 405), seen
                assert "Traceback" not in seen.text
                assert str(harbour.game.root) not in seen.text
        with subject.attack("an odd address that fails a page"):
            assert "evennia_ai: the page" not in logs_of(harbour.game)
        for what, head in TELNET.items():
            with subject.attack(f"telnet: {what}"):
                read = typed_by_a_page(harbour, head, f"connect {name} {password}")
                assert "You become" not in read, read


def is_refused(harbour: Harbour, origin: str) -> bool:
    try:
        with WebClient(HOST, harbour.game.ports.websocket, origin=origin):
            return False
    except (RefusedError, StepError):
        return True


def asked(
    harbour: Harbour, path: str, headers: Mapping[str, str], form: Mapping[str, str] | None = None
) -> int:
    """Return the status with which the game answers a page's request, LOGGED_OUT for its login."""
    request = urllib.request.Request(
        f"http://localhost:{harbour.game.ports.web}{path}", headers=dict(headers)
    )
    data = urlencode(form).encode() if form else None
    try:
        with urllib.request.urlopen(request, data, timeout=300) as response:
            is_login = urlsplit(response.url).path == LOGIN
            return LOGGED_OUT if is_login else int(response.status)
    except urllib.error.HTTPError as error:
        return error.code


def typed_by_a_page(harbour: Harbour, head: bytes, line: str) -> str:
    """Return the answer to a browser's request to the telnet port that contains a command line."""
    with socket.create_connection((HOST, harbour.game.ports.telnet), timeout=3) as browser:
        browser.sendall(head + f"{line}\r\nlook\r\n".encode())
        read = b""
        while more := _more(browser):
            read += more
    return read.decode(errors="replace")


def _more(browser: socket.socket) -> bytes:
    try:
        return browser.recv(65536)
    except (TimeoutError, ConnectionResetError):
        return b""
