"""`evennia-ai preset import|export --game`: a preset into a game's database and out of it."""

import json
from collections.abc import Iterator

import pytest

from tests.cli.test_card_in_game import Game, stored
from tests.formats.presets.builders import a_file, a_prompt

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def game(tmp_path_factory) -> Iterator[Game]:
    """Return a game with a migrated database. Each test uses its own names in it."""
    made = Game(tmp_path_factory.mktemp("presets"))
    made.migrate()
    yield made
    made.close()


def test_import_waits_and_is_approved_with_the_named_grants(game: Game) -> None:
    name = game.write("Dusk.json", a_file(a_prompt("mine", "Mine."), before=("main", "mine")))
    into = ("preset", "import", name, "--game", "game", "--json")
    waiting = {"preset": "Dusk", "number": 1, "state": "waiting", "grants": []}
    assert stored(game.calls(*into)) == waiting
    assert stored(game.calls(*into)) == waiting
    approved = stored(game.calls(*into, "--approve", "--grant", "roles", "--grant", "fields"))
    assert (approved["state"], approved["grants"]) == ("approved", ["fields", "roles"])
    assert stored(game.calls(*into)) == approved
    fewer = stored(game.calls(*into, "--approve", "--grant", "fields"))
    assert fewer["grants"] == ["fields"]


def test_exported_preset_equals_the_import_without_secrets(game: Game) -> None:
    file = a_file(temperature=1.0, odd={"kept": [1, None]})
    name = game.write("Lamp.json", {**file, "proxy_password": "hunter2"})
    assert game.calls("preset", "import", name, "--game", "game", "--approve").status == 0
    called = game.calls("preset", "export", "lamp", "out.json", "--game", "game")
    assert (called.status, called.out) == (0, "out.json: Lamp, revision 2\n")
    assert json.loads((game.folder.parent / "out.json").read_text()) == file
    again = game.calls("preset", "export", "Lamp", "out.json", "--game", "game")
    assert (again.status, again.out) == (2, "")
    assert "--force overwrites it" in again.err


def test_refused_preset_is_not_stored(game: Game) -> None:
    name = game.write("Speaker.json", {"prompts": "Answer."})
    called = game.calls("preset", "import", name, "--game", "game")
    assert (called.status, called.out) == (2, "")
    assert "Speaker.json" in called.err
    missing = game.calls("preset", "export", "Speaker", "x.json", "--game", "game")
    assert missing.status == 2
    assert "there is no preset 'Speaker'" in missing.err


def test_option_is_refused_without_the_option_that_it_needs(game: Game) -> None:
    name = game.write("Plain.json", a_file())
    assert game.calls("preset", "import", name, "--approve").status == 2
    called = game.calls("preset", "import", name, "--game", "game", "--grant", "roles")
    assert "--grant needs --approve" in called.err
