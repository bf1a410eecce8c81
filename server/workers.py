"""Run the demo game with PostgreSQL and workers, for `make play WORKERS=2`.

The workers are processes of `evennia-ai worker`, named w1, w2 and so on; their logs are in the
game's log folder. The database is that of EVENNIA_AI_DATABASE, or else a cluster of this checkout
in `server/postgres`. Standard library only.
"""

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

from server.evennia_process import Evennia, for_the_owner_alone, is_process
from server.postgres import Postgres, socket_address, socket_options
from server.steps import StepError, say

MOST: Final = 16
ADDRESS: Final = "EVENNIA_AI_DATABASE"
DEMO: Final = "EVENNIA_AI_DEMO_WORKERS"
"""The environment variable that makes the demo's settings use workers."""
_DATABASE: Final = "postgres"
"""The name of a database that every cluster has from the start."""
_ENDS_SECONDS: Final = 60
_begun: Final[list[subprocess.Popen[bytes]]] = []
"""Workers that this process has started. It does not wait for them; they run on when it ends."""


def wanted(environment: Mapping[str, str] = os.environ) -> int:
    """Return how many workers `make play WORKERS=2` asks for; 0 if it asks for none.

    Raises:
        ValueError: the variable is not a valid number of workers.
    """
    text = environment.get("WORKERS", "") or "0"
    if not text.isascii() or not text.isdigit() or int(text) > MOST:
        raise ValueError(f"WORKERS is {text!r}; it must be a number from 0 to {MOST}")
    return int(text)


def keep_in_postgres(root: Path) -> None:
    """Set the environment so that the demo game uses PostgreSQL and workers.

    Raises:
        StepError: PostgreSQL is not installed, or it cannot be started.
    """
    os.environ[DEMO] = "1"
    if os.environ.get(ADDRESS):
        return
    say("== Starting a PostgreSQL of this checkout in server/postgres")
    place = _socket_folder(root)
    server = _cluster(root)
    _make_socket_folder(place, owner=server.owner)
    try:
        server.start()
    except StepError as error:
        raise StepError(f"{error}\nTo use your own server: make play {ADDRESS}=...") from error
    os.environ[ADDRESS] = socket_address(place, _DATABASE)


def start(game: Evennia, count: int) -> None:
    """Start workers until the given number runs."""
    alive = running(game.root)
    for number in range(1, count + 1):
        name = f"w{number}"
        if name in alive:
            continue
        log = game.root / "server" / "logs" / f"{name}.log"
        command = [str(game.installation.programs / "evennia-ai"), "worker", str(game.root)]
        with for_the_owner_alone(), log.open("ab") as said:
            process = subprocess.Popen(
                [*command, "--name", name],
                cwd=game.root,
                env=game.environment,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )
        _begun.append(process)
        _record(game.root, name).write_text(str(process.pid), encoding="utf-8")
        say(f"   worker {name} works; its log is server/logs/{name}.log")


def stop(root: Path) -> None:
    """Stop this checkout's workers after they have finished their current jobs."""
    for kind in (signal.SIGTERM, signal.SIGKILL):
        alive = running(root)
        for name, pid in alive.items():
            say(f"== Ending worker {name}, process {pid}, by {kind.name}")
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, kind)
        end = time.monotonic() + _ENDS_SECONDS
        while running(root) and time.monotonic() < end:
            time.sleep(0.2)
    for process in _begun:
        process.poll()
    for name in _named(root):
        _record(root, name).unlink()


def stop_postgres(root: Path) -> None:
    """Stop this checkout's PostgreSQL if it exists and runs."""
    if _folder(root).exists() and (server := _cluster(root)).is_running:
        say("== Stopping the PostgreSQL of this checkout")
        server.stop()


def running(root: Path) -> dict[str, int]:
    """Return this checkout's running workers by name."""
    found = {name: int(_record(root, name).read_text(encoding="utf-8")) for name in _named(root)}
    return {name: pid for name, pid in found.items() if is_process(pid, "evennia-ai")}


def _named(root: Path) -> Iterator[str]:
    for path in sorted((root / "server").glob("worker-*.pid")):
        yield path.stem.removeprefix("worker-")


def _record(root: Path, name: str) -> Path:
    return root / "server" / f"worker-{name}.pid"


def _folder(root: Path) -> Path:
    return root / "server" / "postgres"


def _cluster(root: Path) -> Postgres:
    return Postgres(_folder(root), options=socket_options(_socket_folder(root)))


def _socket_folder(root: Path) -> Path:
    """Return the folder of the server's socket.

    It is a short one, because the path of a socket may have only about a hundred characters.
    """
    digest = sha256(str(root).encode("utf-8", "surrogateescape")).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"evennia_ai-{digest}"


def _make_socket_folder(folder: Path, *, owner: int | None) -> None:
    """Make the folder of the socket for its owner only.

    If it belonged to a stranger, the stranger could provide the database.
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    if owner is not None:
        os.chown(folder, owner, -1, follow_symlinks=False)
    found = folder.lstat()
    if found.st_uid != (os.getuid() if owner is None else owner) or found.st_mode & 0o077:
        raise StepError(f"{folder} belongs to another user; remove it")
