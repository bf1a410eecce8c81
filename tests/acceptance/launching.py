"""Start a copied game without Evennia's launcher, to save processor time.

The launcher imports all of Evennia, and collects static files that a copied game already has: a
third of the time of a start. Importing packages in Portal and Server takes half of the rest. They
are therefore forked from a process that has imported the packages (`forking_twistd.py`).
`test_newcomer_plays.py` tests the launcher with a game as git holds it.
"""

import atexit
import functools
import importlib.util
import os
import pickle
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from server.evennia_process import (
    Evennia,
    close_to_others,
    for_the_owner_alone,
    lost_its_server,
)
from server.installation import Installation
from server.steps import nothing, run
from tests.unchecked import UNCHECKED

_HERE = Path(__file__).parent
_START_SERVER = bytes([15])
"""The AMP operation `SSTART` of `evennia.server.portal.amp`."""


class Prepared(Evennia):
    """A game that already has the files that git does not hold, such as its database."""

    def prepare(self) -> None:
        (self.root / "server" / "logs").mkdir(exist_ok=True)
        close_to_others(self.root)

    def start_server(self) -> None:
        """Start the Server again after it died, as `evennia start` does.

        The Portal ignores the request until it has noticed the death, so the request is
        repeated.
        """
        end = time.monotonic() + 120
        while lost_its_server(self.root, patience_seconds=0):
            assert time.monotonic() < end, "the Portal started no Server"
            self._start_server(seconds=120)
            time.sleep(0.1)

    def _start_portal(self) -> bool:
        with for_the_owner_alone():
            run(
                "Starting Evennia's Portal",
                self._daemon("portal", "portal/portal.py", observer="GetPortalLogObserver"),
                cwd=self.root,
                environment=self.environment,
                shown=nothing,
            )
        return True

    def _ask_for_server(self, portal: socket.socket) -> None:
        """Send the launcher's request to the Portal, and wait for the Portal's answer."""
        command = self._daemon("server", "server.py", observer="GetServerLogObserver")
        asked = {
            "_ask": b"1",
            "_command": b"MsgLauncher2Portal",
            "operation": _START_SERVER,
            "arguments": pickle.dumps(command),
        }
        portal.settimeout(60)
        portal.sendall(_box(asked))
        if not portal.recv(1):
            raise ConnectionError("the Portal hung up instead of starting the Server")

    def _daemon(self, name: str, file: str, *, observer: str) -> list[str]:
        """Return the launcher's command for one process of the game, with a forked `twistd`."""
        return [
            *forked_twistd(str(self.installation.programs / "twistd")),
            f"--python={_evennia() / 'server' / file}",
            f"--logger=evennia.utils.logger.{observer}",
            f"--pidfile={self.root / 'server' / name}.pid",
        ]


class Unchecked(Installation):
    """An installation in which `tests/unchecked` replaces slow checks of Evennia.

    The game's own modules come first on the path, and its own settings are used, as the
    launcher does it.
    """

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        made = Installation.environment(self, more)
        path = (str(self.root), str(UNCHECKED), made.get("PYTHONPATH", ""))
        return {
            **made,
            "PYTHONPATH": os.pathsep.join(filter(None, path)),
            "DJANGO_SETTINGS_MODULE": "server.conf.settings",
        }


def forked_twistd(program: str) -> list[str]:
    """Return the command that replaces this `twistd` program by a fork."""
    return [sys.executable, "-I", "-S", str(_HERE / "asking_twistd.py"), _forking(), program]


@functools.cache
def _forking() -> str:
    """Start `forking_twistd.py` once, and return its socket. It ends with this process."""
    ours = {"PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "", "PYTHONPATH": str(UNCHECKED)}
    process = subprocess.Popen(
        [sys.executable, str(_HERE / "forking_twistd.py")],
        env={**os.environ, **ours},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C in the terminal must not stop games
    )
    atexit.register(process.communicate)
    assert process.stdout is not None
    return process.stdout.readline().strip()


def _evennia() -> Path:
    """Return the folder of Evennia without importing it."""
    found = importlib.util.find_spec("evennia")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent


def _box(values: Mapping[str, bytes]) -> bytes:
    """Encode values as an AMP box: lengths before keys and values, an empty key at the end."""
    words = (word for key, value in values.items() for word in (key.encode(), value))
    return b"".join(len(word).to_bytes(2, "big") + word for word in words) + bytes(2)
