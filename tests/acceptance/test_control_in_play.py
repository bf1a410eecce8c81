"""Test corrections of a conversation on a real server: retry, correct, undo and reset."""

import re
from collections.abc import Iterator

import pytest

from server.evennia_process import Evennia
from tests.acceptance.games import builder_beside_npc, running_game, shown
from tests.services.llm.clients.stub_server import StubServer, answers

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def stub() -> Iterator[StubServer]:
    server = StubServer()
    server.behaves(answers("At noon."), answers("At dusk."))
    yield server
    server.close()


@pytest.fixture(scope="module")
def game(stub: StubServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evennia]:
    """The demo game with a model that has two replies."""
    settings = f"""
EVENNIA_AI_COOLDOWN_SECONDS = 0.0
EVENNIA_AI_BASE_URL = {stub.base_url!r}
EVENNIA_AI_MODEL = "tiny"
"""
    with running_game(tmp_path_factory.mktemp("game"), settings=settings) as evennia:
        yield evennia


def test_retry_correct_undo_and_reset_work_over_telnet(game: Evennia) -> None:
    with builder_beside_npc(game) as builder:
        shown(builder, "say Oren, when does the ferry leave?", until="At noon")
        told = shown(builder, "ai/retry oren = Be brief.", until="At dusk")
        assert re.search(r"Oren answers #\d+ again", told)
        history = shown(builder, "ai/history oren")
        assert "(answered again since)" in history
        newest = re.findall(r"#(\d+) .* assistant", history)[-1]
        corrected = shown(builder, f"ai/correct oren/#{newest} = Never.")
        assert "From now on Oren said" in corrected
        assert "1 exchange no longer counts" in shown(builder, "ai/undo oren")
        assert "no exchange left" in shown(builder, "ai/undo oren")
        assert "starts over" in shown(builder, "ai/reset oren")
        assert "BROKEN" not in shown(builder, "ai/verify oren")
