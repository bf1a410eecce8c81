"""Tests of the store, of what is recorded and of NPCs that search, once more on PostgreSQL.

All migrations of ours run there too, as that database is made by them. Of each test a few cases of
its table run (`tests/sampling.py`): what a later row asks does not depend on the database.
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
    "histories and pages": ("store/history", "store/knowledge", "game/recording"),
    "the rest of the store, and NPCs that search": ("store", "game/knowledge"),
}
LEFT_OUT = (
    "store/library/test_two_games.py",
    "store/test_crashes.py",
    "store/test_postgres.py",
    "store/test_two_processes.py",
    "store/knowledge/test_lookup.py",
    "game/knowledge/test_canary.py",
    "game/knowledge/test_meanings.py",
)
"""Processes of their own on a file, how SQLite plans its queries, this file, and what no database
decides: how a secret is disguised, and how two scores are added up."""


@pytest.mark.parametrize("part", PARTS)
def test_they_do_the_same_on_postgresql(part, tmp_path_factory):
    cluster = shared_cluster(tmp_path_factory.mktemp("beside"))
    name = f"tests_{list(PARTS).index(part)}"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            *("-p", "tests.sampling"),
            *(f"--ignore=tests/{one}" for one in _left_out(part)),
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


def _left_out(part: str) -> list[str]:
    """What this part does not run, or another one does."""
    others = [path for name, paths in PARTS.items() if name != part for path in paths]
    return [*LEFT_OUT, *(path for path in others if path not in ("store", *PARTS[part]))]
