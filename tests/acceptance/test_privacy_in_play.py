"""Test on a real server that a player is told what NPCs are and can switch them off."""

import json
from collections.abc import Iterator

import pytest

from server.evennia_process import Evennia
from tests.acceptance.games import builder_beside_npc, running_game, shown

pytestmark = pytest.mark.server

SCRIPT = {"replies": [{"when": "e", "reply": "Evening to you."}]}
SETTINGS = """
EVENNIA_AI_PROFILES = {"default": {"client": "scripted", "script": "world/evening.json"}}
EVENNIA_AI_COOLDOWN_SECONDS = 0.0
EVENNIA_AI_THINKING_SECONDS = 0.0
"""
CANARY = "quicksilver"


@pytest.fixture(scope="module")
def game(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evennia]:
    files = {"world/evening.json": json.dumps(SCRIPT)}
    folder = tmp_path_factory.mktemp("game")
    with running_game(folder, settings=SETTINGS, files=files) as evennia:
        yield evennia


def test_player_is_told_once_and_can_opt_out_look_forget_and_report(game: Evennia) -> None:
    with builder_beside_npc(game) as builder:
        assert "(OOC) Speaks through a language model" in shown(builder, "look oren")
        first = shown(builder, "say Oren, good evening.", until="Evening to you")
        assert "(OOC) Oren speaks through a language model, an AI." in first
        again = shown(builder, "say Oren, are you an AI?", until="Evening to you")
        assert "speaks through" not in again
        assert "(OOC) Oren is not a person." in again

        assert "no NPC hears or sees you" in shown(builder, "ai off")
        nod = shown(builder, f"say Oren, {CANARY}.", until="nod")
        assert "Oren gives you a friendly nod." in nod
        assert CANARY not in shown(builder, "ai/history oren")
        assert "hear and see you again" in shown(builder, "ai on")
        assert "Oren is silent from now on" in shown(builder, "ai/off oren")
        assert "answers from now on" in shown(builder, "ai/on oren")

        shown(builder, "whisper Oren = Keep this.", until="Evening to you")
        assert "as report 1: Evening to you." in shown(builder, "ai report oren = Rude.")
        assert "Keep this." in shown(builder, "ai me/export")
        shown(builder, "ai me/forget oren", until="yes")
        assert "Erased" in shown(builder, "yes", until="Erased")
        assert "Keep this." not in shown(builder, "ai me/export")
        assert "You no longer read what Oren says" in shown(builder, "ignore oren")
        assert "You ignore Oren" in shown(builder, "ignore")
