"""Start and stop the two processes of Evennia from outside.

Standard library only, because this runs in the machine's Python and not in the game's.
"""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from server.installation import Installation
from server.logins import FILE, Logins, keep_logins, read_logins
from server.ports import HOST, PORTS, Port, Ports
from server.steps import StepError, nothing, run, say

_EMAIL = "EVENNIA_SUPERUSER_EMAIL"
_SETUP_BEGUN = "Restarting Server once"
_STARTED = "Evennia Server successfully"
_DEMO = re.compile(r"demo world: (.*)")
"""A line that `world/build_demo.py` logs for each thing that it makes."""
_FAILED = "AMP caught exception"
"""An error in the log that ended the start of the Server.

Its process stays alive but is useless.
"""
_STARTED_AGAIN = "successfully restarted in 'reset' mode"
_GAVE_UP = "Connection to Evennia timed out"
"""The log line of Evennia's launcher when it stops waiting for the Portal after ten seconds.

It then never starts the Server.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evennia:
    """The demo game of one checkout: its folder, its Python and its ports."""

    installation: Installation
    ports: Ports

    @property
    def root(self) -> Path:
        return self.installation.root

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment for Evennia.

        It has a superuser's name, because without one Evennia's launcher recurses until it crashes.
        """
        logins = read_logins(self.root) or Logins.made(os.environ)
        name, password = logins.superuser
        superuser = {
            "EVENNIA_SUPERUSER_USERNAME": name,
            "EVENNIA_SUPERUSER_EMAIL": os.environ.get(_EMAIL) or f"{name}@localhost",
            "EVENNIA_SUPERUSER_PASSWORD": password,
        }
        return self.installation.environment({**superuser, **self.ports.as_environment()})

    def prepare(self) -> None:
        """Make what git does not contain: logs, logins, the secret key and the database."""
        (self.root / "server" / "logs").mkdir(exist_ok=True)
        keep_logins(self.root)
        self._evennia("Making the secret settings", "--initmissing")
        close_to_others(self.root)
        self._evennia("Bringing the database up to date", "migrate", shown=_migration)

    def start(self) -> None:
        """Start Portal and Server, and wait until players can log in.

        Raises:
            StepError: the game did not start; the text has the end of its log.
        """
        _forget(self.root)
        logs = _log_ends(self.root)
        with for_the_owner_alone():
            _record(self.root, self.ports)
        wants_server = self._start_portal()
        try:
            if wants_server:
                self._start_server(seconds=120)
            self._wait_until_usable(logs, seconds=120)
        except StepError:
            self.stop()
            raise
        for made in _DEMO.findall(_since(logs)):
            say(f"   {made}")

    def _start_portal(self) -> bool:
        """Start the Portal. Return True if the Server must still be started."""
        return _GAVE_UP in self._evennia("Starting Evennia", "start")

    def _start_server(self, *, seconds: float) -> None:
        """Start the Server when the Portal runs, which may take long."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with (
                contextlib.suppress(OSError),
                socket.create_connection((HOST, self.ports.amp), 1) as portal,
            ):
                self._ask_for_server(portal)
                return
            time.sleep(0.2)
        raise StepError(f"Evennia's Portal did not come up in {seconds:.0f} s")

    def _ask_for_server(self, _: socket.socket) -> None:
        """Ask the Portal at the other end of the socket to start the Server."""
        self._evennia("Starting Evennia's Server", "start")

    def stop(self) -> None:
        """End all processes of this checkout's game. Ask them first, then kill them."""
        if (self.installation.programs / "evennia").exists():
            try:
                self._evennia("Stopping Evennia", "stop", limit_seconds=40)
            except StepError as error:
                say(f"   {error}")
        _wait_until_gone(self.root, seconds=10)
        self.end()

    def end(self) -> None:
        """End all processes of this checkout's game at once, without asking them first."""
        for kind in (signal.SIGTERM, signal.SIGKILL):
            for name, pid in _processes(self.root).items():
                say(f"== Ending the {name}, process {pid}, by {kind.name}")
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, kind)
            if _wait_until_gone(self.root, seconds=10):
                break
        _forget(self.root)

    def _evennia(
        self,
        title: str,
        *words: str,
        shown: Callable[[str], str | None] = nothing,
        limit_seconds: float = 300,
    ) -> str:
        with for_the_owner_alone():
            return run(
                title,
                [self.installation.programs / "evennia", *words],
                cwd=self.root,
                environment=self.environment,
                shown=shown,
                limit_seconds=limit_seconds,
            )

    def _wait_until_usable(self, logs: dict[Path, int], *, seconds: float) -> None:
        """Wait until the game is usable.

        On its very first start, Evennia makes the first objects and restarts the Server once.
        """
        say("== Waiting until the game is usable")
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            text = _since(logs)
            if (_STARTED_AGAIN if _SETUP_BEGUN in text else _STARTED) in text:
                return
            if _FAILED in text:
                break
            time.sleep(0.2)
        raise StepError(
            f"the server did not come up; server/logs ends with:\n{_since(logs)[-3000:]}"
        )


