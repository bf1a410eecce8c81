"""A startup module for a test game: the server kills itself at the step that a file names.

`before INSERT some_table` is before the next insertion into the table. `after UPDATE some_table` is
after the commit of a change. The server deletes the file before it dies, so that the next server
does not die.
"""

import os
import signal
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.backends.signals import connection_created

WRITES = ("INSERT", "UPDATE")
FILE = "die_at"


def at_server_start() -> None:
    """Watch what this server writes. A hook of Evennia."""
    written: set[str] = set()

    def executed(execute: Any, sql: str, *args: Any) -> Any:
        if sql.startswith(WRITES):
            verb, _, rest = sql.partition(" ")
            table = rest.partition('"')[2].partition('"')[0]
            step = f"{verb} {table}"
            _die_at(f"before {step}")
            written.add(step)
        return execute(sql, *args)

    def watch(connection: Any, **_: Any) -> None:
        def committed() -> None:
            commit()
            for step in written:
                _die_at(f"after {step}")
            written.clear()

        commit, connection._commit = connection._commit, committed
        connection.execute_wrappers.append(executed)

    watch(connection)
    connection_created.connect(watch, weak=False)  # the writer's thread opens its own connection


def _die_at(step: str) -> None:
    file = Path(settings.GAME_DIR) / FILE
    if file.exists() and file.read_text(encoding="utf-8") == step:
        file.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
