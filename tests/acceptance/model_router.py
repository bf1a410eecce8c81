"""Run nginx as a router of model servers, with the configuration of docs/run/routing.md.

The tests need Debian's package `nginx-light`. Without it they are skipped, and in continuous
integration they fail; both name the reason.
"""

import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Self

from tests.absent import absent
from tests.acceptance.games import ROOT

PAGE: Final = ROOT / "docs" / "run" / "routing.md"
START_SECONDS: Final = 60
_FENCE: Final = re.compile(r"```nginx\n(.*?)```", re.DOTALL)
_SERVER: Final = re.compile(r"( +server) [\d.]+:\d+( .*;\n)")
_BY_KEY: Final = "hash $http_x_session_id consistent;"
_WHOLE: Final = """\
daemon off;
master_process off;
pid {folder}/pid;
error_log {folder}/errors warn;
events {{}}
http {{
    log_format routed "$http_x_session_id $upstream_addr";
    access_log {folder}/routed routed;
{told}
}}
"""


class Router:
    """nginx on a free port in front of model servers at addresses such as "127.0.0.1:8000".

    With `by_key=False`, the servers take turns instead of being chosen by the session key.
    """

    def __init__(self, folder: Path, addresses: Iterable[str], *, by_key: bool = True) -> None:
        self._program = _require_nginx()
        folder.mkdir()
        self._folder = folder
        self._port = _free_port()
        self._settings = _WHOLE.format(
            folder=folder, told=_told(list(addresses), port=self._port, by_key=by_key)
        )
        self._process: subprocess.Popen[bytes]

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

    @property
    def routed(self) -> list[tuple[str, list[str]]]:
        """The session key of each finished request, with the addresses that nginx tried."""
        lines = (self._folder / "routed").read_text(encoding="ascii").splitlines()
        keys = (line.partition(" ") for line in lines)
        return [(key, tried.split(", ")) for key, _, tried in keys]

    def __enter__(self) -> Self:
        path = self._folder / "nginx.conf"
        path.write_text(self._settings, encoding="ascii")
        said = self._folder / "errors"
        with said.open("wb") as errors:
            words = [self._program, "-p", self._folder, "-c", path, "-e", said]
            self._process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=errors)
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end and self._process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self._port), 1).close()
            except OSError:
                time.sleep(0.05)
            else:
                return self
        self._end()
        raise AssertionError(f"nginx did not come up; it said: {said.read_text()}")

    def __exit__(self, *_: object) -> None:
        self._end()

    def _end(self) -> None:
        self._process.terminate()
        self._process.wait(timeout=START_SECONDS)


def _told(addresses: list[str], *, port: int, by_key: bool) -> str:
    """Return the page's configuration with these addresses and this port."""
    (text,) = _FENCE.findall(PAGE.read_text(encoding="utf-8"))
    servers = _SERVER.findall(text)
    assert len(servers) == len(addresses), servers
    left = iter(addresses)
    text = _SERVER.sub(lambda found: f"{found[1]} {next(left)}{found[2]}", text)
    assert _BY_KEY in text
    if not by_key:
        text = text.replace(_BY_KEY, "")
    assert "listen 127.0.0.1:8080;" in text
    return text.replace("listen 127.0.0.1:8080;", f"listen 127.0.0.1:{port};")


def _require_nginx() -> str:
    found = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if found is None:
        absent("no router is asked", why="nginx is missing; type: apt-get install nginx-light")
    return found


def _free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])
