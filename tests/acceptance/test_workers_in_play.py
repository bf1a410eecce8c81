"""A real game on PostgreSQL, over telnet: workers observe what is said, and one is killed."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from server.evennia_process import Evennia
from server.newcomer import read_demo
from tests.acceptance.games import copied_game, logged_in, logs_of, shown, started
from tests.cli.processes import environment, evennia_ai
from tests.store.postgres import shared_cluster
from tests.unchecked import UNCHECKED

pytestmark = [pytest.mark.server, pytest.mark.service, pytest.mark.minutes(2)]

ROOT = Path(__file__).resolve().parents[2]
STALLED_SECONDS = 2
SCRIPT = """
repeat: true
replies:
  - when: Note at most
    reply: '{"observations": [{"text": "Anna fears the eel.", "about": "Anna", "importance": 8}]}'
    delay_seconds: 4
  - As the tide has it.
"""
ON_SQLITE = """
EVENNIA_AI_COOLDOWN_SECONDS = 0.0
EVENNIA_AI_PROFILES = {"default": {"client": "scripted", "script": "world/workers.yaml"}}
EVENNIA_AI_MODEL_ROLES = {"summariser": ["default"]}
EVENNIA_AI_MEMORY = {"after_messages": 4}
"""
BY_WORKERS = f"""
INSTALLED_APPS = [*INSTALLED_APPS, "procrastinate.contrib.django"]
EVENNIA_AI_WORKERS = {{"queue": "procrastinate", "stalled_seconds": {STALLED_SECONDS}}}
"""
MEMORIES = "SELECT text FROM evennia_ai_memory"
PROPOSALS = "SELECT state FROM evennia_ai_proposal"


def said(*words: str) -> str:
    """What a command of ours prints."""
    called = evennia_ai(*words)
    assert called.status == 0, called.err
    return called.out


@contextmanager
def worker(name: str, file: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A worker that knows the game by its file alone."""
    with (file.parent / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "evennia_ai.cli", "worker", str(file), "--name", name],
            cwd=ROOT, env=environment(), stdout=log, stderr=log,
        )  # fmt: skip
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)


def until(what: str, is_so: object, *, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not is_so():  # type: ignore[operator]
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.2)


@pytest.fixture
def game(tmp_path: Path) -> Iterator[tuple[Evennia, object]]:
    """The demo game, moved to a database of its own, where its tables and the queue's are."""
    cluster = shared_cluster(tmp_path)
    root = tmp_path / "game"
    made = copied_game(root, settings=ON_SQLITE)
    made.prepare()
    (root / "world" / "workers.yaml").write_text(SCRIPT, encoding="utf-8")
    address = cluster.make("by_workers")
    said("move", str(root), "--to", address)
    with (root / "server" / "conf" / "settings.py").open("a", encoding="utf-8") as settings:
        settings.write(f'{BY_WORKERS}DATABASES = database("{address}")\n')
    migrated = subprocess.run(
        [sys.executable, "-m", "django", "migrate", "--settings", "server.conf.settings"],
        cwd=root,
        env=environment(PYTHONPATH=os.pathsep.join([str(UNCHECKED), str(root)])),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert migrated.returncode == 0, migrated.stderr
    with started(made):
        yield made, lambda query: [one for (one,) in cluster.rows("by_workers", query)]


def test_workers_observe_what_was_said_and_one_that_is_killed_is_stood_in_for(game, tmp_path):
    evennia, column = game
    file = tmp_path / "worker.json"
    said("worker-file", str(file), "--game", str(evennia.root))
    demo = read_demo(evennia.root / "world" / "build_demo.py")
    with logged_in(evennia, *demo.player) as player:
        for line in ("Is it the eel again?", "I fear the eel, Oren.", "Take me over the river."):
            shown(player, f"say to oren {line}", until="As the tide has it")

        with worker("first", file) as first:
            until(
                "it has the job", lambda: "doing" in column("SELECT status FROM procrastinate_jobs")
            )
            first.kill()
            assert column(PROPOSALS) == []
        assert shown(player, "say to oren Are you there?", until="As the tide has it")
        with worker("second", file):
            until("it is learnt", lambda: column(MEMORIES) == ["Anna fears the eel."], seconds=90)

    with logged_in(evennia, *demo.builder) as builder:
        assert "Anna fears the eel." in shown(builder, "ai/memory oren", until="eel")
        until("it is shown", lambda: "Work beside speaking" in shown(builder, "ai", until="NPC"))
    # What the dead one had is done again, or lapses where newer work waited for it.
    states = column(PROPOSALS)
    assert states.count("applied") == 1
    assert set(states) <= {"applied", "lapsed"}
    assert "Traceback" not in logs_of(evennia)
