"""Forking: no open SQLite file is carried into another process.

Evennia reads the database, and then becomes a daemon by forking. A fork keeps an open SQLite
connection and loses its locks on the file; with a write-ahead log the next process that opens the
database takes it for one that nobody uses and resets what the other still reads, which destroys it
(SQLite's "How To Corrupt An SQLite Database File", 2.6). So connections are closed before a fork;
Django opens others when they are needed.
"""

import os

from django.db import connections


def close_files_before_forks() -> None:
    """From now on, in this process."""
    os.register_at_fork(before=_close_files)


def _close_files() -> None:
    """Close the forking thread's SQLite connections; one in a transaction is left to its owner."""
    for connection in connections.all(initialized_only=True):
        if connection.vendor == "sqlite" and not connection.in_atomic_block:
            connection.close()
