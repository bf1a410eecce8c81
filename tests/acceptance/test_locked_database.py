"""Test a real server whose database another process has locked: commands still work.

A second test checks the lock that keeps other processes from resetting the write-ahead log.
"""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from server.evennia_process import Evennia
from tests.acceptance.games import (
    DATABASE,
    builder_beside_npc,
    copied_game,
    logs_of,
    rows_of,
    shown,
    started,
)
from tests.services.llm.clients.stub_server import StubServer, answers

pytestmark = pytest.mark.server

LOCKS = Path("/proc/locks")
WAITS = "another process has locked the database; waiting"
GOES_ON = "the database is not locked any more"


@pytest.fixture(scope="module")
def stub() -> Iterator[StubServer]:
    server = StubServer()
    yield server
    server.close()


@pytest.fixture(scope="module")
def game(stub: StubServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evennia]:
    settings = f"""
EVENNIA_AI_BASE_URL = {stub.base_url!r}
EVENNIA_AI_MODEL = "tiny"
EVENNIA_AI_COOLDOWN_SECONDS = 0.0
DATABASES["default"]["OPTIONS"]["timeout"] = 1
"""
    evennia = copied_game(tmp_path_factory.mktemp("game"), settings=settings)
    with started(evennia):
        yield evennia


@contextmanager
def locked(game: Evennia) -> Iterator[None]:
    """Lock the database from another connection during the block."""
    with closing(sqlite3.connect(game.root / DATABASE, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield
        other.execute("ROLLBACK")


def turns(game: Evennia) -> dict[str, int]:
    return dict(rows_of(game, "SELECT state, count(*) FROM evennia_ai_turn GROUP BY state"))


def test_npc_answers_after_the_lock_and_commands_work_during_the_lock(game, stub):
    stub.behaves(answers("The tide turns at nine."))
    with builder_beside_npc(game) as connection:
        asked = len(stub.requests)
        with locked(game):
            connection.send("say Oren, what of the tide?")
            connection.wait_for('You say, "Oren, what of the tide')
            for _ in range(3):
                assert "Oren" in shown(connection, "look", until="Oren")
            connection.send("note oren = Nobody hears this.")
            refused = connection.wait_for("(?s)nothing was written.*locked", seconds=60)
            assert "Traceback" not in refused
            assert len(stub.requests) == asked  # no request before the commit of the event
        connection.wait_for('Oren says, "The tide turns at nine."', seconds=60)
        assert connection.text.count("The tide turns at nine.") == 1
    assert len(stub.requests) == asked + 1
    assert turns(game) == {"done": 1}
    log = logs_of(game)
    assert log.index(WAITS) < log.index(GOES_ON)


@pytest.mark.skipif(not LOCKS.exists(), reason="locks are looked up in /proc/locks")
def test_daemonised_server_holds_the_sqlite_read_lock(game):
    """Without this lock, the next process that opens the database resets the log."""
    shared = (game.root / f"{DATABASE}-shm").stat().st_ino
    held = re.findall(rf"POSIX +ADVISORY +READ +(\d+) +\S+:{shared} ", LOCKS.read_text())
    server = (game.root / "server" / "server.pid").read_text(encoding="utf-8").strip()
    assert server in held
