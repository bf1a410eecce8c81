"""Tests of the store, of histories, knowledge and what is recorded, once more on PostgreSQL.

All migrations of ours run there too, as that database is made by them. What is left out is about
SQLite alone, or begins processes of its own on a file.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.store.postgres import shared_cluster

pytestmark = [pytest.mark.service, pytest.mark.minutes(1)]

ROOT = Path(__file__).parents[2]
PARTS = {
    "the store": ("store",),
    "what the game records and looks up": ("game/recording", "game/knowledge"),
}
LEFT_OUT = (
    "store/test_postgres.py",
    "store/test_two_processes.py",
    "store/test_crashes.py",
)


@pytest.mark.parametrize("part", PARTS)
def test_they_do_the_same_on_postgresql(part, tmp_path_factory):
    cluster = shared_cluster(tmp_path_factory.mktemp("beside"))
    name = f"tests_{list(PARTS).index(part)}"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"),
            *(f"--ignore=tests/{one}" for one in LEFT_OUT),
            *(f"tests/{one}" for one in PARTS[part]),
        ],
        cwd=ROOT,
        env={
            **{k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")},
            "DJANGO_SETTINGS_MODULE": "tests.store.postgres_settings",
            "EVENNIA_AI_TEST_POSTGRES_PORT": str(cluster.port),
            "EVENNIA_AI_TEST_POSTGRES_NAME": name,
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
