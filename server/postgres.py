"""A PostgreSQL of one's own: `make play WORKERS=2` keeps its game in one, and tests have theirs.

Its programs are those of Debian's package `postgresql`, or any on the path. PostgreSQL refuses to
run as root, so root starts it as somebody else. Standard library only.
"""

import os
import pwd
import shutil
import subprocess
from pathlib import Path
from typing import Final
from urllib.parse import quote

from server.steps import StepError

USER: Final = "evennia_ai"
_PROGRAMS: Final = Path("/usr/lib/postgresql")
_SOMEBODY: Final = ("postgres", "nobody")
_START_SECONDS: Final = 60


def programs() -> Path | None:
    """The folder of the newest PostgreSQL's programs; None: there is none on this machine."""
    found = sorted(_PROGRAMS.glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    if found:
        return found[-1].parent
    known = shutil.which("initdb")
    return Path(known).resolve().parent if known else None


class Postgres:
    """A cluster in a folder; whoever reaches it is `USER`, who may do everything, unasked."""

    def __init__(self, folder: Path, *, options: str) -> None:
        """`options` of the server say above all where it listens.

        Raises:
            StepError: PostgreSQL is not installed.
        """
        found = programs()
        if found is None:
            raise StepError("PostgreSQL is not installed; on Debian: apt-get install postgresql")
        self._programs: Final = found
        self._runner, self.owner = _runner()
        self._folder: Final = folder
        self._options: Final = options

    @property
    def is_running(self) -> bool:
        """Whether the server takes connections, or is about to."""
        command = [*self._runner, str(self._programs / "pg_ctl"), "status", "-D", str(self._data)]
        done = subprocess.run(command, cwd="/", capture_output=True, check=False)
        return done.returncode == 0

    def start(self) -> None:
        """Make the cluster unless there is one, and start its server unless it runs.

        Raises:
            StepError: it could not be; the text has what PostgreSQL says.
        """
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self.owner is not None:
            os.chown(self._folder, self.owner, -1)
        if not (self._data / "PG_VERSION").exists():
            self._run("initdb", "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C")
        if not self.is_running:
            log = str(self._folder / "log")
            self._run(
                "pg_ctl", "start", "-w", "-t", str(_START_SECONDS), "-l", log, "-o", self._options
            )

    def stop(self, *, mode: str = "fast") -> None:
        """End the server; "immediate" as a failure of the machine would.

        Raises:
            StepError: it did not end.
        """
        self._run("pg_ctl", "stop", "-w", "-m", mode)

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def _run(self, program: str, *words: str) -> None:
        command = [*self._runner, str(self._programs / program), "-D", str(self._data), *words]
        # A server that is started holds on to whatever output it was given.
        with (self._folder / "said").open("w+") as said:
            done = subprocess.run(
                command, cwd="/", stdin=subprocess.DEVNULL, stdout=said, stderr=said, check=False
            )
            said.seek(0)
            if done.returncode:
                raise StepError(f"PostgreSQL's {program} failed:\n{said.read().strip()}")


def _runner() -> tuple[list[str], int | None]:
    """What stands before a command so that it does not run as root, and as whom it runs then."""
    if os.getuid() != 0:
        return [], None
    known = {entry.pw_name: entry.pw_uid for entry in pwd.getpwall()}
    name = next(name for name in _SOMEBODY if name in known)
    return ["runuser", "-u", name, "--"], known[name]


def socket_options(folder: Path) -> str:
    """Options of a server that listens in this folder alone, and on no port of the network."""
    return f"-c listen_addresses='' -c unix_socket_directories='{folder}'"


def socket_address(folder: Path, name: str) -> str:
    """The address of the database `name` of such a server, as a game's settings have it."""
    return f"postgres://{USER}@/{name}?host={quote(str(folder), safe='')}"
