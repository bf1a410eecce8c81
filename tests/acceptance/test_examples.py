"""Test that the examples work as their READMEs say: a new game, each command and its answer.

`...` on a page matches any text, and a number matches any number.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from server.logins import keep_logins
from server.ports import HOST
from server.steps import nothing, run
from server.telnet import Connection
from tests.acceptance.games import (
    DATABASE,
    PROGRAMS,
    QUICK_LOGINS,
    ROOT,
    free_ports,
    logs_of,
    migrated_database,
    shown,
)
from tests.acceptance.launching import Prepared, Unchecked

pytestmark = [pytest.mark.server, pytest.mark.minutes(2)]

EXAMPLES = ROOT / "examples"
_FENCE = re.compile(r"^```(console|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE)

_FIRST_ACCOUNT = """
import django
django.setup()
import evennia
evennia._init()
from evennia.server.evennia_launcher import create_superuser
create_superuser()
"""


class Reader:
    """A user who follows the READMEs of examples in the folder that contains the clone."""

    def __init__(self, folder: Path) -> None:
        (folder / "evennia_ai").symlink_to(ROOT)
        self._folder = folder
        root = folder / "mygame"
        self.game = Prepared(
            installation=Unchecked(root=root, programs=PROGRAMS), ports=free_ports()
        )
        self.connection: Connection | None = None

    def follows(self, example: str) -> None:
        """Type the commands of an example's README. Raises StepError at an unexpected answer."""
        page = (EXAMPLES / example / "README.md").read_text(encoding="utf-8")
        for language, block in _FENCE.findall(page):
            if language == "console":
                self._types_into_shell(block)
                continue
            assert self.connection is not None, f"{example}: the game does not run yet"
            for step in re.split(r"^> ", block, flags=re.MULTILINE)[1:]:
                typed, _, answer = step.partition("\n")
                shown(self.connection, typed, until=_pattern(answer))

    def _types_into_shell(self, block: str) -> None:
        lines = block.splitlines()
        if "evennia start" not in lines:
            self._run(block)
            return
        made = lines.index("cd mygame")
        assert lines[made:] == ["cd mygame", "evennia migrate", "evennia start"]
        self._run("\n".join(lines[:made]))
        self._make_what_the_launcher_makes()
        self.game.start()
        self.connection = self._logged_in()

    def _run(self, script: str) -> None:
        path = os.pathsep.join([str(PROGRAMS), os.environ["PATH"]])
        environment = {name: value for name, value in os.environ.items() if "DJANGO" not in name}
        done = subprocess.run(
            ["sh", "-e", "-c", script],
            cwd=self._folder,
            env={**environment, "PATH": path},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def _make_what_the_launcher_makes(self) -> None:
        """Copy the tables, make the first account and choose ports.

        The launcher is slow, so it does not run here. `test_newcomer_plays.py` and
        `tests/setup/test_install_into_another_game.py` test it.
        """
        root, ports = self.game.root, self.game.ports
        shutil.copy(migrated_database(beside=self._folder), root / DATABASE)
        keep_logins(root)
        own = f"""
{QUICK_LOGINS}
TELNET_PORTS = [{ports.telnet}]
WEBSERVER_PORTS = [({ports.web}, {ports.web_internal})]
WEBSOCKET_CLIENT_PORT = {ports.websocket}
AMP_PORT = {ports.amp}
TELNET_INTERFACES = WEBSERVER_INTERFACES = ["{HOST}"]
WEBSOCKET_CLIENT_INTERFACE = "{HOST}"
"""
        with (root / "server" / "conf" / "secret_settings.py").open("a", encoding="utf-8") as file:
            file.write(own)
        run(
            "Making the first account",
            [PROGRAMS / "python", "-c", _FIRST_ACCOUNT],
            cwd=root,
            environment=self.game.environment,
            shown=nothing,
        )
        self.game.prepare()

    def _logged_in(self) -> Connection:
        """Log in with the first account. Its character is in the first room."""
        name, password = keep_logins(self.game.root).superuser
        connection = Connection(HOST, self.game.ports.telnet)
        connection.wait_for("connect <username> <password>", seconds=60)
        connection.send(f"connect {name} {password}")
        connection.wait_for("Limbo", seconds=60)
        connection.wait_for_quiet()
        return connection


def _pattern(answer: str) -> str:
    """Return the regular expression that matches the answer shown on a page."""
    parts = [
        r"(?s:.*?)" if line == "..." else re.escape(line).replace(r"\ \.\.\.", ".*")
        for line in answer.rstrip().splitlines()
        if line
    ]
    return re.sub(r"\d+", r"\\d+", r"\s*".join(parts)) if parts != [r"(?s:.*?)"] else r"\S"


@contextmanager
def reading(folder: Path) -> Iterator[Reader]:
    """Yield a reader. Afterwards stop its game, whose log must have no traceback."""
    reader = Reader(folder)
    try:
        yield reader
        assert "Traceback" not in logs_of(reader.game)
    finally:
        if reader.connection:
            reader.connection.close()
        reader.game.end()


def test_readmes_of_the_examples_show_the_real_answers(tmp_path: Path) -> None:
    with reading(tmp_path) as reader:
        for example in ("minimal-game", "custom-tool", "custom-fact"):
            reader.follows(example)


def test_readme_of_rpsystem_game_shows_the_real_answers(tmp_path: Path) -> None:
    with reading(tmp_path) as reader:
        reader.follows("rpsystem-game")
