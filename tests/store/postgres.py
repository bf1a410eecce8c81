"""A PostgreSQL server for tests: one cluster on loopback for a whole run.

It needs Debian's package `postgresql` and `psycopg`. If they are missing, the tests are skipped
with the reason; in continuous integration they fail. The workers of pytest-xdist share the cluster.
A keeper, which is this module run as a program, runs it while the process that began the run is
alive.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Self

from server import postgres
from server.postgres import USER
from tests.absent import absent, need
from tests.once_a_run import made_once

ROOT = Path(__file__).parents[2]
QUICK = "-c fsync=off -c synchronous_commit=off -c full_page_writes=off -c shared_buffers=32MB"
_UNDONE = "no PostgreSQL is asked"
_START_SECONDS = 60
_keepers: list[subprocess.Popen[bytes]] = []
"""Keepers that this process has started. It does not wait for them, because they end after it."""


class Cluster:
    """A running cluster. At `port` of 127.0.0.1 it accepts the user `USER` without a password."""

    def __init__(self, port: int) -> None:
        self.port = port

    def address(self, name: str) -> str:
        """Return the address of a database of this cluster, for a game's settings."""
        return f"postgres://{USER}@127.0.0.1:{self.port}/{name}"

    def make(self, name: str, *, like: str = "template0", more: str = "") -> str:
        """Create a database as a copy of another one, and return its address."""
        self.do(f'CREATE DATABASE "{name}" TEMPLATE "{like}" {more}')
        return self.address(name)

    def do(self, statement: str) -> None:
        """Run a statement that concerns the cluster and no single database."""
        self.rows("postgres", statement)

    def rows(self, name: str, query: str) -> list[tuple[Any, ...]]:
        """Run a query in a database with autocommit, and return the rows."""
        import psycopg

        with psycopg.connect(self.address(name), autocommit=True) as connection:
            found = connection.execute(query)
            return found.fetchall() if found.description else []


def shared_cluster(beside: Path) -> Cluster:
    """Return the cluster of this run. Skip or fail the test if there can be none.

    `beside` is any folder that pytest gave this worker.
    """
    _require_postgres()
    folder = made_once("postgres", _keep, beside=beside)
    return Cluster(int((folder / "port").read_text(encoding="utf-8")))


def _keep(folder: Path) -> None:
    """Start a keeper, and wait until its cluster accepts connections."""
    begun_by = os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
    port = _free_port()
    with (folder / "said").open("w") as said:
        keeper = subprocess.Popen(
            [sys.executable, "-m", __name__, str(port), str(begun_by)],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
    _keepers.append(keeper)
    until = time.monotonic() + _START_SECONDS
    while "ready" not in (told := (folder / "said").read_text(encoding="utf-8")):
        assert time.monotonic() < until, told
        assert "Error" not in told, told
        time.sleep(0.1)
    (folder / "port").write_text(str(port), encoding="utf-8")


class Postgres:
    """A separate cluster for one `with` block, on a port of loopback."""

    def __init__(self, port: int | None = None) -> None:
        _require_postgres()
        self.port = _free_port() if port is None else port
        self._folder = Path(tempfile.mkdtemp(prefix="evennia_ai_postgres_"))
        where = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories=''"
        self._server = postgres.Postgres(self._folder / "own", options=f"{where} {QUICK}")
        if self._server.owner is not None:
            os.chown(self._folder, self._server.owner, -1)

    def __enter__(self) -> Self:
        try:
            self._server.start()
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def start(self) -> None:
        """Start the server, possibly again."""
        self._server.start()

    def stop(self) -> None:
        """Stop the server at once, as after a crash of the machine."""
        self._server.stop(mode="immediate")


def _require_postgres() -> None:
    """Skip or fail the test if there is no PostgreSQL."""
    if postgres.programs() is None:
        absent(_UNDONE, why="it is not installed; type: apt-get install postgresql")
    need("psycopg", undone=_UNDONE)


def _free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


def main(port: int, begun_by: int) -> None:
    """Keep a cluster running while a process is alive."""
    with Postgres(port):
        print("ready", flush=True)
        while _is_alive(begun_by):
            time.sleep(1)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
