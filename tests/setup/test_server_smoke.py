"""A newcomer's first minutes: a real server is started, spoken with over telnet, and stopped."""

import shutil
import socket
import sys
import urllib.request
from contextlib import ExitStack
from pathlib import Path

import pytest

from server.evennia_process import Evennia, is_running, recorded_ports
from server.installation import Installation
from server.newcomer import play
from server.ports import Ports

pytestmark = pytest.mark.server

ROOT = Path(__file__).resolve().parents[2]
GAME = ("commands", "evennia_ai", "server", "world")
MADE_BY_RUNNING = shutil.ignore_patterns(
    "__pycache__", "logs", "*.db3*", "*.pid", ".static", ".media", "secret_settings.py"
)


def _free_ports() -> Ports:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(5)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        telnet, web, websocket, web_internal, amp = (s.getsockname()[1] for s in sockets)
    return Ports(telnet=telnet, web=web, websocket=websocket, web_internal=web_internal, amp=amp)


@pytest.fixture(scope="module")
def game(tmp_path_factory):
    root = tmp_path_factory.mktemp("game")
    for name in GAME:
        shutil.copytree(ROOT / name, root / name, ignore=MADE_BY_RUNNING)
    programs = Path(sys.executable).parent
    evennia = Evennia(installation=Installation(root=root, programs=programs), ports=_free_ports())
    yield evennia
    if is_running(root):
        evennia.stop()


@pytest.fixture(scope="module")
def first(game):
    """The first exchange, and what was printed around it."""
    return play(game)


def test_the_npc_answers_as_a_client_sees_it(first):
    assert first.reply.startswith('Oren says, "')


def test_the_prompt_of_the_answer_is_shown_with_what_was_said(first):
    assert first.said.removeprefix("say ").split(", ", 1)[1] in first.prompt


def test_the_web_client_answers_on_this_machine(game, first):
    address = f"http://localhost:{game.ports.web}/webclient/"
    with urllib.request.urlopen(address, timeout=20) as response:
        assert response.status == 200


def test_playing_again_uses_the_running_game_and_says_how_to_get_in(game, first, capsys):
    play(game)

    printed = capsys.readouterr().out
    assert "The game is running already" in printed
    assert f"telnet localhost {game.ports.telnet}" in printed
    assert f"http://localhost:{game.ports.web}/webclient/" in printed
    assert "anna / harbour-player-1" in printed


def test_stopping_ends_every_process_and_a_new_start_loses_nothing(game, first):
    game.stop()
    assert not is_running(game.root)
    assert recorded_ports(game.root) is None

    again = play(game)

    assert "ferry" in again.prompt
    game.stop()
    assert not is_running(game.root)
