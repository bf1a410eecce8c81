"""Test that the README and the install page work in a new game."""

from pathlib import Path
from typing import Any

import pytest

from evennia_ai.cli import run
from tests.docs.fences import all_blocks
from tests.docs.following import Follower

OWN_GAME = {("install.md", "In your own game")}
"""Examples that need a new game instead of the demo village."""
README = [one for one in all_blocks() if one.page == "README.md" and one.kind != "output"]


def test_readme_lines_give_a_new_game_an_npc_that_answers(
    own_game: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert {"console", "python", "typed"} == {one.kind for one in README}
    assert Follower(own_game, monkeypatch).follows(README) == []
    assert "Mira says" in own_game.types("say Mira, do you sell nettles?")


def test_install_page_gives_a_new_game_an_npc_with_a_card(
    own_game: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = [one for one in all_blocks() if (one.page, one.heading) in OWN_GAME]
    _their_own_card(own_game.folder / "cards")
    assert Follower(own_game, monkeypatch).follows(blocks) == []
    told = own_game.types("say Oren, who are you?")
    assert "Oren says" in told


def _their_own_card(folder: Path) -> None:
    """The picture of a card that a user has from elsewhere."""
    words = ["card", "convert", "--to", "png"]
    assert run([*words, str(folder / "oren.json"), str(folder / "oren.png")]) == 0
