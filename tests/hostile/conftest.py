"""One game for the whole folder, so that attacks meet what others left behind."""

from collections.abc import Iterator

import pytest

from tests.acceptance.games import running_game
from tests.hostile.harbour import SETTINGS, Harbour
from tests.services.llm.clients.stub_server import StubServer

pytest.register_assert_rewrite("tests.hostile.audit")


@pytest.fixture(scope="session")
def harbour(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harbour]:
    model = StubServer()
    settings = SETTINGS.format(base_url=model.base_url)
    with running_game(tmp_path_factory.mktemp("game"), settings=settings) as game:
        made = Harbour(game, model)
        yield made
        made.close()
    model.close()
