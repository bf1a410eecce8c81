"""Run a PostgreSQL server of one's own, for `make play WORKERS=2` and for tests.

The programs are those of Debian's package `postgresql`, or any on the path. PostgreSQL refuses to
run as root, so root starts it as another user. Standard library only.
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
    """Return the folder with the programs of the newest PostgreSQL, or None if there is none."""
    found = sorted(_PROGRAMS.glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    if found:
        return found[-1].parent
    known = shutil.which("initdb")
    return Path(known).resolve().parent if known else None


class Postgres:
    """A PostgreSQL cluster in a folder.

    Anybody who can connect is the user `USER`, without a password and with all rights.
    """

    def __init__(self, folder: Path, *, options: str) -> None:
        """Use the cluster in a folder.

        Args:
            options: Options of the server, which say above all where it listens.

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
        """True if the server accepts connections, or will do so soon."""
        command = [*self._runner, str(self._programs / "pg_ctl"), "status", "-D", str(self._data)]
        done = subprocess.run(command, cwd="/", capture_output=True, check=False)
        return done.returncode == 0

    def start(self) -> None:
        """Make the cluster if it does not exist, and start its server if it does not run.

        Raises:
            StepError: that failed; the text has the message of PostgreSQL.
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
        """Stop the server.

        With the mode "immediate" it stops as after a crash of the machine.

        Raises:
            StepError: the server did not stop.
        """
        self._run("pg_ctl", "stop", "-w", "-m", mode)

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def _run(self, program: str, *words: str) -> None:
        command = [*self._runner, str(self._programs / program), "-D", str(self._data), *words]
        # The output goes to a file, because the server keeps its output open as long as it runs.
        with (self._folder / "said").open("w+") as said:
            done = subprocess.run(
                command, cwd="/", stdin=subprocess.DEVNULL, stdout=said, stderr=said, check=False
            )
            said.seek(0)
            if done.returncode:
                raise StepError(f"PostgreSQL's {program} failed:\n{said.read().strip()}")


def _runner() -> tuple[list[str], int | None]:
    """Return the command that runs another one as an unprivileged user, and that user."""
    if os.getuid() != 0:
        return [], None
    known = {entry.pw_name: entry.pw_uid for entry in pwd.getpwall()}
    name = next(name for name in _SOMEBODY if name in known)
    return ["runuser", "-u", name, "--"], known[name]


def socket_options(folder: Path) -> str:
    """Return the options of a server that listens in this folder only, and on no network port."""
    return f"-c listen_addresses='' -c unix_socket_directories='{folder}'"


def socket_address(folder: Path, name: str) -> str:
    """Return the address of a database of such a server, for a game's settings."""
    return f"postgres://{USER}@/{name}?host={quote(str(folder), safe='')}"
