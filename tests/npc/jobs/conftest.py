"""Fixtures: a PostgreSQL cluster for the tests of jobs, with a database for each test."""

import pytest


@pytest.fixture(scope="session")
def databases(tmp_path_factory):
    from tests.absent import need

    need("procrastinate", undone="no worker is run")
    from tests.npc.jobs.processes import Databases
    from tests.store.postgres import shared_cluster

    folder = tmp_path_factory.mktemp("work")
    made = Databases(shared_cluster(folder), of=folder)
    yield made
    made.close()


@pytest.fixture
def places(databases, tmp_path_factory):
    """A function that makes the database of one more game. Its processes end with the test."""
    from tests.npc.jobs.processes import Place

    made = []

    def make():
        made.append(Place(databases, tmp_path_factory.mktemp("place")))
        return made[-1]

    yield make
    for place in made:
        place.end()


@pytest.fixture
def place(places):
    """The database of one game (see `places`)."""
    return places()
