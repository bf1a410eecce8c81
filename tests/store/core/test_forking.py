"""Test that a forked process has no SQLite connection of its parent."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import os, sys
from django.conf import settings
settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": sys.argv[1]}}
)
from django.db import connection, transaction
from evennia_ai.store.core.forking import close_files_before_forks

def carried():
    child = os.fork()
    if not child:
        os._exit(connection.connection is not None)
    return os.waitpid(child, 0)[1] != 0

connection.ensure_connection()
assert carried()
close_files_before_forks()
connection.ensure_connection()
assert not carried()
with transaction.atomic():
    assert carried()  # it would be lost
"""


@pytest.mark.req("S2-27")
def test_open_file_is_closed_before_a_fork_without_losing_a_transaction(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "game.db3")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
