"""One PostgreSQL for the tests of work, a database in it for each."""

import pytest


@pytest.fixture(scope="session")
def cluster():
    from tests.absent import need

    need("procrastinate", "psycopg", undone="no worker is run")
    from tests.store.postgres import Postgres
    from tests.work.processes import Cluster

    with Postgres() as postgres:
        yield Cluster(postgres)


@pytest.fixture
def place(cluster, tmp_path):
    from tests.work.processes import Place

    made = Place(cluster, tmp_path)
    yield made
    made.end()
