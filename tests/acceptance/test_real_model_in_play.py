"""Test a real Evennia server with a real model server: replies, and the account of its cache."""

import re
from collections.abc import Iterator

import pytest

from server.evennia_process import Evennia
from server.telnet import Connection
from tests.acceptance.games import builder_beside_npc, copied_game, logs_of, shown, started
from tests.acceptance.model_server import ModelServer

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModelServer]:
    server = ModelServer(tmp_path_factory.mktemp("model"))
    yield server
    server.close()


@pytest.fixture(scope="module")
def game(model: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evennia]:
    """The demo game, whose NPCs use the tiny model."""
    settings = f"""
EVENNIA_AI_BASE_URL = {model.base_url!r}
EVENNIA_AI_MODEL = "tiny"
EVENNIA_AI_CONTEXT_TOKENS = 4096
EVENNIA_AI_REPLY_TOKENS = 24
EVENNIA_AI_COOLDOWN_SECONDS = 0.0
"""
    game = copied_game(tmp_path_factory.mktemp("game"), settings=settings)
    with started(game):
        yield game


@pytest.fixture(scope="module")
def talk(game: Evennia) -> Iterator[Connection]:
    """The builder's connection, after two replies of the ferryman."""
    with builder_beside_npc(game) as builder:
        for line in ("say Oren, what of the tide?", "say Oren, and of the ferry?"):
            builder.send(line)
            builder.wait_for(r'^Oren says, "[a-z]', seconds=60)
            builder.wait_for_quiet()
        yield builder


def test_cache_command_shows_the_share_of_the_second_prompt(talk: Connection) -> None:
    told = shown(talk, "ai/cache oren")
    (share,) = re.findall(r"^ *2 +\d+ +\d+ +\d+ +(\d+) %", told, re.MULTILINE)
    assert int(share) > 50, told


def test_log_command_shows_the_cached_tokens_of_the_server(talk: Connection) -> None:
    told = shown(talk, "ai/log oren")
    (read, cached) = re.findall(r"(\d+) in \((\d+) cached\), 24 out", told)[0]
    assert int(cached) > int(read) / 2, told


def test_server_log_has_no_traceback_with_a_real_model(game: Evennia, talk: Connection) -> None:
    assert "Traceback" not in logs_of(game)
