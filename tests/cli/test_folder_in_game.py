"""`evennia-ai import-folder` on a game's database: 60 cards, killed, continued, exported."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.folder.made_folders import made_folder, values_in
from tests.cli.test_card_in_game import Game

pytestmark = pytest.mark.long

CARDS = 60
SETTINGS = """
from evennia.settings_default import *

INSTALLED_APPS = [*INSTALLED_APPS, "evennia_ai"]
"""
PEOPLE = """
import django
django.setup()
import evennia
evennia._init()
from evennia.utils.create import create_object
for name in ("Oren", "Mira", "Villager 0010"):
    create_object("evennia_ai.typeclasses.AINPC", key=name, nohome=True)
for name in ("Pim", "Anna", "Bo"):
    create_object("evennia.objects.objects.DefaultCharacter", key=name, nohome=True)
"""


@pytest.fixture(scope="module")
def game(tmp_path_factory) -> Iterator[Game]:
    """Return a game with three NPCs and three player characters, next to a folder of 60 cards."""
    made = Game(tmp_path_factory.mktemp("moving"), SETTINGS)
    made.migrate()
    people = made.run("-c", PEOPLE, cwd=made.folder)
    assert people.status == 0, people.err
    made_folder(made.folder.parent / "data", cards=CARDS, personas=("Pim", "Anna", "Bo"))
    yield made
    made.close()


def fates(report: dict[str, Any]) -> dict[str, int]:
    """Return how many things have which fate, without the files that are never imported."""
    counted: dict[str, int] = {}
    for kind, found in report["counts"].items():
        for fate, count in found.items():
            if kind != "other":
                counted[fate] = counted.get(fate, 0) + count
    return counted


def killed_in_the_middle(game: Game, *, after: int) -> None:
    """Start the import, and kill it after this many progress lines."""
    words = ("import-folder", "data", "--game", "game", "--yes")
    begun = subprocess.Popen(
        [sys.executable, "-m", "evennia_ai.cli", *words],
        cwd=game.folder.parent,
        env=game._environment(game.folder.parent),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    with begun as program:
        assert program.stderr is not None
        told = 0
        for line in program.stderr:
            told += " files, " in line
            if told == after:
                program.send_signal(signal.SIGKILL)
        assert program.wait() == -signal.SIGKILL


def test_killed_import_continues_and_its_export_is_complete(game: Game) -> None:
    plan = json.loads(game.calls("import-folder", "data", "--game", "game", "--json").out)
    killed_in_the_middle(game, after=4)
    halfway = json.loads(game.calls("import-folder", "data", "--game", "game", "--json").out)
    done = json.loads(game.calls("import-folder", "data", "--game", "game", "--yes", "--json").out)
    again = json.loads(game.calls("import-folder", "data", "--game", "game", "--json").out)
    out = game.calls("export-folder", "out", "--game", "game")

    assert plan["counts"]["card"] == {"take": CARDS}
    assert 0 < fates(halfway)["there"] < fates(plan)["take"]
    assert fates(halfway)["there"] + fates(halfway)["take"] == fates(plan)["take"]
    assert fates(done)["taken"] == fates(halfway)["take"]
    assert fates(again)["there"] == fates(plan)["take"]
    assert (out.status, out.err) == (0, "")
    assert lost(game.folder.parent / "data", game.folder.parent / "out") == {}
    assert "exists already" in game.calls("export-folder", "out", "--game", "game").err


def lost(came: Path, went: Path) -> dict[str, Any]:
    """Return the imported things whose NPC exists and that an export has lost or changed."""
    before, after = values_in(came), values_in(went)
    of_nobody = {f"chats/Villager {n:04}/Villager {n:04} - 0.jsonl" for n in range(20, CARDS, 10)}
    return {
        where: value
        for where, value in before.items()
        if where not in of_nobody and after.get(where) != value
    }


def test_options_are_checked_before_the_folder_is_read(game: Game) -> None:
    assert "do not go together" in game.calls("import-folder", "data", "--plan", "--yes").err
    nowhere = game.calls("import-folder", "nowhere", "--game", "game")
    assert (nowhere.status, nowhere.out) == (2, "")
    assert "nowhere: cannot be read" in nowhere.err
