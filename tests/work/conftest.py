"""The run's PostgreSQL for the tests of work, a database in it for each."""

import pytest


@pytest.fixture(scope="session")
def databases(tmp_path_factory):
    from tests.absent import need

    need("procrastinate", undone="no worker is run")
    from tests.store.postgres import shared_cluster
    from tests.work.processes import Databases

    folder = tmp_path_factory.mktemp("work")
    return Databases(shared_cluster(folder), of=folder)


@pytest.fixture
def place(databases, tmp_path):
    from tests.work.processes import Place

    made = Place(databases, tmp_path)
    yield made
    made.end()
