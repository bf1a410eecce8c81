"""Test the check of a PostgreSQL database, with a real one."""

import pytest

from evennia_ai.services.settings.database import database
from evennia_ai.store.core.postgresql import problems
from tests.store.postgres import Cluster, shared_cluster

pytestmark = pytest.mark.service


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    return shared_cluster(tmp_path_factory.mktemp("beside"))


def problem(address: str):
    """Return what is wrong with the database at an address."""
    from django.db import connections
    from django.db.utils import ConnectionHandler

    handler = ConnectionHandler(database(address))
    try:
        return problems.problem_of(handler["default"])
    finally:
        handler.close_all()
        assert "default" in connections


def test_usable_database_has_no_problem(cluster):
    assert problem(cluster.make("fit")) is None


def test_unreachable_database_server_is_reported_with_advice(cluster):
    found = problem("postgres://evennia_ai@127.0.0.1:1/fit")

    assert "PostgreSQL cannot be reached" in found.message
    assert "pg_lsclusters" in found.hint


def test_wrong_database_encoding_is_reported(cluster):
    address = cluster.make("latin", more="ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'")

    assert "is encoded as LATIN1" in problem(address).message


def test_old_database_server_is_reported(cluster, monkeypatch):
    monkeypatch.setattr(problems, "OLDEST", 99)

    assert "is older than 99" in problem(cluster.make("old")).message


def test_database_user_without_right_to_create_tables_is_reported(cluster):
    cluster.do("CREATE ROLE guest LOGIN")
    cluster.make("foreign")

    address = f"postgres://guest@127.0.0.1:{cluster.port}/foreign"
    assert "may not create tables" in problem(address).message
