"""Run acts in game processes that may be killed, and collect what each process reports."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.store.postgres import Cluster

ROOT = Path(__file__).resolve().parents[2]

SILENT_SECONDS = 300
"""The longest silence of a process on a busy machine, for example during migrations."""

Act = Sequence[Any]


@dataclass(slots=True, kw_only=True)
class Life:
    """The lines that one process reported from its start until it ended or was killed."""

    told: list[dict[str, Any]] = field(default_factory=list)

    def all(self, what: str) -> list[Any]:
        """Return the values that were reported under this name, in order."""
        return [line[what] for line in self.told if what in line]

    @property
    def is_over(self) -> bool:
        """True if the process finished its job and was not killed."""
        return bool(self.all("ended"))

    @property
    def steps(self) -> list[str]:
        return self.all("what")

    @property
    def stored(self) -> list[list[Any]]:
        """The committed records, each with ID, hash, role and body."""
        return [record for records in self.all("stored") for record in records]

    @property
    def heard(self) -> set[str]:
        """What players heard the NPC say, without poses."""
        lines = (line for line in self.all("read") if "Oren" in line[:8] and '"' in line)
        return {line.partition('"')[2].rstrip('"') for line in lines}

    @property
    def heard_too_early(self) -> set[str]:
        """What players heard before it was committed. The NPC never repeats a reply."""
        committed: set[str] = set()
        early: set[str] = set()
        for line in self.told:
            committed |= {body for *_, body in line.get("stored", ())}
            early |= Life(told=[line]).heard - committed
        return early

    @property
    def reports(self) -> list[dict[str, Any]]:
        return self.all("report")

    @property
    def log(self) -> str:
        return "\n".join(self.all("log"))

    def before_trouble(self) -> "Life":
        """Return the part of this life before the trouble."""
        at = next((n for n, line in enumerate(self.told) if "trouble" in line), len(self.told))
        return Life(told=self.told[:at])

    def in_trouble(self) -> "Life":
        """Return the part of this life from the trouble until it was healed."""
        healed = next((n for n, line in enumerate(self.told) if "healed" in line), len(self.told))
        at = len(self.before_trouble().told)
        return Life(told=self.told[at:healed])


Database = Path | str
"""The file of an SQLite database, or the address of a PostgreSQL database."""


class Game:
    """A parent process that runs acts in child processes, with databases that they start from."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._copies = 0
        self._empty = self._place("empty")
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "tests.acceptance.doomed_process"),
                *(str(self._empty), str(folder)),
            ],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self._port = int(self._process.stdout.readline())
        self._make("empty")
        self.lives(self._empty, [["builds"]], migrates=True)

    def new(self, name: str, *, before: Sequence[Act] = ()) -> Any:
        """Make a database in which the acts `before` were played."""
        made = self._copied(self._empty, name)
        if before:
            assert self.lives(made, before).is_over
        return made

    def copy(self, database: Database) -> Any:
        """Copy a database, so that a process can be killed while it uses the copy."""
        self._copies += 1
        return self._copied(database, f"copy{self._copies}")

    def _place(self, name: str) -> Database:
        """Return the path or address of a new database."""
        return self.folder / f"{name}.db3"

    def _make(self, name: str) -> None:
        """Make a database. SQLite makes the file itself."""

    def _copied(self, database: Any, name: str) -> Database:
        """Copy a database to which no connection is open."""
        path = self.folder / f"{name}.db3"
        _copy(database, path)
        return path

    def lives(self, database: Database, acts: Sequence[Act], **job: Any) -> Life:
        """Play `acts` until they end or the process is killed."""
        with self.playing(database, acts, **job) as running:
            return running.rest()

    def is_killed(self, database: Database, acts: Sequence[Act], *, after_seconds: float) -> Life:
        """Play `acts`, and kill the process after this time, at any point of its work."""
        with self.playing(database, acts) as running:
            life = running.until("pid")
            time.sleep(after_seconds)
            with suppress(ProcessLookupError):  # the process has already ended
                os.kill(life.all("pid")[0], signal.SIGKILL)
            return running.rest()

    @contextmanager
    def playing(
        self,
        database: Database,
        acts: Sequence[Act],
        *,
        trouble: str = "nothing",
        at: int | str = 0,
        model: str = "answers",
        migrates: bool = False,
        writer: bool = True,
    ) -> Iterator["Running"]:
        """Start a child that plays `acts`. With `writer` it commits in a thread, as servers do."""
        job = {"writer": writer and not migrates, "model": model, "migrates": migrates}
        job |= {"database": str(database), "acts": list(acts), "trouble": trouble, "at": at}
        with socket.create_connection(("127.0.0.1", self._port), timeout=SILENT_SECONDS) as line:
            running = Running(line)
            running.send(json.dumps(job))
            yield running

    def close(self) -> None:
        self._process.terminate()
        self._process.stdout.close()
        self._process.wait(timeout=300)


class PostgresGame(Game):
    """A `Game` on a real PostgreSQL, which copies a database by using it as a template."""

    def __init__(self, folder: Path, cluster: Cluster) -> None:
        self._cluster = cluster
        self._prefix = folder.name
        super().__init__(folder)

    def _place(self, name: str) -> str:
        return self._cluster.address(f"{self._prefix}_{name}")

    def _make(self, name: str) -> None:
        # Called after Evennia's start, which would read tables of an existing database.
        self._cluster.make(f"{self._prefix}_{name}")

    def _copied(self, database: str, name: str) -> str:
        own, template = f"{self._prefix}_{name}", database.rpartition("/")[2]
        # PostgreSQL may not have noticed yet that the killed process closed its connection.
        self._cluster.do(_DISCONNECT.format(template))
        return self._cluster.make(own, like=template, more="STRATEGY file_copy")


_DISCONNECT = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{}'"


def _copy(database: Path, path: Path) -> None:
    """Copy an SQLite database without open connections, with its write-ahead log."""
    for ending in ("", "-wal"):
        written = database.with_name(database.name + ending)
        if written.exists():
            shutil.copyfile(written, path.with_name(path.name + ending))


class Running:
    """A connection to a child process that plays acts."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._file = line.makefile("r", encoding="utf-8")
        self._life = Life()

    def send(self, text: str = "") -> None:
        self._line.sendall(text.encode() + b"\n")

    def until(self, what: str) -> Life:
        """Read until a value is reported under this name, or until the connection ends."""
        with suppress_reset():
            for line in self._file:
                self._life.told.append(json.loads(line))
                if what in self._life.told[-1]:
                    break
        return self._life

    def rest(self) -> Life:
        """Read until the job or the process ends."""
        self.until("ended")
        self._file.close()
        return self._life


@contextmanager
def suppress_reset() -> Iterator[None]:
    """Ignore a connection reset, which may happen when a process is killed."""
    try:
        yield
    except ConnectionResetError:
        return
