"""Check a PostgreSQL database before a game writes to it."""

from typing import Any, Final, NamedTuple

from django.db import DatabaseError

OLDEST: Final = 15
"""The oldest version of PostgreSQL with which the tests run."""


class DatabaseProblem(NamedTuple):
    """A reason why a game cannot use a database, and what an admin can do."""

    message: str
    hint: str


def problem_of(connection: Any) -> DatabaseProblem | None:
    """Return the first problem of a connection's database, or None.

    For databases other than PostgreSQL, always return None.
    """
    if connection.vendor != "postgresql":
        return None
    name = connection.settings_dict["NAME"]
    try:
        with connection.cursor() as cursor:
            version = connection.connection.info.server_version // 10_000
            cursor.execute(
                "SELECT pg_encoding_to_char(encoding),"
                " has_schema_privilege(current_schema(), 'CREATE')"
                " FROM pg_database WHERE datname = current_database()"
            )
            encoding, may_create = cursor.fetchone()
    except DatabaseError as error:
        return DatabaseProblem(
            f"DATABASES: PostgreSQL cannot be reached: {' '.join(str(error).split())}",
            "Start it, or correct host, port, name, user and password; `pg_lsclusters` lists the"
            " servers on Debian. docs/run/deploying.md of evennia_ai explains how to set it up.",
        )
    if version < OLDEST:
        return DatabaseProblem(
            f"DATABASES: PostgreSQL {version} is older than {OLDEST}.",
            f"Move the database to PostgreSQL {OLDEST} or newer, with pg_upgradecluster on Debian.",
        )
    if encoding != "UTF8":
        return DatabaseProblem(
            f"DATABASES: the database {name} is encoded as {encoding}, which cannot hold what"
            " players say.",
            "Create another database: createdb -E UTF8 -T template0 NAME",
        )
    if not may_create:
        return DatabaseProblem(
            f"DATABASES: the user may not create tables in the database {name}.",
            "Let the user own the database: ALTER DATABASE name OWNER TO user",
        )
    return None
