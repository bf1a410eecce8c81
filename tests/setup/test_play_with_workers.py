"""Test the parts of `make play WORKERS=2` that need no running game."""

import os
import subprocess
import sys

import pytest

from server import newcomer, postgres, workers
from server.evennia_process import Evennia
from server.installation import Installation
from server.ports import Ports
from server.steps import StepError
from tests.absent import absent


def test_no_workers_are_wanted_without_the_variable():
    assert workers.wanted({}) == workers.wanted({"WORKERS": ""}) == 0
    assert workers.wanted({"WORKERS": "2"}) == 2


@pytest.mark.parametrize("text", ["two", "-1", "17", "1.5", "²"])
def test_invalid_number_of_workers_is_refused(text):
    with pytest.raises(ValueError, match=r"WORKERS is .* from 0 to 16"):
        workers.wanted({"WORKERS": text})


def test_running_game_without_workers_is_not_given_workers(tmp_path, monkeypatch):
    monkeypatch.setattr(newcomer, "is_running", lambda root: True)
    game = Evennia(
        installation=Installation(root=tmp_path, programs=tmp_path),
        ports=Ports.from_environment({}),
    )
    with pytest.raises(StepError, match="runs without workers; `make stop` first"):
        newcomer.play_with_workers(game, 2)


def test_process_of_another_program_does_not_count_as_a_worker(tmp_path):
    (tmp_path / "server").mkdir()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as stranger:
        (tmp_path / "server" / "worker-w1.pid").write_text(str(stranger.pid))
        assert workers.running(tmp_path) == {}
        workers.stop(tmp_path)
        assert stranger.poll() is None
        stranger.kill()
    assert not list((tmp_path / "server").glob("*.pid"))


def test_socket_folder_of_another_user_is_refused(tmp_path, monkeypatch):
    if postgres.programs() is None:
        absent("no cluster is begun", why="PostgreSQL is not installed")
    monkeypatch.delenv(workers.ADDRESS, raising=False)
    monkeypatch.setenv(workers.DEMO, "")
    monkeypatch.setattr(workers.tempfile, "gettempdir", lambda: str(tmp_path))
    folder = workers._socket_folder(tmp_path)
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(StepError, match="belongs to another user; remove it"):
        workers.keep_in_postgres(tmp_path)
    assert workers.ADDRESS not in os.environ
