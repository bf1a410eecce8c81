"""A real server, and a stranger's web page in the browser of who plays there."""

import base64
import json
import os
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlencode

import pytest

from server.evennia_process import Evennia
from server.logins import FILE, ONE_PASSWORD, SUPERUSER
from server.newcomer import Demo, read_demo
from server.ports import HOST
from server.telnet import Connection
from tests.acceptance.games import copied_game, logs_of, started
from tests.acceptance.web_client import RefusedError, WebClient
from tests.modes import is_open_to_others

pytestmark = pytest.mark.server

STRANGERS = (
    "http://evil.example",
    "http://localhost",
    "http://localhost:8000",
    "https://localhost",
    "null",
    "file://",
)
_WHERE = ("/", "/webclient/", "/api/objects/", "/admin/login/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the game answered to a request."""

    status: int
    text: str


@pytest.fixture(scope="module")
def game(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evennia]:
    """A game whose passwords nobody chose, of somebody whose files all may read."""
    before = os.umask(0o022)
    with pytest.MonkeyPatch.context() as patch:
        for name in (*SUPERUSER, ONE_PASSWORD):
            patch.delenv(name, raising=False)
        with started(copied_game(tmp_path_factory.mktemp("game"))) as running:
            yield running
    os.umask(before)


@pytest.fixture(scope="module")
def demo(game: Evennia) -> Demo:
    return read_demo(game.root / "world" / "build_demo.py")


def own_pages(game: Evennia) -> list[str]:
    return [f"http://{host}:{game.ports.web}" for host in ("localhost", "127.0.0.1")]


def asked(
    game: Evennia, path: str, *, origin: str | None = None, login: str = "", form: object = None
) -> Answer:
    """What the game's web server answers to a request of a page."""
    request = urllib.request.Request(f"http://localhost:{game.ports.web}{path}")
    if origin is not None:
        request.add_header("Origin", origin)
    if login:
        request.add_header("Authorization", f"Basic {login}")
    data = urlencode(form).encode() if isinstance(form, dict) else None
    try:
        with urllib.request.urlopen(request, data, timeout=300) as response:
            return Answer(status=response.status, text=response.read().decode())
    except urllib.error.HTTPError as error:
        return Answer(status=error.code, text=error.read().decode())


@pytest.mark.parametrize("origin", STRANGERS)
def test_a_strangers_page_gets_no_websocket(game: Evennia, origin: str) -> None:
    with pytest.raises(RefusedError) as refused:
        WebClient(HOST, game.ports.websocket, origin=origin)

    assert " 403 " in str(refused.value) or " 400 " in str(refused.value)
    assert "connect <name>" not in str(refused.value)


def test_the_owner_reads_in_the_log_which_page_was_refused(game: Evennia) -> None:
    with pytest.raises(RefusedError):
        WebClient(HOST, game.ports.websocket, origin="http://logged.example")

    assert "refused a page of 'http://logged.example'" in logs_of(game)


def test_a_page_of_the_game_plays_as_before(game: Evennia, demo: Demo) -> None:
    for origin in own_pages(game):
        with WebClient(HOST, game.ports.websocket, origin=origin) as client:
            client.wait_for("connect <name> <password>")
            client.send("connect {} {}".format(*demo.player))
            client.wait_for("You become|Exits", seconds=60)


def test_what_is_no_browser_names_no_page_and_plays(game: Evennia) -> None:
    with WebClient(HOST, game.ports.websocket) as client:
        client.wait_for("connect <name> <password>")


@pytest.mark.parametrize("origin", STRANGERS)
def test_a_strangers_page_gets_nothing_from_the_fallback_of_the_websocket(
    game: Evennia, origin: str
) -> None:
    form = {"mode": "init", "csessid": "x", "cuid": "y", "browserstr": "z"}
    answer = asked(game, "/webclientdata", origin=origin, form=form)

    assert (answer.status, "does not belong to this game" in answer.text) == (403, True)


def test_the_fallback_answers_a_page_of_the_game(game: Evennia) -> None:
    form = {"mode": "init", "csessid": "x", "cuid": "y", "browserstr": "z"}
    answer = asked(game, "/webclientdata", origin=own_pages(game)[0], form=form)

    assert json.loads(answer.text)["csessid"] == "x"


def test_the_fallback_says_which_requests_it_takes(game: Evennia) -> None:
    assert asked(game, "/webclientdata").status == 405
    assert "Traceback" not in logs_of(game)


@pytest.mark.parametrize("path", _WHERE)
def test_a_strangers_page_gets_nothing_from_the_site(game: Evennia, path: str) -> None:
    answers = {origin: asked(game, path, origin=origin) for origin in STRANGERS}

    assert {answer.status for answer in answers.values()} == {403}
    assert all("does not belong to this game" in answer.text for answer in answers.values())


def test_the_site_answers_its_own_pages(game: Evennia) -> None:
    assert [asked(game, "/", origin=origin).status for origin in own_pages(game)] == [200, 200]


def test_the_rest_api_takes_no_password_with_a_request(game: Evennia, demo: Demo) -> None:
    login = base64.b64encode(":".join(demo.superuser).encode()).decode()

    assert asked(game, "/api/objects/", login=login).status == 403


@pytest.mark.parametrize(
    "login",
    ["admin harbour-admin-1", "builder harbour-builder-1", "anna harbour-player-1"],
)
def test_the_passwords_that_everybody_knew_let_nobody_in(game: Evennia, login: str) -> None:
    with WebClient(HOST, game.ports.websocket) as client:
        client.wait_for("connect <name> <password>")
        client.send(f"connect {login}")
        client.wait_for("incorrect")


def test_the_superuser_logs_in_with_the_password_of_the_file(game: Evennia, demo: Demo) -> None:
    with WebClient(HOST, game.ports.websocket) as client:
        client.wait_for("connect <name> <password>")
        client.send("connect {} {}".format(*demo.superuser))
        client.wait_for("You become|Exits", seconds=60)


def posted(game: Evennia, *lines: str, address: int, body: int) -> bytes:
    """What the telnet port answers to a form of a page, which a browser sends in pieces.

    Its address and what stands before the lines have so many letters.
    """
    sent = b"x" * body + b"\r\n" + "".join(f"{line}\r\n" for line in lines).encode()
    head = (
        f"POST /{'a' * address} HTTP/1.1\r\nHost: {HOST}:{game.ports.telnet}\r\nOrigin: http://evil.example\r\n"
        f"Content-Type: text/plain\r\nContent-Length: {len(sent)}\r\n\r\n"
    )
    with socket.create_connection((HOST, game.ports.telnet), timeout=300) as browser:
        answer = bytearray()
        with suppress(ConnectionError):  # the game hangs up on it
            browser.sendall(head.encode() + sent)
            while more := browser.recv(65_536):
                answer += more
        return bytes(answer)


@pytest.mark.parametrize(("address", "body"), [(0, 0), (0, 400_000), (70_000, 0), (140_000, 9)])
def test_a_form_of_a_page_types_nothing_at_the_telnet_port(
    game: Evennia, address: int, body: int
) -> None:
    answer = posted(game, f"connect page{address} wrong", "help", address=address, body=body)

    with Connection(HOST, game.ports.telnet) as player:
        player.wait_for("connect <name> <password>")
        player.send("help")
        player.wait_for("not yet logged in")
    assert b"This port is for telnet" in answer
    assert b"not yet logged in" not in answer
    assert f"page{address}" not in logs_of(game)


def test_a_line_at_the_web_client_is_not_searched_for_links(game: Evennia, demo: Demo) -> None:
    with WebClient(HOST, game.ports.websocket) as client:
        client.wait_for("connect <name> <password>")
        client.send("say " + "|lc|lt" * 5_000)
        client.wait_for("too long|longer")
        client.tell("echo", "|lc|lt" * 800)
        client.wait_for("Echo returns")
        assert "|l" not in client.text


def test_what_the_game_writes_can_be_read_by_its_owner_alone(game: Evennia) -> None:
    server = game.root / "server"
    written = [
        game.root / FILE,
        server / "conf" / "secret_settings.py",
        *server.glob("*.db3*"),
        *(server / "logs").iterdir(),
    ]

    assert {path.name for path in written} >= {"evennia.db3", "server.log", "portal.log"}
    assert [path for path in (*written, server / "logs") if is_open_to_others(path)] == []
