"""Starts `twistd` by forking; what games import of others is imported by then.

    python forking_twistd.py

It listens at the socket whose path it prints, and is told by `asking_twistd.py` what to start. It
ends when its standard input does, as that ends with its parent.

Nothing is imported here that binds Django's settings or Twisted's reactor, or is code of a game:
each game has its own. The program's name holds "twistd", for by that word in their commands the
processes of a game are known (`server/evennia_process.py`).
"""

import contextlib
import errno
import gc
import importlib
import marshal
import os
import select
import shutil
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

MODULES = (
    "autobahn.twisted.websocket",
    "django.contrib.admin.apps",
    "django.contrib.auth.apps",
    "django.contrib.sessions.middleware",
    "django.contrib.staticfiles.apps",
    "django.db.backends.sqlite3.base",
    "django.test",
    "django_filters",
    "inflect",
    "jinja2",
    "lunr",
    "pydantic.dataclasses",
    "pydantic.main",
    "regex",
    "rest_framework.apps",
    "sekizai.models",
    "simpleeval",
    "snowballstemmer",
    "twisted.application.internet",
    "twisted.conch.telnet",
    "twisted.internet.default",
    "twisted.protocols.amp",
    "twisted.scripts.twistd",
    "twisted.web.static",
    "twisted.web.wsgi",
    "yaml",
)
"""With what these import, nearly all that a game imports of others and that needs no settings."""

ENDING_SECONDS = 10
"""How long a new Server waits for the port of the one that it replaces."""

OF_ONE_GAME = {"commands", "evennia", "evennia_ai", "server", "twisted.internet.reactor", "world"}


def main() -> None:
    """Fork for each start that is asked for; who goes on behind the loop is such a fork."""
    os.environ.pop("DJANGO_SETTINGS_MODULE", None)  # to ask for a setting now is an error
    for name in MODULES:
        importlib.import_module(name)
    assert not OF_ONE_GAME & set(sys.modules)
    from twisted.internet.tcp import Port
    from twisted.scripts.twistd import run

    Port.startListening = _listening_once_free(Port.startListening)
    gc.collect()
    gc.freeze()  # nobody's collections look through it again
    _become_what_is_asked(sys.path[1:])  # without the folder of this program
    sys.exit(run())


def _listening_once_free(listen: Any) -> Any:
    """Return a `Port.startListening` that waits while another process holds the port.

    On a reload Evennia's Portal starts the new Server when the old one closes its AMP connection.
    The old one keeps its web port until its process ends. An ordinary start imports meanwhile; a
    fork has nothing to import and would find the port taken.
    """
    from twisted.internet.error import CannotListenError

    def start_listening(port: Any) -> Any:
        end = time.monotonic() + ENDING_SECONDS
        while True:
            try:
                return listen(port)
            except CannotListenError as error:
                taken = error.socketError.errno == errno.EADDRINUSE
                if not taken or time.monotonic() > end:
                    raise
            time.sleep(0.02)

    return start_listening


def _become_what_is_asked(path: list[str]) -> None:
    """Fork for whoever asks; this returns in the forks, and ends the process that made them."""
    folder = Path(tempfile.mkdtemp())
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "socket"))
        listening.listen()
        print(folder / "socket", flush=True)
        while sys.stdin not in select.select([sys.stdin, listening], [], [])[0]:
            asking, _ = listening.accept()
            with asking:
                if not os.fork():
                    listening.close()
                    _become(asking, path)
                    return
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
    shutil.rmtree(folder)
    sys.exit()


def _become(asking: socket.socket, path: list[str]) -> None:
    """Let a fork of this process be what is asked, and hand back the status it ends with."""
    _, files, *_ = socket.recv_fds(asking, 1, 3)
    with asking.makefile("rb") as asked:
        words, folder, mask, environment = marshal.load(asked)
    if child := os.fork():
        _, status = os.waitpid(child, 0)
        asking.send(bytes([os.waitstatus_to_exitcode(status) % 256]))
        os._exit(0)
    asking.close()
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(folder)
    os.umask(mask)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv[:] = words
    own = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    first = (Path(words[0]).parent, *map(Path, own))
    sys.path[:] = dict.fromkeys((*(str(each.absolute()) for each in first), *path))


if __name__ == "__main__":
    main()
