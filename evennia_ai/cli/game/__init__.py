"""A game's folder, opened as `evennia` opens it: its settings, its database, nothing started.

A running server is not needed and not disturbed: what is written here it takes over by itself. This
is the one door of the command line to Django: the modules of this folder, which need the store, are
imported after it. The engine can be installed without Evennia, so a command says what is missing
before it imports anything that needs it.
"""

import contextlib
import getpass
import os
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from evennia_ai.engine.actors import Actor, trusted
from evennia_ai.engine.errors import EvenniaAIError

if TYPE_CHECKING:  # settings come with Twisted, which no command on files alone waits for
    from evennia_ai.services.settings.game import Conf

SETTINGS: Final = "server.conf.settings"
_SETTINGS_FILE: Final = Path("server", "conf", "settings.py")
_APP: Final = "evennia_ai"

Databases = dict[str, dict[str, Any]]
"""What Django calls `DATABASES`."""


class GameFolderError(EvenniaAIError):
    """A folder is no game that can be opened."""


class MissingPackagesError(EvenniaAIError):
    """A command needs packages that are not installed; the message names the extra with them."""

    def __init__(self, missing: Sequence[str], *, extra: str) -> None:
        self.missing = tuple(missing)
        self.extra = extra
        super().__init__(
            f"this command needs packages that are not installed: {', '.join(missing)};"
            f' type: pip install "evennia-ai[{extra}]"'
        )


def need(*packages: str, extra: str = "game") -> None:
    """Raise MissingPackagesError unless all these packages of an extra can be imported."""
    if missing := [name for name in packages if find_spec(name) is None]:
        raise MissingPackagesError(missing, extra=extra)


def is_game(folder: Path) -> bool:
    """True if a game has its settings in this folder."""
    try:
        return (folder / _SETTINGS_FILE).is_file()
    except OSError:
        return False


def opened_game(folder: Path) -> "Conf":
    """The settings of the game in `folder`, whose database may be used from now on.

    The current folder becomes the game's: make paths absolute before.

    Raises:
        GameFolderError: there is no game, it does not start, or its database is not there or not up
            to date.
        MissingPackagesError: Evennia is not installed.
    """
    path = _folder_of_game(folder)
    _start_django(path)
    _check_database(path)
    from evennia_ai.services.settings.conf import conf

    return conf()


def opened_with(folder: Path, databases: Callable[[Databases], Databases]) -> Path:
    """Open the game in `folder` with what `databases` makes of its own; the folder's whole path.

    Nothing is asked of any of them.

    Raises:
        GameFolderError: there is no game, it does not start, or its database is not there.
        MissingPackagesError: Evennia is not installed.
    """
    path = _folder_of_game(folder)
    _start_django(path, databases)
    return path


def settings_without_game(**values: Any) -> None:
    """Set Django up with these settings and those of the environment, and without a database."""
    from django.conf import settings

    settings.configure(**values)


def _folder_of_game(folder: Path) -> Path:
    need("evennia")
    if not is_game(folder):
        raise GameFolderError(
            f"{folder}: no game is here; name a folder that has {_SETTINGS_FILE.as_posix()}"
        )
    return folder.resolve()


def machine_owner() -> Actor:
    """Return who types here. The shell of the machine is trusted: it could edit the database."""
    try:
        return trusted(f"command line ({getpass.getuser()})")
    except (ImportError, KeyError, OSError):  # nobody has a name here
        return trusted("command line")


def _start_django(path: Path, databases: Callable[[Databases], Databases] | None = None) -> None:
    """Load the game's settings and models; they may print, which is none of our output."""
    os.chdir(path)  # Evennia finds a game by the current folder
    sys.path.insert(0, str(path))
    os.environ["DJANGO_SETTINGS_MODULE"] = SETTINGS
    import django
    from django.apps import apps
    from django.conf import settings

    try:
        with contextlib.redirect_stdout(sys.stderr):
            if databases is not None:
                settings.DATABASES = databases(settings.DATABASES)
            django.setup()
    except Exception as error:  # settings are code: whatever they raise, the game cannot be opened
        what = f"{type(error).__name__}: {error}"
        raise GameFolderError(
            f"{path}: the game's settings cannot be loaded ({what}); does `evennia start` work?"
        ) from error
    if not apps.is_installed(_APP):
        raise GameFolderError(
            f'{path}: evennia_ai is not installed in this game; add "{_APP}" to INSTALLED_APPS in'
            f" {_SETTINGS_FILE.as_posix()} and run `evennia migrate` there"
        )


def _check_database(path: Path) -> None:
    """GameFolderError where the database lacks our tables; it is neither made nor changed."""
    from django.db import DatabaseError, connection
    from django.db.migrations.executor import MigrationExecutor

    advice = f"run `evennia migrate` in {path}"
    if is_missing(connection.settings_dict):
        raise GameFolderError(f"{path}: the game has no database yet; {advice}")
    try:
        executor = MigrationExecutor(connection)
        missing = executor.migration_plan(executor.loader.graph.leaf_nodes(_APP))
    except DatabaseError as error:
        raise GameFolderError(f"{path}: the database cannot be read: {error}") from error
    if missing:
        raise GameFolderError(f"{path}: the database lacks tables of evennia_ai; {advice}")


def is_missing(database: dict[str, Any]) -> bool:
    """True if the database is a file that is not there, which Django would make."""
    is_file = str(database["ENGINE"]).endswith("sqlite3") and ":memory:" not in str(
        database["NAME"]
    )
    return is_file and not Path(database["NAME"]).is_file()
