"""Make the setting `DATABASES` of a game from the address of its database.

`DATABASES = database("postgres://mara:secret@localhost:5432/harbour")` makes a game use PostgreSQL.
Settings files call this while they load, so this module imports neither Django nor Evennia, and
connects to no server.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from evennia_ai.engine.errors import EvenniaAIError

POSTGRESQL: Final = "evennia_ai.store.core.postgresql"
"""Our variant of Django's PostgreSQL backend, which reconnects after a lost connection."""
SQLITE: Final = "django.db.backends.sqlite3"
INSTALL: Final = 'pip install "evennia-ai[postgres]"'

_SCHEMES: Final = ("postgres", "postgresql")
_FORMS: Final = (
    "it must be postgres://user:password@host:5432/name or sqlite:////path/of/the/file.db3"
)
# The timeout is short, because the whole game waits for a connection.
_OPTIONS: Final = {"connect_timeout": 5, "application_name": "evennia_ai"}
_WAL: Final = {"init_command": "PRAGMA journal_mode=WAL"}


class DatabaseAddressError(EvenniaAIError):
    """The address of a database cannot be used. The message does not quote the address."""


def database(address: str) -> dict[str, dict[str, Any]]:
    """Return the setting `DATABASES` for the database at `address`.

    Options of the connection follow a `?`, such as `?sslmode=require`. Special characters in names
    and passwords are written as in every URL: `@` is `%40`.

    Args:
        address: `postgres://user:password@host:5432/name` or `sqlite:////path/of/the/file.db3`.

    Raises:
        DatabaseAddressError: The address has another form, or psycopg is not installed.
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
        # Opening a connection takes milliseconds, so each thread keeps its connection and only
        # checks it.
        "CONN_MAX_AGE": None,
        "CONN_HEALTH_CHECKS": True,
    }
    return {"default": connection}


def _sqlite(parts: SplitResult) -> dict[str, Any]:
    path = Path(unquote(parts.path.removeprefix("/")))
    if parts.netloc or not path.is_absolute():
        raise DatabaseAddressError(f"the address of the database is wrong: {_FORMS}")
    return {"ENGINE": SQLITE, "NAME": str(path), "OPTIONS": dict(_WAL)}
