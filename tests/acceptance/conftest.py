"""A game that may die, for all tests here: it takes seconds to start."""

from collections.abc import Iterator

import pytest

from tests.acceptance.doomed import Game


@pytest.fixture(scope="session")
def doomed_game(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Game]:
    made = Game(tmp_path_factory.mktemp("doomed"))
    yield made
    made.close()
