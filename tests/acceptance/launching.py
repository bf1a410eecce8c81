"""Starting a copied game without Evennia's launcher.

The launcher imports all of Evennia to start the Portal, waits for it, and collects static files:
a third of the processor time of a start. A copied game has those files. Portal and Server would
then import the same packages, which is half of what is left: they are forked from a process that
has them already (`forking_twistd.py`). What the launcher does is asserted where a newcomer plays
(`test_newcomer_plays.py`), with a game as git holds it.
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
"""Evennia's `SSTART` (`evennia.server.portal.amp`)."""


class Prepared(Evennia):
    """A game for which everything is made that git does not hold."""

    def prepare(self) -> None:
        (self.root / "server" / "logs").mkdir(exist_ok=True)
        close_to_others(self.root)

    def start_server(self) -> None:
        """Start the Server beside a Portal that has lost it, as `evennia start` does then.

        A Portal that has not noticed the loss yet starts none, so it is asked until there is one.
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
        """Ask as the launcher does, and keep the connection until the Portal has answered."""
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
        """The command of Evennia's launcher that starts this process of the game, by a fork."""
        return [
            *forked_twistd(str(self.installation.programs / "twistd")),
            f"--python={_evennia() / 'server' / file}",
            f"--logger=evennia.utils.logger.{observer}",
            f"--pidfile={self.root / 'server' / name}.pid",
        ]


class Unchecked(Installation):
    """An installation in which Evennia does not wait for what `tests/unchecked` stands in for.

    The game's own modules are found first, and its settings are those it plays with, as the
    launcher sees to it.
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
    """The words that stand in for this program `twistd`, and have it forked."""
    return [sys.executable, "-I", "-S", str(_HERE / "asking_twistd.py"), _forking(), program]


@functools.cache
def _forking() -> str:
    """Where the process listens from which games are forked; it ends with this one."""
    ours = {"PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "", "PYTHONPATH": str(UNCHECKED)}
    process = subprocess.Popen(
        [sys.executable, str(_HERE / "forking_twistd.py")],
        env={**os.environ, **ours},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # an interrupt at the terminal is not meant for games
    )
    atexit.register(process.communicate)
    assert process.stdout is not None
    return process.stdout.readline().strip()


def _evennia() -> Path:
    """The folder of Evennia, which is not imported."""
    found = importlib.util.find_spec("evennia")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent


def _box(values: Mapping[str, bytes]) -> bytes:
    """These values as AMP sends them: each key and value behind its length, an empty key last."""
    words = (word for key, value in values.items() for word in (key.encode(), value))
    return b"".join(len(word).to_bytes(2, "big") + word for word in words) + bytes(2)
