"""The game that kill tests share, because starting it takes seconds."""

from collections.abc import Iterator

import pytest

from tests.acceptance.doomed import Game


@pytest.fixture(scope="session")
def doomed_game(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Game]:
    made = Game(tmp_path_factory.mktemp("doomed"))
    yield made
    made.close()
