"""Run the tests of the store, and of code that writes to it in threads, on PostgreSQL too.

All our migrations run, because they create that database. Each test runs one case of its table and
a few examples (`tests/sampling.py`, `tests/properties.py`), because further cases do not depend on
the database.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.store.postgres import shared_cluster

pytestmark = [pytest.mark.service, pytest.mark.minutes(4)]

ROOT = Path(__file__).parents[2]
PLACES = (
    "store",
    "npc/recording/test_nothing_unrecorded.py",
    "npc/recording/test_writer.py",
    "npc/knowledge/test_searching.py",
)
LEFT_OUT = (
    "store/test_crashes.py",
    "store/test_postgres.py",
    "store/test_two_processes.py",
    "store/core/test_forking.py",
    "store/history/test_long_histories.py",
    "store/knowledge/test_lookup.py",
    "store/knowledge/test_safe_hints.py",
)
"""Tests that need SQLite, or that do not depend on the database."""


def test_store_tests_pass_on_postgresql(tmp_path_factory):
    cluster = shared_cluster(tmp_path_factory.mktemp("beside"))
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            *("-p", "tests.sampling", "--cases", "1", "--hypothesis-profile=few"),
            *(f"--ignore=tests/{one}" for one in LEFT_OUT),
            *(f"tests/{one}" for one in PLACES),
        ],
        cwd=ROOT,
        env={
            **{k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")},
            "DJANGO_SETTINGS_MODULE": "tests.store.postgres_settings",
            "EVENNIA_AI_TEST_POSTGRES_PORT": str(cluster.port),
            "EVENNIA_AI_TEST_POSTGRES_NAME": "tests",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
