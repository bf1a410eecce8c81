"""Test `make play WORKERS=2` on a real PostgreSQL, and a worker that is killed during its job."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from server import workers
from server.evennia_process import Evennia
from server.newcomer import play_with_workers, read_demo
from tests.acceptance.games import logged_in, logs_of, shown, untouched_game
from tests.cli.processes import environment, evennia_ai
from tests.store.postgres import shared_cluster

pytestmark = [pytest.mark.server, pytest.mark.service, pytest.mark.minutes(3)]

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = """
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
EVENNIA_AI_COOLDOWN_SECONDS = 0.0
if os.environ.get("EVENNIA_AI_DEMO_WORKERS"):
    EVENNIA_AI_PROFILES["notes"]["script"] = "world.slow_notes.notes"
    EVENNIA_AI_WORKERS["stalled_seconds"] = 2
"""
SLOW_NOTES = """
from evennia_ai.services.llm.clients.scripted import ScriptedReply
from world import demo_notes


def notes(request):
    return ScriptedReply(text=demo_notes.notes(request), delay_seconds=4)
"""
SECONDS = 180
Column = Callable[[str], list[str]]


@contextmanager
def worker(name: str, file: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a worker that gets the game only from a worker file."""
    with (file.parent / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "evennia_ai.cli", "worker", str(file), "--name", name],
            cwd=ROOT, env=environment(), stdout=log, stderr=log,
        )  # fmt: skip
    try:
        yield process
    finally:
        process.terminate()
        process.wait(SECONDS)


def until(what: str, is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + SECONDS
    while not is_so():
        assert time.monotonic() < end, f"not within {SECONDS} s: {what}"
        time.sleep(0.2)


@pytest.fixture
def game(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Evennia, Column]]:
    """The demo game with workers, in a database of its own."""
    cluster = shared_cluster(tmp_path)
    monkeypatch.setenv(workers.ADDRESS, cluster.make("by_workers"))
    monkeypatch.setenv(workers.DEMO, "")
    made = untouched_game(tmp_path / "game", settings=SETTINGS)
    (made.root / "world" / "slow_notes.py").write_text(SLOW_NOTES, encoding="utf-8")
    yield made, lambda query: [one for (one,) in cluster.rows("by_workers", query)]
    workers.stop(made.root)
    made.end()


def test_workers_store_memories_and_redo_the_job_of_a_killed_worker(game, tmp_path, capsys):
    evennia, column = game
    play_with_workers(evennia, 2)
    said = capsys.readouterr().out
    assert "Background work: 2 workers" in said
    assert 'Tamsin said: "Oren, why did the night ferry to Saltholm stop running?"' in said
    workers.stop(evennia.root)
    assert column("SELECT name FROM evennia_ai_worker") == []

    file = tmp_path / "worker.json"
    written = evennia_ai("worker-file", str(file), "--game", str(evennia.root))
    assert written.status == 0, written.err
    with logged_in(evennia, *read_demo(evennia.root / "world" / "build_demo.py").player) as player:
        shown(player, "say to oren I fear the eel since I was a child.", until='Oren .*says?, "')
        with worker("first", file) as first:
            job = "SELECT status::text FROM procrastinate_jobs"
            until("it has the job", lambda: "doing" in column(job))
            first.kill()
        # The killed worker's job is done again, or lapses if a newer job replaces it.
        memory = "SELECT text FROM evennia_ai_memory"
        with worker("second", file):
            until("it is learnt", lambda: any("I fear the eel" in one for one in column(memory)))
    assert column("SELECT state FROM evennia_ai_proposal WHERE worker = 'first'") == []
    assert set(column("SELECT state FROM evennia_ai_proposal")) <= {"applied", "lapsed"}
    assert "Traceback" not in logs_of(evennia)
