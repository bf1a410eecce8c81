"""A real server: a chat of SillyTavern becomes a history, and a persona is told as data."""

import re
from pathlib import Path

import pytest

from server.evennia_process import Evennia
from server.newcomer import read_demo
from tests.acceptance.games import builder_beside_npc, logged_in, running_game, shown
from tests.history.chats.builders import HEADER, a_file, a_line, a_user_line

pytestmark = pytest.mark.server

PERSONA = "A tall woman with a limp, who owes everybody."


def test_a_chat_moves_in_and_a_player_says_who_they_are(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    settings = "EVENNIA_AI_COOLDOWN_SECONDS = 0.0\n"
    with running_game(tmp_path_factory.mktemp("game"), settings=settings) as game:
        _a_chat_moves_in(game)
        _a_persona_is_told(game)


def _a_chat_moves_in(game: Evennia) -> None:
    folder = Path(game.root) / "world" / "cards"
    folder.mkdir(parents=True, exist_ok=True)
    lines = (HEADER, a_line(mes="The tide was low."), a_user_line("When does she leave?"))
    (folder / "evening.jsonl").write_bytes(a_file(*lines))
    superuser = read_demo(game.root / "world" / "build_demo.py").superuser
    with logged_in(game, *superuser) as admin:
        asked = shown(admin, "ai/import oren = evening.jsonl", until=r"yes/\[no\]")
        assert "2 messages of a chat with 'Anna'" in " ".join(asked.split())
        assert "has it as conversation" in shown(admin, "yes", until="as a chat")
        history = " ".join(shown(admin, "ai/history oren", until="When does").split())
        assert "imported from evening.jsonl, sha256" in history
        assert "The tide was low." in history
        assert "the chain holds" in shown(admin, "ai/verify oren", until="holds")
        written = " ".join(shown(admin, "ai/export oren = again", until="can read").split())
        assert "as a chat" in written
    assert (folder / "again.jsonl").read_bytes().count(b"\n") == len(lines) - 1


def _a_persona_is_told(game: Evennia) -> None:
    with builder_beside_npc(game) as builder:
        told = shown(builder, f"persona = {PERSONA}", until="Where: ")
        assert "NPCs you speak to are told of you" in told
        shown(builder, "say Oren, who am I?", until="Oren says")
        context = shown(builder, "ai/context oren = full", until="sha256")
        assert re.search(r"block:persona:#\d+", context)
        replayed = " ".join(
            shown(builder, "ai/replay oren = 1 full", until="in the player's").split()
        )
        assert f"in the player's words: {PERSONA}" in replayed
        assert "It is gone" in shown(builder, "persona/clear", until="gone")
