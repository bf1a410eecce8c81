"""A game's database by its address: one line of the settings puts a game on PostgreSQL.

`DATABASES = database("postgres://mara:secret@localhost:5432/harbour")` is called while settings are
loaded. So this module imports nothing of Django, of Evennia or of ours but errors, and asks no
server.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from evennia_ai.engine.errors import EvenniaAIError

POSTGRESQL: Final = "evennia_ai.store.core.postgresql"
"""Django's PostgreSQL, which connects anew once its connection is gone."""
SQLITE: Final = "django.db.backends.sqlite3"
INSTALL: Final = 'pip install "evennia-ai[postgres]"'

_SCHEMES: Final = ("postgres", "postgresql")
_FORMS: Final = (
    "it must be postgres://user:password@host:5432/name or sqlite:////path/of/the/file.db3"
)
# A game waits for its database, and everybody in it for the game.
_OPTIONS: Final = {"connect_timeout": 5, "application_name": "evennia_ai"}
_WAL: Final = {"init_command": "PRAGMA journal_mode=WAL"}


class DatabaseAddressError(EvenniaAIError):
    """An address is none of a database that a game can be kept in. No text of it is told."""


def database(address: str) -> dict[str, dict[str, Any]]:
    """The `DATABASES` of a game that is kept at `address`.

    What stands behind a `?` are options of the connection, such as `sslmode=require`. Special
    characters of a name or password are written as in every URL: `@` is `%40`.
    DatabaseAddressError: it is no such address, or what PostgreSQL needs is not installed.
    """
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError as error:
        raise DatabaseAddressError(f"the address of the database is wrong: {_FORMS}") from error
    if parts.scheme == "sqlite":
        return {"default": _sqlite(parts)}
    name = unquote(parts.path.removeprefix("/"))
    if parts.scheme not in _SCHEMES or not name or "/" in name:
        raise DatabaseAddressError(f"the address of the database is wrong: {_FORMS}")
    if find_spec("psycopg") is None:
        raise DatabaseAddressError(f"for PostgreSQL psycopg is missing; type: {INSTALL}")
    connection = {
        "ENGINE": POSTGRESQL,
        "NAME": name,
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": unquote(parts.hostname or ""),
        "PORT": str(port or ""),
        "OPTIONS": {**_OPTIONS, **dict(parse_qsl(parts.query))},
        # To connect takes milliseconds; each thread keeps its own, and looks whether it lives.
        "CONN_MAX_AGE": None,
        "CONN_HEALTH_CHECKS": True,
    }
    return {"default": connection}


def _sqlite(parts: SplitResult) -> dict[str, Any]:
    path = Path(unquote(parts.path.removeprefix("/")))
    if parts.netloc or not path.is_absolute():
        raise DatabaseAddressError(f"the address of the database is wrong: {_FORMS}")
    return {"ENGINE": SQLITE, "NAME": str(path), "OPTIONS": dict(_WAL)}
