"""Settings of a worker: the game's database and the game's settings for evennia_ai.

They are in one JSON file, {"database": ..., "game_folder": "...", "settings": {...}}. The command
`evennia-ai worker-file` writes the file into the game's folder, and you copy it to other machines.

"database" is a dictionary as in Django's DATABASES, or an address:
postgres://user:password@host:port/name. An address in the environment variable EVENNIA_AI_DATABASE
has priority. API keys of models come from the environment, as in the game.
"""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from evennia_ai.engine.errors import EvenniaAIError
from evennia_ai.services.settings.database import DatabaseAddressError, database
from evennia_ai.services.settings.workers import QUEUE_APP

DATABASE: Final = "EVENNIA_AI_DATABASE"
_PREFIX: Final = "EVENNIA_AI_"
_TAKEN: Final = ("ENGINE", "NAME", "USER", "PASSWORD", "HOST", "PORT", "OPTIONS")


class WorkerSettingsError(EvenniaAIError):
    """A worker cannot start, because its settings or its database are not usable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerFile:
    """The content of a worker's file."""

    database: Mapping[str, Any]
    game_folder: str = "."
    settings: Mapping[str, Any] = field(default_factory=dict)

    def text(self) -> str:
        """Return the file as text. It may contain the password of the database."""
        said = {
            "database": dict(self.database),
            "game_folder": self.game_folder,
            "settings": dict(self.settings),
        }
        return json.dumps(said, indent=2, ensure_ascii=False, default=str) + "\n"


def file_of_game(django_settings: Any) -> WorkerFile:
    """Return the worker's file for a game with these Django settings."""
    database = {
        name: value
        for name, value in django_settings.DATABASES["default"].items()
        if name in _TAKEN and value
    }
    own = {name: getattr(django_settings, name) for name in dir(django_settings)}
    own = {name: value for name, value in own.items() if name.startswith(_PREFIX)}
    return WorkerFile(
        database=database, game_folder=str(Path(django_settings.GAME_DIR).resolve()), settings=own
    )


def read_file(text: str, *, where: str) -> WorkerFile:
    """Parse a worker's file.

    Raises:
        WorkerSettingsError: The file is invalid. The message begins with `where`.
    """
    try:
        said = json.loads(text)
    except ValueError as error:
        raise WorkerSettingsError(f"{where}: not JSON ({error})") from error
    if not isinstance(said, dict) or not isinstance(said.get("settings", {}), dict):
        raise WorkerSettingsError(f"{where}: must be an object with database and settings")
    for name in said.get("settings", {}):
        if not name.startswith(_PREFIX):
            raise WorkerSettingsError(
                f"{where}: {name!r} is not a setting of evennia_ai; these begin with {_PREFIX}"
            )
    given = said.get("database", {})
    database = _database_at(given, where=where) if isinstance(given, str) else given
    folder = str(said.get("game_folder", "."))
    return WorkerFile(database=database, game_folder=folder, settings=said.get("settings", {}))


def _database_at(address: str, *, where: str) -> dict[str, Any]:
    """Return the database at an address as a dictionary for Django's DATABASES.

    Raises:
        WorkerSettingsError: The address is invalid.
    """
    try:
        return database(address)["default"]
    except DatabaseAddressError as error:
        raise WorkerSettingsError(f"{where}: {error}") from error


def configure_django(file: WorkerFile) -> None:
    """Set up Django with only the tables of evennia_ai and of the queue.

    Raises:
        WorkerSettingsError: The settings or the database are not usable.
    """
    import django
    from django.conf import settings

    address = os.environ.get(DATABASE, "")
    found = _database_at(address, where=DATABASE) if address else dict(file.database)
    if not str(found.get("ENGINE", "")).endswith("postgresql"):
        raise WorkerSettingsError(
            "workers need the game's database to be PostgreSQL: name it in the worker's file or in"
            f" {DATABASE}; docs/run/workers.md says how"
        )
    sys.path.insert(0, file.game_folder)  # settings contain dotted paths to modules of the game
    own = {"queue": "procrastinate", **file.settings.get(f"{_PREFIX}WORKERS", {})}
    settings.configure(
        INSTALLED_APPS=["evennia_ai", QUEUE_APP],
        DATABASES={"default": {**found, "CONN_MAX_AGE": None, "CONN_HEALTH_CHECKS": True}},
        USE_TZ=True,
        GAME_DIR=file.game_folder,
        **{**file.settings, f"{_PREFIX}WORKERS": own},
    )
    django.setup()
    _check()


def _check() -> None:
    """Check the settings, and that the database has all tables.

    Raises:
        WorkerSettingsError: The settings are wrong, or tables are missing.
    """
    from django.db import DatabaseError, connection
    from django.db.migrations.executor import MigrationExecutor

    from evennia_ai.services.settings.conf import setting_problems

    for problem in setting_problems():
        raise WorkerSettingsError(f"{problem.message} {problem.hint}")
    try:
        loader = MigrationExecutor(connection).loader
    except DatabaseError as error:
        raise WorkerSettingsError(f"the database cannot be read: {error}") from error
    for app in ("evennia_ai", "procrastinate"):
        if missing := set(loader.graph.leaf_nodes(app)) - set(loader.applied_migrations):
            number = min(missing)[1]
            raise WorkerSettingsError(
                f"the database lacks the tables of {app} {number}: `evennia migrate` in the game,"
                " with the same version of evennia-ai"
            )
    connection.close()
