"""A game that may die, as a test sees it: jobs go in, what was told until the end comes out."""

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
"""How long a life may tell nothing on a busy machine: one that migrates does for a while."""

Act = Sequence[Any]


@dataclass(slots=True, kw_only=True)
class Life:
    """What a process told from its start to its end or death."""

    told: list[dict[str, Any]] = field(default_factory=list)

    def all(self, what: str) -> list[Any]:
        """What was told under this name, in order."""
        return [line[what] for line in self.told if what in line]

    @property
    def is_over(self) -> bool:
        """Whether it came to its own end."""
        return bool(self.all("ended"))

    @property
    def steps(self) -> list[str]:
        return self.all("what")

    @property
    def stored(self) -> list[list[Any]]:
        """All records that were committed: id, hash, role, body."""
        return [record for records in self.all("stored") for record in records]

    @property
    def heard(self) -> set[str]:
        """What the NPC was heard to say; that it thinks is a gesture."""
        lines = (line for line in self.all("read") if "Oren" in line[:8] and '"' in line)
        return {line.partition('"')[2].rstrip('"') for line in lines}

    @property
    def heard_too_early(self) -> set[str]:
        """What the NPC was heard to say before it was committed; it never says the same twice."""
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
        """What was told until the trouble came."""
        at = next((n for n, line in enumerate(self.told) if "trouble" in line), len(self.told))
        return Life(told=self.told[:at])

    def in_trouble(self) -> "Life":
        """What was told after the trouble came and before it was over."""
        healed = next((n for n, line in enumerate(self.told) if "healed" in line), len(self.told))
        at = len(self.before_trouble().told)
        return Life(told=self.told[at:healed])


Database = Path | str
"""A file, or an address of PostgreSQL's."""


class Game:
    """The process that plays, and the empty games it can begin with."""

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
        """A database of its own in which `before` was played already."""
        made = self._copied(self._empty, name)
        if before:
            assert self.lives(made, before).is_over
        return made

    def copy(self, database: Database) -> Any:
        """A copy of this game that may be played to its death."""
        self._copies += 1
        return self._copied(database, f"copy{self._copies}")

    def _place(self, name: str) -> Database:
        """Where a new database of this name is."""
        return self.folder / f"{name}.db3"

    def _make(self, name: str) -> None:
        """Make a database: a file comes by itself."""

    def _copied(self, database: Any, name: str) -> Database:
        """A copy of a database of which nobody has anything open."""
        path = self.folder / f"{name}.db3"
        _copy(database, path)
        return path

    def lives(self, database: Database, acts: Sequence[Act], **job: Any) -> Life:
        """Play `acts`, until their end or that of the process."""
        with self.playing(database, acts, **job) as running:
            return running.rest()

    def is_killed(self, database: Database, acts: Sequence[Act], *, after_seconds: float) -> Life:
        """Play `acts` and kill the process from outside after a while, wherever it is then."""
        with self.playing(database, acts) as running:
            life = running.until("pid")
            time.sleep(after_seconds)
            with suppress(ProcessLookupError):  # this one had lived its life to the end
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
        """A process that plays; with `writer` it writes in a thread, as a server does."""
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
    """The same on a real PostgreSQL, where a copy is made of a template."""

    def __init__(self, folder: Path, cluster: Cluster) -> None:
        self._cluster = cluster
        self._prefix = folder.name
        super().__init__(folder)

    def _place(self, name: str) -> str:
        return self._cluster.address(f"{self._prefix}_{name}")

    def _make(self, name: str) -> None:
        # Not before: Evennia reads its tables while it starts, unless there is no database.
        self._cluster.make(f"{self._prefix}_{name}")

    def _copied(self, database: str, name: str) -> str:
        own, template = f"{self._prefix}_{name}", database.rpartition("/")[2]
        # Whoever died has left a connection that the server may not know to be gone.
        self._cluster.do(_DISCONNECT.format(template))
        return self._cluster.make(own, like=template, more="STRATEGY file_copy")


_DISCONNECT = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{}'"


def _copy(database: Path, path: Path) -> None:
    """Copy a database of which nobody has anything open, with what is only in its log."""
    for ending in ("", "-wal"):
        written = database.with_name(database.name + ending)
        if written.exists():
            shutil.copyfile(written, path.with_name(path.name + ending))


class Running:
    """A process that plays."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._file = line.makefile("r", encoding="utf-8")
        self._life = Life()

    def send(self, text: str = "") -> None:
        self._line.sendall(text.encode() + b"\n")

    def until(self, what: str) -> Life:
        """Everything until this was told; all there is where it never is."""
        with suppress_reset():
            for line in self._file:
                self._life.told.append(json.loads(line))
                if what in self._life.told[-1]:
                    break
        return self._life

    def rest(self) -> Life:
        """Everything until the end."""
        self.until("ended")
        self._file.close()
        return self._life


@contextmanager
def suppress_reset() -> Iterator[None]:
    """A process that was killed may reset its connection instead of closing it."""
    try:
        yield
    except ConnectionResetError:
        return
