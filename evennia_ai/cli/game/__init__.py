"""Opening a game's folder as `evennia` does: its settings and database, without starting it.

A running server is neither needed nor disturbed: it notices by itself what is written here. Only
this module starts Django for the command line. The other modules of this folder need the store, so
they are imported after the game is opened. The engine can be installed without Evennia, so a
command checks for missing packages before it imports anything that needs them.
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

# Settings import Twisted, which commands on files do not need to wait for.
if TYPE_CHECKING:
    from evennia_ai.services.settings.game import Conf

SETTINGS: Final = "server.conf.settings"
_SETTINGS_FILE: Final = Path("server", "conf", "settings.py")
_APP: Final = "evennia_ai"

Databases = dict[str, dict[str, Any]]
"""Django's setting `DATABASES`."""


class GameFolderError(EvenniaAIError):
    """The folder is no game, or the game in it cannot be opened."""


class MissingPackagesError(EvenniaAIError):
    """Packages that a command needs are not installed. The message names the extra to install."""

    def __init__(self, missing: Sequence[str], *, extra: str) -> None:
        self.missing = tuple(missing)
        self.extra = extra
        super().__init__(
            f"this command needs packages that are not installed: {', '.join(missing)};"
            f' type: pip install "evennia-ai[{extra}]"'
        )


def need(*packages: str, extra: str = "game") -> None:
    """Raise MissingPackagesError unless all of these packages can be imported."""
    if missing := [name for name in packages if find_spec(name) is None]:
        raise MissingPackagesError(missing, extra=extra)


def is_game(folder: Path) -> bool:
    """True if this folder contains the settings of a game."""
    try:
        return (folder / _SETTINGS_FILE).is_file()
    except OSError:
        return False


def opened_game(folder: Path) -> "Conf":
    """Open the game in `folder` and return its settings. Its database may be used from now on.

    The current folder becomes the game's folder, so make paths absolute before.

    Raises:
        GameFolderError: There is no game, its settings fail, or its database is missing or not up
    to date.
        MissingPackagesError: Evennia is not installed.
    """
    path = _folder_of_game(folder)
    _start_django(path)
    _check_database(path)
    from evennia_ai.services.settings.conf import conf

    return conf()


def opened_with(folder: Path, databases: Callable[[Databases], Databases]) -> Path:
    """Open the game in `folder` with changed databases. Return the whole path of the folder.

    `databases` gets the game's setting and returns the one to use. The databases are not queried.

    Raises:
        GameFolderError: There is no game, its settings fail, or its database is missing.
        MissingPackagesError: Evennia is not installed.
    """
    path = _folder_of_game(folder)
    _start_django(path, databases)
    return path


def settings_without_game(**values: Any) -> None:
    """Configure Django with these settings and those of the environment, without a database."""
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
    """Return the actor at the command line. The machine's shell is trusted with the database."""
    try:
        return trusted(f"command line ({getpass.getuser()})")
    # The system knows no name for the current user.
    except (ImportError, KeyError, OSError):
        return trusted("command line")


def _start_django(path: Path, databases: Callable[[Databases], Databases] | None = None) -> None:
    """Load the game's settings and models. What they print goes to standard error."""
    # Evennia takes the current folder for the game's folder.
    os.chdir(path)
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
    # Settings are code that may raise anything; the game cannot be opened then.
    except Exception as error:
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
    """Raise GameFolderError if the database lacks tables of evennia_ai. Nothing is created."""
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
    """True if the database is an SQLite file that does not exist. Django would create it."""
    is_file = str(database["ENGINE"]).endswith("sqlite3") and ":memory:" not in str(
        database["NAME"]
    )
    return is_file and not Path(database["NAME"]).is_file()
