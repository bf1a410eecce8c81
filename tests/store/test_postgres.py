"""Tests of knowledge bases, histories and the writer, once more in a game on a real PostgreSQL.

All migrations of ours run there too, as that database is made by them.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.store.postgres import Postgres

ROOT = Path(__file__).parents[2]
SAME = (
    "game/recording/test_writer.py",
    "store/history",
    "store/knowledge/test_backend.py",
    "store/knowledge/test_bases.py",
    "store/knowledge/test_drafts.py",
    "store/knowledge/test_page_import.py",
    "store/knowledge/test_pages.py",
    "store/test_migrations.py",
    "store/knowledge/test_page_search.py",
    "store/knowledge/test_page_vectors.py",
)


@pytest.mark.service
def test_they_do_the_same_on_postgresql():
    with Postgres() as postgres:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
                *(f"tests/{name}" for name in SAME),
            ],
            cwd=ROOT,
            env={
                **os.environ,
                "DJANGO_SETTINGS_MODULE": "tests.store.postgres_settings",
                "EVENNIA_AI_TEST_POSTGRES_PORT": str(postgres.port),
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    assert done.returncode == 0, done.stdout + done.stderr
