"""A real PostgreSQL for tests: a cluster of its own on loopback, which ends with the test.

It needs Debian's package `postgresql` and `psycopg`. Where they are missing, the tests are skipped
with the reason, and in continuous integration they fail with it. PostgreSQL refuses to run as root,
so root starts it as somebody else.
"""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Self

from tests.absent import absent, need

PROGRAMS = Path("/usr/lib/postgresql")
USER = "evennia_ai"
SOMEBODY = ("postgres", "nobody")
QUICK = "-c fsync=off -c synchronous_commit=off -c full_page_writes=off -c shared_buffers=32MB"


class Postgres:
    """A running cluster; `port` on 127.0.0.1 takes the user `USER` without a password."""

    def __init__(self) -> None:
        self._programs = _require_postgres()
        self._runner, owner = _runner()
        self._folder = Path(tempfile.mkdtemp(prefix="evennia_ai_postgres_"))
        if owner is not None:
            os.chown(self._folder, owner, -1)
        self.port = _free_port()

    def __enter__(self) -> Self:
        try:
            self._run("initdb", "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C", "-N")
            where = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories=''"
            log = str(self._folder / "log")
            self._run("pg_ctl", "start", "-w", "-t", "60", "-l", log, "-o", f"{where} {QUICK}")
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._run("pg_ctl", "stop", "-w", "-m", "immediate")
        shutil.rmtree(self._folder, ignore_errors=True)

    def _run(self, program: str, *words: str) -> None:
        command = [*self._runner, self._programs / program, "-D", self._folder / "data", *words]
        # A server that is started holds on to whatever output it was given.
        with (self._folder / "said").open("a+") as said:
            done = subprocess.run(
                [str(word) for word in command],
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                check=False,
            )
            said.seek(0)
            assert done.returncode == 0, f"{program} failed:\n{said.read()}"


def _require_postgres() -> Path:
    """The folder of the newest PostgreSQL's programs; skips or fails where there is none."""
    found = sorted(PROGRAMS.glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    if not found:
        absent(
            "no PostgreSQL is asked", why="it is not installed; type: apt-get install postgresql"
        )
    need("psycopg", undone="no PostgreSQL is asked")
    return found[-1].parent


def _runner() -> tuple[list[str], int | None]:
    """What stands before a command so that it does not run as root, and as whom it runs then."""
    if os.getuid() != 0:
        return [], None
    known = {entry.pw_name: entry.pw_uid for entry in pwd.getpwall()}
    name = next(name for name in SOMEBODY if name in known)
    return ["runuser", "-u", name, "--"], known[name]


def _free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])
