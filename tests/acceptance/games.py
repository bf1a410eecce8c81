"""Real games for tests: copies of this repository's demo game, on free ports."""

import secrets
import shutil
import socket
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from server.evennia_process import Evennia, is_running
from server.logins import keep_logins
from server.newcomer import read_demo
from server.ports import HOST, Ports
from server.steps import nothing, run
from server.telnet import Connection
from tests.acceptance.launching import Prepared, Unchecked
from tests.once_a_run import made_once

ROOT = Path(__file__).resolve().parents[2]
DATABASE = Path("server", "evennia.db3")
PROGRAMS = Path(sys.executable).parent
_MAKING_TABLES = Path(__file__).with_name("making_tables.py")
GAME = ("commands", "evennia_ai", "server", "world")
QUICK_LOGINS = """
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEMO_EVENING = False
"""
"""Settings for copied games. Django's default hashing takes half of the time of a login, and in an
evening that passes by itself people walk about and speak between the lines of a test.
"""
QUICK_ANSWERS = "EVENNIA_AI_GATHER_SECONDS = 0.0"
"""A setting for copied games, whose players say one line and wait for the answer."""
MADE_BY_RUNNING = shutil.ignore_patterns(
    "__pycache__",
    "logs",
    "*.db3*",
    "*.pid",
    ".static",
    ".media",
    "secret_settings.py",
    "demo_logins.*",
)


def copied_game(root: Path, *, settings: str = "") -> Prepared:
    """Copy the played demo game into the empty folder `root`, with more settings at the end.

    The original was started once with its own settings, so the copy has tables, accounts and
    the demo, and starts much faster than a new game. The copy is not started.
    """
    before = made_once("migrated", _make_migrated, beside=root)
    played = made_once("played", partial(_make_played, before), beside=root)
    shutil.copytree(played, root, dirs_exist_ok=True)
    _add_settings(root, f"{QUICK_ANSWERS}\n{settings}")
    return Prepared(installation=Unchecked(root=root, programs=PROGRAMS), ports=free_ports())


def migrated_database(*, beside: Path) -> Path:
    """Return an SQLite file with all tables and no rows, for copying."""
    return made_once("migrated", _make_migrated, beside=beside) / DATABASE


def untouched_game(root: Path, *, settings: str = "") -> Evennia:
    """Copy the game as git holds it into the empty folder `root`, with more settings."""
    _copy_code(root)
    _add_settings(root, settings)
    return Evennia(installation=Unchecked(root=root, programs=PROGRAMS), ports=free_ports())


def fresh_game(root: Path, *, settings: str = "") -> Evennia:
    """Make a game that was never started, with tables, in the empty folder `root`.

    It is as prepared as after `Evennia.prepare`, and `settings` may choose another database.
    """
    game = untouched_game(root, settings=settings)
    (root / "server" / "logs").mkdir()
    secret = f"SECRET_KEY = {secrets.token_hex()!r}\n"
    (root / "server" / "conf" / "secret_settings.py").write_text(secret, encoding="utf-8")
    keep_logins(root)
    run(
        "Making the tables",
        [sys.executable, _MAKING_TABLES],
        cwd=root,
        environment=game.installation.environment(),
        shown=nothing,
    )
    return game


def _make_migrated(root: Path) -> None:
    fresh_game(root, settings=QUICK_LOGINS)


def _make_played(before: Path, root: Path) -> None:
    """Make a game in `root`, start it for the first time, and stop it."""
    shutil.copytree(before, root, dirs_exist_ok=True)
    (root / "server" / "logs").mkdir(exist_ok=True)
    # Only Evennia's launcher makes the superuser, so it does the first start.
    game = Evennia(installation=Unchecked(root=root, programs=PROGRAMS), ports=free_ports())
    game.start()
    game.end()
    shutil.rmtree(root / "server" / "logs")
    for number in (root / "server").glob("*.pid"):  # another process may get the number
        number.unlink()


def _copy_code(root: Path) -> None:
    for name in GAME:
        shutil.copytree(ROOT / name, root / name, ignore=MADE_BY_RUNNING)


def _add_settings(root: Path, settings: str) -> None:
    with (root / "server" / "conf" / "settings.py").open("a", encoding="utf-8") as file:
        file.write(f"\n{settings}\n")


def free_ports() -> Ports:
    """Return ports on which no process listens."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(5)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        telnet, web, websocket, web_internal, amp = (s.getsockname()[1] for s in sockets)
    return Ports(telnet=telnet, web=web, websocket=websocket, web_internal=web_internal, amp=amp)


@contextmanager
def started(game: Evennia) -> Iterator[Evennia]:
    """Run the game during the block."""
    game.prepare()
    game.start()
    try:
        yield game
    finally:
        if is_running(game.root):
            game.end()


@contextmanager
def running_game(
    root: Path, *, settings: str = "", files: Mapping[str, str] = MappingProxyType({})
) -> Iterator[Evennia]:
    """Run a copied game during the block. `files` maps paths in the game to texts."""
    game = copied_game(root, settings=settings)
    for name, text in files.items():
        path = game.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    with started(game):
        yield game


def logged_in(game: Evennia, name: str, password: str) -> Connection:
    """Log in over telnet, and wait until the account controls its character."""
    connection = Connection(HOST, game.ports.telnet)
    connection.wait_for("connect <name> <password>", seconds=60)
    connection.send(f"connect {name} {password}")
    connection.wait_for("You become|Exits", seconds=60)
    connection.wait_for_quiet()
    return connection


@contextmanager
def builder_beside_npc(game: Evennia) -> Iterator[Connection]:
    """Log in as the demo builder, and go to the demo's NPC."""
    demo = read_demo(game.root / "world" / "build_demo.py")
    with logged_in(game, *demo.builder) as connection:
        connection.send(f"@teleport/loc {demo.npc}")
        connection.wait_for_quiet()
        yield connection


def reload(game: Evennia) -> None:
    """Reload the Server as the superuser. Players stay connected."""
    superuser = read_demo(game.root / "world" / "build_demo.py").superuser
    with logged_in(game, *superuser) as admin:
        admin.send("@reload")
        admin.wait_for("Server restarted", seconds=60)
        admin.wait_for_quiet()


def shown(connection: Connection, command: str, *, until: str = r"\S") -> str:
    """Type a command, and return its output once `until` is found and the output has ended.

    Output of earlier commands is read and dropped first, so that it is not taken for the
    answer.
    """
    connection.wait_for_quiet(quiet_seconds=0)
    connection.send(command)
    connection.wait_for(until, seconds=60)
    return connection.wait_for_quiet()


def logs_of(game: Evennia) -> str:
    """Return the text of all logs of the game."""
    paths = (game.root / "server" / "logs").glob("*.log")
    return "".join(path.read_text(encoding="utf-8", errors="replace") for path in paths)


def rows_of(game: Evennia, query: str) -> list[tuple[Any, ...]]:
    """Return the rows of a query on the game's SQLite database.

    The database is opened for writing, so that SQLite can roll back what a killed server left.
    """
    with closing(sqlite3.connect(game.root / DATABASE, timeout=300)) as reader:
        return reader.execute(query).fetchall()
