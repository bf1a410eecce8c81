"""A real server without a model, over telnet: small talk, poses, and what a newcomer is shown."""

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
    """What somebody who plays for the first time reads, and then with two NPCs in the room."""
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
    """The lines that tell of these people."""
    return [line for line in text.splitlines() if line.startswith(names)]


def test_a_newcomer_is_shown_three_things_to_try(read: dict[str, str]) -> None:
    _, _, tried = read["arrival"].partition("To try here:")
    assert [line.split("  ")[1] for line in tried.splitlines()[1:4]] == [
        "talk oren hello",
        "look tide board",
        "north",
    ]


def test_a_name_and_words_without_a_sign_between_are_said_to_the_one_named(
    read: dict[str, str],
) -> None:
    assert 'Oren says, "Evening. Mind the third plank' in read["talk"]


def test_what_is_done_at_an_npc_is_answered(read: dict[str, str]) -> None:
    assert "Oren nods" in read["nod"]
    assert "The fare to cross costs two pennies a head" in read["ask"]


def test_the_scenery_stays(read: dict[str, str]) -> None:
    assert "can't get" in read["take"]


def test_of_several_that_are_greeted_one_answers(read: dict[str, str]) -> None:
    assert len(lines_of(read["all"], "Oren says", "Hanna says", "Piet says")) == 1
