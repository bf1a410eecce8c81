"""Test screens over telnet on a real server: folding, paging, and notices of failures."""

import re
from collections.abc import Iterator

import pytest

from server import telnet
from server.evennia_process import Evennia
from tests.acceptance.games import builder_beside_npc, free_ports, reload, running_game, shown

pytestmark = pytest.mark.server

_SMALL = bytes([telnet.IAC, telnet.SB, telnet.NAWS, 0, 80, 0, 24, telnet.IAC, telnet.SE])
"""A telnet message that the window has 80 columns and 24 lines."""


@pytest.fixture(scope="module")
def game(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evennia]:
    """A game whose model server does not exist."""
    settings = f"""
EVENNIA_AI_COOLDOWN_SECONDS = 0.0
EVENNIA_AI_BASE_URL = "http://127.0.0.1:{free_ports().telnet}/v1"
EVENNIA_AI_MODEL = "away"
"""
    with running_game(tmp_path_factory.mktemp("game"), settings=settings) as evennia:
        yield evennia


def test_ai_start_names_commands_for_a_new_builder(game: Evennia) -> None:
    with builder_beside_npc(game) as builder:
        assert "card/create" in shown(builder, "ai/start")


def test_ai_context_is_folded_and_shows_parts_on_request(game: Evennia) -> None:
    with builder_beside_npc(game) as builder:
        shown(builder, "say Oren, when does the ferry leave?", until="Oren ")
        folded = shown(builder, "ai/context oren")
        assert re.search(r"H history: messages? #\d+", folded)
        assert max(map(len, folded.splitlines())) <= 80
        assert "kept:" in shown(builder, "ai/context oren = full")
        assert "L harbour#1" in shown(builder, "ai/context oren = lore")
        shown(builder, "note oren = He has a cold.")
        shown(builder, "say Oren, are you well?", until="Oren ")
        assert "+ He has a cold." in shown(builder, "ai/context oren = changes")


def test_long_output_is_paged_in_a_small_window(
    game: Evennia, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telnet, "_WINDOW", _SMALL)
    with builder_beside_npc(game) as builder:
        first = shown(builder, "component/preview/full oren")
        assert "Page [1/" in first
        assert len(first.strip().splitlines()) <= 24
        assert "Page [2/" in shown(builder, "n")
        assert "Exited pager" in shown(builder, "say hello", until="You say")
        shown(builder, "option screenreader = on")
        assert "Page [" not in shown(builder, "component/preview/full oren")


def test_builder_with_ai_tell_is_notified_of_a_failure_after_a_reload(game: Evennia) -> None:
    with builder_beside_npc(game) as builder:
        assert "You are told when" in shown(builder, "ai/tell on")
        reload(game)
        told = shown(builder, "say Oren, is there news?", until=r"\[ai\] a call for .* failed")
        assert told.count("[ai]") == 1
        assert "no messages about problems" in shown(builder, "ai/tell off")
