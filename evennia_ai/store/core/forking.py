"""Close SQLite connections before the process forks.

Evennia reads the database and then becomes a daemon by forking. A fork keeps an open SQLite
connection but loses its file locks. With a write-ahead log, the next process that opens the
database then believes that nobody else uses it. It resets the log that the other process still
reads. This destroys the database (SQLite's "How To Corrupt An SQLite Database File", 2.6). Django
opens new connections when it needs them.
"""

import os

from django.db import connections


def close_files_before_forks() -> None:
    """Close open SQLite connections before every fork of this process from now on."""
    os.register_at_fork(before=_close_files)


def _close_files() -> None:
    """Close the SQLite connections of the forking thread, except those inside a transaction."""
    for connection in connections.all(initialized_only=True):
        if connection.vendor == "sqlite" and not connection.in_atomic_block:
            connection.close()