@contextlib.contextmanager
def for_the_owner_alone() -> Iterator[None]:
    """Let programs that are started inside this block make files that only their owner can read."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def close_to_others(root: Path) -> None:
    """Remove the rights of everybody except the owner from files that an earlier start has made."""
    server = root / "server"
    logs = server / "logs"
    logs.chmod(0o700)
    secret = (FILE, Path("server", "conf", "secret_settings.py"))
    for path in (*(root / one for one in secret), *server.glob("*.db3*"), *logs.iterdir()):
        if path.is_file():
            path.chmod(0o600)


def is_running(root: Path) -> bool:
    """True if the Portal of this checkout is running."""
    return "portal" in _processes(root)


def lost_its_server(root: Path, *, patience_seconds: float = 5) -> bool:
    """True if the Portal runs without the Server.

    During a reload the Server is absent for a moment; that does not count.
    """
    end = time.monotonic() + patience_seconds
    while is_running(root) and "server" not in _processes(root):
        if time.monotonic() >= end:
            return True
        time.sleep(0.2)
    return False


def recorded_ports(root: Path) -> Ports | None:
    """Return the ports with which this checkout's game was last started."""
    try:
        return Ports(**json.loads(_record_file(root).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None


def refuse_taken(ports: Ports) -> None:
    """Refuse to start if another program uses one of the ports.

    Raises:
        StepError: a port is taken; the text names the port and the variable that chooses another
            one.
    """
    for name, number in asdict(ports).items():
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as candidate:
            candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                candidate.bind((HOST, number))
            except OSError as error:
                raise StepError(_taken(PORTS[name], number, error)) from error


def _taken(port: Port, number: int, error: OSError) -> str:
    other = number + 10000 if number < 55000 else number - 10000
    return (
        f"port {number} ({port.purpose}) cannot be used: {error.strerror}. "
        f"Choose another: make play {port.variable}={other}"
    )


def _wait_until_gone(root: Path, *, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while _processes(root) and time.monotonic() < end:
        time.sleep(0.2)
    return not _processes(root)


def _processes(root: Path) -> dict[str, int]:
    """Return the game's running processes by name."""
    found = {}
    for name in ("portal", "server"):
        with contextlib.suppress(FileNotFoundError, ValueError):
            pid = int((root / "server" / f"{name}.pid").read_text(encoding="utf-8"))
            if is_process(pid, "twistd"):
                found[name] = pid
    return found


def is_process(pid: int, word: str) -> bool:
    """True if the process with this number runs a command that contains this word.

    The number may come from an old file, and the process may belong to somebody else by now.
    """
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return word.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    if Path("/proc").exists():
        return False
    listing = subprocess.run(
        ["ps", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return word in listing.stdout


def _record_file(root: Path) -> Path:
    return root / "server" / "logs" / "ports.json"


def _record(root: Path, ports: Ports) -> None:
    _record_file(root).write_text(json.dumps(asdict(ports)), encoding="utf-8")


def _forget(root: Path) -> None:
    _record_file(root).unlink(missing_ok=True)


def _log_ends(root: Path) -> dict[Path, int]:
    paths = (root / "server" / "logs" / name for name in ("portal.log", "server.log"))
    return {path: path.stat().st_size if path.exists() else 0 for path in paths}


def _since(logs: dict[Path, int]) -> str:
    """Return what was written to the logs after their ends were noted."""
    return "\n".join(_tail(path, start=start) for path, start in logs.items() if path.exists())


def _tail(path: Path, *, start: int) -> str:
    data = path.read_bytes()
    return data[start if start <= len(data) else 0 :].decode("utf-8", errors="replace")


def _migration(line: str) -> str | None:
    return line.strip() if "Applying evennia_ai" in line else None
