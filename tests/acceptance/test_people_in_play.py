"""Test an imported SillyTavern chat and a player's persona on a real server."""

import re
from pathlib import Path

import pytest

from server.evennia_process import Evennia
from server.newcomer import read_demo
from tests.acceptance.games import builder_beside_npc, logged_in, running_game, shown
from tests.formats.chats.builders import HEADER, a_file, a_line, a_user_line

pytestmark = pytest.mark.server

PERSONA = "A tall woman with a limp, who owes everybody."


def test_chat_import_becomes_history_and_persona_reaches_the_prompt(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    settings = "EVENNIA_AI_COOLDOWN_SECONDS = 0.0\n"
    with running_game(tmp_path_factory.mktemp("game"), settings=settings) as game:
        _a_chat_moves_in(game)
        _a_persona_is_told(game)


def _a_chat_moves_in(game: Evennia) -> None:
    folder = Path(game.root) / "world" / "demo" / "cards"
    lines = (HEADER, a_line(mes="The tide was low."), a_user_line("When does she leave?"))
    (folder / "evening.jsonl").write_bytes(a_file(*lines))
    superuser = read_demo(game.root / "world" / "build_demo.py").superuser
    with logged_in(game, *superuser) as admin:
        asked = shown(admin, "ai/import oren = evening.jsonl", until=r"yes/\[no\]")
        assert "2 messages of a chat with 'Anna'" in " ".join(asked.split())
        made = " ".join(shown(admin, "yes", until="shows it").split())
        number = re.search(r"Imported it as conversation (\d+)", made)
        assert number
        history = " ".join(shown(admin, "ai/history oren", until="When does").split())
        assert "imported from evening.jsonl, sha256" in history
        assert "The tide was low." in history
        assert "the chain holds" in shown(admin, "ai/verify oren", until="holds")
        written = shown(admin, f"ai/export oren/{number[1]} = again", until="can read")
        assert "as a chat" in " ".join(written.split())
    assert (folder / "again.jsonl").read_bytes().count(b"\n") == len(lines) - 1


def _a_persona_is_told(game: Evennia) -> None:
    with builder_beside_npc(game) as builder:
        told = shown(builder, f"persona = {PERSONA}", until="Where: ")
        assert "NPCs that you speak to are told about you" in told
        shown(builder, "say Oren, who am I?", until="Oren says")
        context = shown(builder, "ai/context oren = full", until="sha256")
        assert re.search(r"block:persona:#\d+", context)
        turn = re.search(r"turn (\d+)", context)
        assert turn
        replayed = shown(builder, f"ai/replay oren = {turn[1]} full", until="everybody")
        assert f"in the player's words: {PERSONA}" in " ".join(replayed.split())
        assert "is removed" in shown(builder, "persona/remove", until="removed")
