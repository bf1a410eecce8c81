"""Test small talk, poses and the first screen of a new player, on a real server without a model."""

from collections.abc import Iterator

import pytest

from server.evennia_process import Evennia
from server.newcomer import read_demo
from tests.acceptance.games import logged_in, running_game, shown

pytestmark = pytest.mark.server

LINES = {
    "talk": ("talk oren hello", "third plank"),
    "nod": (":nods at Oren.", "Oren nods"),
    "ask": (":asks Oren about the fare.", "two pennies"),
    "take": ("get tide board", "can't get"),
}


@pytest.fixture(scope="module")
def game(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evennia]:
    folder = tmp_path_factory.mktemp("game")
    with running_game(folder, settings="EVENNIA_AI_COOLDOWN_SECONDS = 0.0") as evennia:
        yield evennia


@pytest.fixture(scope="module")
def read(game: Evennia) -> dict[str, str]:
    """What a new player reads, and what a builder reads with several NPCs in the room."""
    demo = read_demo(game.root / "world" / "build_demo.py")
    read: dict[str, str] = {}
    with logged_in(game, *demo.player) as player:
        shown(player, "@ooc", until="OOC")
        read["arrival"] = shown(player, "@ic Anna", until="To try here")
        for name, (typed, until) in LINES.items():
            read[name] = shown(player, typed, until=until)
    with logged_in(game, *demo.builder) as builder:
        shown(builder, "@teleport/loc oren")
        shown(builder, "create/drop Hanna:evennia_ai.typeclasses.AINPC")
        shown(builder, "create/drop Piet:evennia_ai.typeclasses.AINPC")
        read["all"] = shown(builder, "say Good evening, all!", until="(?m)^(Oren|Hanna|Piet) says")
    return read


def lines_of(text: str, *names: str) -> list[str]:
    """Return the lines that begin with one of these names."""
    return [line for line in text.splitlines() if line.startswith(names)]


def test_new_character_sees_three_commands_to_try(read: dict[str, str]) -> None:
    _, _, tried = read["arrival"].partition("To try here:")
    assert [line.split("  ")[1] for line in tried.splitlines()[1:4]] == [
        "talk oren hello",
        "look tide board",
        "evening",
    ]


def test_talk_command_works_without_an_equals_sign(
    read: dict[str, str],
) -> None:
    assert 'Oren says, "Evening. Mind the third plank' in read["talk"]


def test_npc_answers_poses_directed_at_npcs(read: dict[str, str]) -> None:
    assert "Oren nods" in read["nod"]
    assert "The fare to cross costs two pennies a head" in read["ask"]


def test_scenery_cannot_be_taken(read: dict[str, str]) -> None:
    assert "can't get" in read["take"]


def test_one_of_several_npcs_answers_a_greeting_to_all(read: dict[str, str]) -> None:
    assert len(lines_of(read["all"], "Oren says", "Hanna says", "Piet says")) == 1
