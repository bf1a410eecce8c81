"""`evennia-ai card import|export --game`: a card into a game's database and out of it."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.games import DATABASE, migrated_database
from tests.cli.conftest import Called
from tests.cli.forked_games import ForkedGame
from tests.formats.scenario.builders import a_card, an_entry
from tests.unchecked import UNCHECKED

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = """
from evennia.settings_default import *

print("settings may print")
INSTALLED_APPS = [*INSTALLED_APPS, "evennia_ai"]
EVENNIA_AI_CARD_LIMITS = {"entries": 5}
"""


class Game:
    """A game in a folder of its own, used from other processes."""

    def __init__(self, folder: Path, settings: str = SETTINGS) -> None:
        self.folder = folder / "game"
        self._forked: ForkedGame | None = None
        conf = self.folder / "server" / "conf"
        conf.mkdir(parents=True)
        for package in (conf.parent, conf):
            (package / "__init__.py").touch()
        (conf / "settings.py").write_text(settings)

    def migrate(self) -> None:
        """Create the tables of the game."""
        shutil.copy(migrated_database(beside=self.folder.parent), self.folder / DATABASE)

    def call(self, *words: str) -> Called:
        """Return the output of `evennia-ai WORDS`, started as users start it."""
        return self.run("-m", "evennia_ai.cli", *words, cwd=self.folder.parent)

    def calls(self, *words: str) -> Called:
        """Return the output of `evennia-ai WORDS` from a forked process with Django started."""
        if self._forked is None:
            self._forked = ForkedGame(self.folder, environment=self._environment(self.folder))
        return self._forked.call(*words, cwd=self.folder.parent)

    def close(self) -> None:
        if self._forked is not None:
            self._forked.close()

    def write(self, name: str, card: object) -> str:
        (self.folder.parent / name).write_text(json.dumps(card), encoding="utf-8")
        return name

    def run(self, *words: str, cwd: Path) -> Called:
        """Return the output of Python with these arguments."""
        done = subprocess.run(
            [sys.executable, *words],
            cwd=cwd,
            env=self._environment(cwd),
            capture_output=True,
            text=True,
            check=False,
        )
        return Called(status=done.returncode, out=done.stdout, err=done.stderr)

    def _environment(self, cwd: Path) -> dict[str, str]:
        path = os.pathsep.join((str(cwd), str(ROOT), str(UNCHECKED)))
        return {
            **os.environ,
            "PYTHONPATH": path,
            "DJANGO_SETTINGS_MODULE": "server.conf.settings",
        }


@pytest.fixture(scope="module")
def game(tmp_path_factory) -> Iterator[Game]:
    """Return a game with a migrated database. Each test uses its own names in it."""
    made = Game(tmp_path_factory.mktemp("cards"))
    made.migrate()
    yield made
    made.close()


def stored(called: Called) -> dict:
    assert called.status == 0, called.err
    return json.loads(called.out)["stored"]


def test_import_waits_and_is_approved_with_the_named_grants(game: Game) -> None:
    name = game.write("tilda.json", a_card(an_entry("Oil is dear.", "oil")))
    into = ("import", name, "--game", "game", "--json")
    waiting = {"card": "Tilda", "number": 1, "state": "waiting", "grants": []}
    assert stored(game.calls("card", *into)) == waiting
    assert stored(game.calls("card", *into)) == waiting
    approved = stored(
        game.calls("card", *into, "--approve", "--grant", "roles", "--grant", "fields")
    )
    assert approved == {
        "card": "Tilda",
        "number": 2,
        "state": "approved",
        "grants": ["fields", "roles"],
    }
    assert stored(game.calls("card", *into)) == approved


def test_exported_card_equals_the_import(game: Game) -> None:
    card = a_card(an_entry("Oil is dear.", "oil"), odd={"kept": [1, None]})
    name = game.write("lamp.json", card)
    assert (
        game.calls("card", "import", name, "--game", "game", "--name", "Lamp", "--approve").status
        == 0
    )
    for out in ("lamp.png", "lamp.charx", "lamp-2.json"):
        called = game.calls("card", "export", "lamp", out, "--game", "game")
        assert (called.status, called.out) == (
            0,
            f"{out}: Lamp as {out.rpartition('.')[2]}\n",
        )
        assert game.calls("card", "convert", out, f"{out}.json", "--to", "json").status == 0
        data = json.loads((game.folder.parent / f"{out}.json").read_text())["data"]
        data.pop("modification_date")
        assert data == card["data"]


def test_an_export_can_be_of_any_revision_and_writes_over_nothing(game: Game) -> None:
    first = game.write("first.json", a_card(description="First."))
    second = game.write("second.json", a_card(description="Second."))
    named = ("--game", "game", "--name", "Both", "--approve")
    for file in (first, second):
        assert game.calls("card", "import", file, *named).status == 0
    export = ("export", "Both", "both.json", "--game", "game")
    assert game.calls("card", *export, "--revision", "1").status == 0
    written = json.loads((game.folder.parent / "both.json").read_text())
    assert written["data"]["description"] == "First."
    again = game.calls("card", *export)
    assert (again.status, again.out) == (2, "")
    assert "--force overwrites it" in again.err


def test_missing_card_is_one_line(game: Game) -> None:
    called = game.call("card", "export", "Nobody", "nobody.json", "--game", "game")
    assert (called.status, called.out) == (2, "")
    assert "there is no card 'Nobody'" in called.err
    assert not (game.folder.parent / "nobody.json").exists()


def test_the_limits_of_the_game_count_and_nothing_is_stored(game: Game) -> None:
    entries = [an_entry(f"Lamp {n}.", f"lamp {n}") for n in range(6)]
    name = game.write("many.json", a_card(*entries, name="Many"))
    called = game.calls("card", "import", name, "--game", "game")
    assert (called.status, called.out) == (2, "")
    assert "many.json" in called.err
    assert "the limit is 5 (entries)" in called.err
    assert "Many" not in game.calls("card", "export", "Nobody", "x.json", "--game", "game").err


@pytest.mark.req("S0-03")
def test_import_report_says_that_a_field_names_what_is_said(game: Game) -> None:
    game.write("oren.json", a_card(name="Speaks", description="Answers {{lastMessage}}."))
    called = game.calls("card", "import", "oren.json", "--game", "game")
    assert called.status == 0
    assert "char_description: names {{lastMessage}}" in " ".join(called.out.split())


def test_untypeable_name_is_refused(game: Game) -> None:
    name = game.write("odd.json", a_card(name="a = b"))
    called = game.calls("card", "import", name, "--game", "game")
    assert (called.status, called.out) == (2, "")
    assert "give it another with --name" in called.err


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (SETTINGS, "the game has no database yet; run `evennia migrate`"),
        (SETTINGS.replace(', "evennia_ai"]', "]"), "evennia_ai is not installed in this game"),
        ("1 / 0", "settings cannot be loaded (ZeroDivisionError: division by zero)"),
    ],
)
def test_unready_game_says_what_to_do(tmp_path, settings: str, told: str) -> None:
    game = Game(tmp_path, settings)
    called = game.call("card", "import", game.write("tilda.json", a_card()), "--game", "game")
    assert (called.status, called.out) == (2, "")
    assert told in called.err
    assert "Traceback" not in called.err
    assert not (game.folder / DATABASE).exists()


def test_database_without_tables_says_what_to_do(tmp_path) -> None:
    game = Game(tmp_path)
    (game.folder / DATABASE).touch()
    called = game.call("card", "import", game.write("tilda.json", a_card()), "--game", "game")
    assert (called.status, called.out) == (2, "")
    assert "the database lacks tables of evennia_ai; run `evennia migrate`" in called.err
