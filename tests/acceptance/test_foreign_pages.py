"""Test that web pages of other sites cannot use the game through a player's browser."""

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
    """The game's response to a request."""

    status: int
    text: str


@pytest.fixture(scope="module")
def game(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evennia]:
    """A game with generated passwords, started by a user whose umask lets others read files."""
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
    """Return the response of the game's web server to a request from a page of `origin`."""
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
def test_websocket_is_refused_for_pages_of_other_sites(game: Evennia, origin: str) -> None:
    with pytest.raises(RefusedError) as refused:
        WebClient(HOST, game.ports.websocket, origin=origin)

    assert " 403 " in str(refused.value) or " 400 " in str(refused.value)
    assert "connect <name>" not in str(refused.value)


def test_refused_origin_is_logged(game: Evennia) -> None:
    with pytest.raises(RefusedError):
        WebClient(HOST, game.ports.websocket, origin="http://logged.example")

    assert "refused a page of 'http://logged.example'" in logs_of(game)


def test_websocket_is_accepted_for_pages_of_the_game(game: Evennia, demo: Demo) -> None:
    for origin in own_pages(game):
        with WebClient(HOST, game.ports.websocket, origin=origin) as client:
            client.wait_for("connect <name> <password>")
            client.send("connect {} {}".format(*demo.player))
            client.wait_for("You become|Exits", seconds=60)


def test_websocket_is_accepted_without_an_origin_header(game: Evennia) -> None:
    with WebClient(HOST, game.ports.websocket) as client:
        client.wait_for("connect <name> <password>")


@pytest.mark.parametrize("origin", STRANGERS)
def test_ajax_fallback_is_refused_for_pages_of_other_sites(game: Evennia, origin: str) -> None:
    form = {"mode": "init", "csessid": "x", "cuid": "y", "browserstr": "z"}
    answer = asked(game, "/webclientdata", origin=origin, form=form)

    assert (answer.status, "does not belong to this game" in answer.text) == (403, True)


def test_ajax_fallback_answers_pages_of_the_game(game: Evennia) -> None:
    form = {"mode": "init", "csessid": "x", "cuid": "y", "browserstr": "z"}
    answer = asked(game, "/webclientdata", origin=own_pages(game)[0], form=form)

    assert json.loads(answer.text)["csessid"] == "x"


def test_ajax_fallback_answers_405_to_a_get_request(game: Evennia) -> None:
    assert asked(game, "/webclientdata").status == 405
    assert "Traceback" not in logs_of(game)


@pytest.mark.parametrize("path", _WHERE)
def test_website_is_refused_for_pages_of_other_sites(game: Evennia, path: str) -> None:
    answers = {origin: asked(game, path, origin=origin) for origin in STRANGERS}

    assert {answer.status for answer in answers.values()} == {403}
    assert all("does not belong to this game" in answer.text for answer in answers.values())


def test_website_answers_pages_of_the_game(game: Evennia) -> None:
    assert [asked(game, "/", origin=origin).status for origin in own_pages(game)] == [200, 200]


def test_rest_api_refuses_basic_authentication(game: Evennia, demo: Demo) -> None:
    login = base64.b64encode(":".join(demo.superuser).encode()).decode()

    assert asked(game, "/api/objects/", login=login).status == 403


@pytest.mark.parametrize(
    "login",
    ["admin harbour-admin-1", "builder harbour-builder-1", "anna harbour-player-1"],
)
def test_former_public_passwords_are_refused_at_login(game: Evennia, login: str) -> None:
    with WebClient(HOST, game.ports.websocket) as client:
        client.wait_for("connect <name> <password>")
        client.send(f"connect {login}")
        client.wait_for("incorrect")


def test_superuser_logs_in_with_the_generated_password(game: Evennia, demo: Demo) -> None:
    with WebClient(HOST, game.ports.websocket) as client:
        client.wait_for("connect <name> <password>")
        client.send("connect {} {}".format(*demo.superuser))
        client.wait_for("You become|Exits", seconds=60)


def posted(game: Evennia, *lines: str, address: int, body: int) -> bytes:
    """Return what the telnet port answers to a form that a web page sends.

    `address` and `body` are numbers of filler letters in the address and before the lines, so
    that a browser would send the request in several packets.
    """
    sent = b"x" * body + b"\r\n" + "".join(f"{line}\r\n" for line in lines).encode()
    head = (
        f"POST /{'a' * address} HTTP/1.1\r\nHost: {HOST}:{game.ports.telnet}\r\nOrigin: http://evil.example\r\n"
        f"Content-Type: text/plain\r\nContent-Length: {len(sent)}\r\n\r\n"
    )
    with socket.create_connection((HOST, game.ports.telnet), timeout=300) as browser:
        answer = bytearray()
        with suppress(ConnectionError):  # the game closes the connection
            browser.sendall(head.encode() + sent)
            while more := browser.recv(65_536):
                answer += more
        return bytes(answer)


@pytest.mark.parametrize(("address", "body"), [(0, 0), (0, 400_000), (70_000, 0), (140_000, 9)])
def test_http_post_to_the_telnet_port_runs_no_command(
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


def test_link_markup_typed_in_the_web_client_is_removed(game: Evennia, demo: Demo) -> None:
    with WebClient(HOST, game.ports.websocket) as client:
        client.wait_for("connect <name> <password>")
        client.send("say " + "|lc|lt" * 5_000)
        client.wait_for("too long|longer")
        client.tell("echo", "|lc|lt" * 800)
        client.wait_for("Echo returns")
        assert "|l" not in client.text


def test_files_of_the_game_are_readable_only_by_their_owner(game: Evennia) -> None:
    server = game.root / "server"
    written = [
        game.root / FILE,
        server / "conf" / "secret_settings.py",
        *server.glob("*.db3*"),
        *(server / "logs").iterdir(),
    ]

    assert {path.name for path in written} >= {"evennia.db3", "server.log", "portal.log"}
    assert [path for path in (*written, server / "logs") if is_open_to_others(path)] == []
