"""Test branches of a conversation on a real server: over telnet, a reload and `ai/forget`."""

import re

import pytest

from server.evennia_process import Evennia
from server.newcomer import read_demo
from tests.acceptance.games import (
    builder_beside_npc,
    logged_in,
    reload,
    running_game,
    shown,
)

pytestmark = pytest.mark.server


def test_branch_stays_apart_from_the_history_and_is_erased_on_close(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    settings = "EVENNIA_AI_COOLDOWN_SECONDS = 0.0\n"
    with running_game(tmp_path_factory.mktemp("game"), settings=settings) as game:
        _plays(game)


def _plays(game: Evennia) -> None:
    with builder_beside_npc(game) as builder:
        shown(builder, "say Oren, when does the ferry leave?", until="Oren says")
        before = _records(shown(builder, "ai/verify oren"))
        opened = shown(builder, "ai/branch oren/1")
        assert "Branch of Oren from turn 1" in opened and "Nobody in the game hears it" in opened
        said = shown(
            builder, "ai/branch oren = Who runs the inn?", until=r"In your branch[^\x00]*?Oren: "
        )
        assert "Oren says" not in said
        assert max(map(len, said.splitlines())) <= 80
        assert _records(shown(builder, "ai/verify oren")) == before
        reload(game)
        kept = shown(builder, "ai/branch oren")
        assert "Who runs the inn?" in kept and re.search(r"  Oren: \S", kept)
        assert "turn 1," in shown(builder, "ai/branch/prompt oren")
        assert "BROKEN" not in shown(builder, "ai/verify oren")
        assert "Who runs the inn" not in shown(builder, "ai/history oren = full")
        assert "is erased" in shown(builder, "ai/branch/close oren")
        _forgets_the_room(game)
        assert "when does the ferry leave" not in shown(builder, "ai/history oren")
        assert "Oren " in shown(builder, "say Oren, who are you?", until="Oren says")


def _forgets_the_room(game: Evennia) -> None:
    """Erase the room's conversations of all NPCs, as an admin in another place."""
    superuser = read_demo(game.root / "world" / "build_demo.py").superuser
    with logged_in(game, *superuser) as admin:
        asked = shown(admin, "ai/forget room:the ferry landing", until=r"yes/\[no\]")
        assert "1 NPC (Oren" in " ".join(asked.split())
        assert "Erased what was said in" in shown(admin, "yes", until="Erased")


def _records(told: str) -> list[str]:
    """Return the record counts that `ai/verify` printed."""
    return re.findall(r"\d+ records", told)
