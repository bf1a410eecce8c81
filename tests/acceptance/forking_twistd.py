"""Import the packages that games need once, then start `twistd` by forking.

    python forking_twistd.py

The program prints the path of a socket. `asking_twistd.py` connects there and says what to start.
The program ends when its standard input closes, which happens when its parent ends.

It must not import code of a game, Twisted's reactor or Django's settings, because each game has its
own. The file name contains "twistd" because `server/evennia_process.py` recognises the processes of
a game by that word.
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
"""Modules that import nearly all third-party packages that a game uses without settings."""

ENDING_SECONDS = 10
"""How long a new Server waits until the old Server frees its port."""

OF_ONE_GAME = {"commands", "evennia", "evennia_ai", "server", "twisted.internet.reactor", "world"}


def main() -> None:
    """Fork for each request. Only the forks continue after `_become_what_is_asked`."""
    os.environ.pop("DJANGO_SETTINGS_MODULE", None)  # no import may read Django's settings here
    for name in MODULES:
        importlib.import_module(name)
    assert not OF_ONE_GAME & set(sys.modules)
    from twisted.internet.tcp import Port
    from twisted.scripts.twistd import run

    Port.startListening = _listening_once_free(Port.startListening)
    gc.collect()
    gc.freeze()  # exclude these objects from later garbage collection
    _become_what_is_asked(sys.path[1:])  # leave out the folder of this program
    sys.exit(run())


def _listening_once_free(listen: Any) -> Any:
    """Return a `Port.startListening` that waits while another process holds the port.

    On a reload, Evennia's Portal starts the new Server when the old Server closes its AMP
    connection. The old Server keeps its web port until its process ends. A normal new process
    is still importing then. A fork has nothing to import, so it would find the port taken.
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
    """Fork for each connection. Returns in the forks; the parent exits."""
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
    """Fork a child that takes on the requested process state. The parent sends its exit status."""
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
