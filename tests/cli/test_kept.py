"""`evennia-ai check`: kept answers in another process, before and after everything was edited."""

import json
import re
import shlex
import shutil
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.acceptance.games import DATABASE
from tests.cli.test_card_in_game import SETTINGS, Game
from tests.docs.fences import PAGES

pytestmark = pytest.mark.long


class _Model(BaseHTTPRequestHandler):
    """A model server that gives one answer to everything."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = f"Ned: I was told {len(asked['messages'])} things."
        message = {"role": "assistant", "content": text}
        told = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)

    def log_message(self, *args: Any) -> None:
        """Log nothing."""


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Game]:
    """Return a game that was edited after an answer was kept, and whose model is a server."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Model)
    server.daemon_threads = True
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    game = Game(tmp_path_factory.mktemp("kept"), SETTINGS)
    game.migrate()
    done = game.run("-m", "tests.cli.play_in_folder", cwd=game.folder)
    assert done.status == 0, done.err
    profile = {"base_url": f"http://127.0.0.1:{server.server_port}/v1", "model": "m"}
    profile["stream"] = False
    with (game.folder / "server/conf/settings.py").open("a") as settings:
        settings.write(f"EVENNIA_AI_PROFILES = {{'default': {profile!r}}}\n")
    yield game
    game.close()
    server.shutdown()
    server.server_close()


@pytest.fixture
def kept(played: Game, tmp_path: Path) -> Path:
    """Return a copy of the folder of kept cases, with the names that NPC and room have now."""
    copied = Path(shutil.copytree(played.folder / "kept", tmp_path / "kept"))
    _rename(copied / "ned-hail.yaml")
    return copied


def _rename(path: Path) -> None:
    text = path.read_text()
    for old, new in (("Oren", "Ned"), ("Ferry Landing", "Quay")):
        assert f"  name: {old}\n" in text
        text = text.replace(f"  name: {old}\n", f"  name: {new}\n")
    path.write_text(text)


def test_edits_change_a_kept_answer_until_it_is_accepted(played: Game, kept: Path) -> None:
    told = played.calls("check", str(kept), "--game", "game")
    assert (told.status, told.err) == (1, "")
    assert told.out.startswith("DIFFERS    ned-hail: answers a hail\n")
    assert "+ Somebody else." in told.out
    assert "1 kept answers: 0 same, 1 different, 0 unreadable;" in told.out

    assert played.calls("check", str(kept), "--game", "game", "--changed").status == 1
    accepted = played.calls("check", str(kept), "--game", "game", "--accept", "ned-hail")
    assert accepted.status == 0
    assert accepted.out.startswith("accepted   ned-hail: answers a hail\n")
    assert played.calls("check", str(kept), "--game", "game").out.startswith("same       ned-hail")
    assert played.calls("check", str(kept), "--game", "game", "--changed").status == 0
    assert [path.name for path in kept.iterdir()] == ["ned-hail.yaml"]


def test_reports_for_programs_name_the_case_and_its_change(played: Game, kept: Path) -> None:
    junit = kept.parent / "kept.xml"
    (kept / "zz.yaml").write_text("kept: 1\nreply: !!python/name:os.system ''\n")
    told = played.calls(
        "check", str(kept), "--game", "game", "--json", "--junit", str(junit), "--ask"
    )
    assert told.status == 2, told.err
    hail, broken = told.json["cases"]
    assert (hail["name"], hail["state"], hail["reply"]) == ("ned-hail", "differs", "Aye.")
    assert {one["how"] for one in hail["change"]["items"]} >= {"changed"}
    assert re.fullmatch(r"I was told \d+ things\.", hail["new_reply"])
    assert (broken["state"], broken["change"]) == ("unreadable", None)
    assert "zz.yaml: is not YAML" in broken["problem"] and "line 2" in broken["problem"]
    assert told.json["summary"]["cases"] == 2

    suite = ElementTree.parse(junit).getroot()
    counts = (suite.attrib["tests"], suite.attrib["failures"], suite.attrib["errors"])
    assert counts == ("2", "1", "1")
    failed = suite.find("testcase[@name='ned-hail']/failure")
    assert failed is not None and "+ Somebody else." in (failed.text or "")


def test_asked_again_the_new_reply_is_beside_the_kept_one(played: Game, kept: Path) -> None:
    told = played.calls("check", str(kept), "--game", "game", "--ask")
    assert re.search(r"^  reply as kept +\| now$", told.out, re.M)
    assert re.search(r"^  Aye\. +\| I was told \d+ things\.$", told.out, re.M)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nowhere"], "has no kept answers; the command ai/keep in the game writes them"),
        (["--accept", "bells"], "there is no kept answer bells to accept"),
    ],
)
def test_bad_input_of_a_check_is_one_line(played: Game, words: list[str], told: str) -> None:
    called = played.calls("check", *words, "--game", "game")
    assert (called.status, called.out) == (2, "")
    assert told in called.err


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("Ned", "the game must have exactly one NPC with the name 'Brida'; write the name"),
        ("Quay", "the game must have exactly one room with the name 'Brida'; write the name"),
    ],
)
def test_case_with_an_unknown_name_says_what_is_missing(
    played: Game, kept: Path, name: str, told: str
) -> None:
    path = kept / "ned-hail.yaml"
    path.write_text(path.read_text().replace(f"name: {name}", "name: Brida"))
    called = played.calls("check", str(kept), "--game", "game")
    assert called.status == 2
    assert told in called.out


def test_commands_of_the_workflow_on_the_page_check_the_game(played: Game) -> None:
    page = (PAGES / "build" / "kept-answers.md").read_text(encoding="utf-8")
    lines = re.findall(r"^      - run: (.+)$", page, re.M)
    install, copy, check = map(shlex.split, lines)
    assert install == ["pip", "install", "-r", "requirements.txt"]

    _rename(played.folder / "kept" / "ned-hail.yaml")
    (played.folder / "tests").mkdir()
    shutil.move(played.folder / DATABASE, played.folder / copy[1])
    assert copy == ["cp", "tests/world.db3", str(DATABASE)]
    shutil.copy(played.folder / copy[1], played.folder / copy[2])
    assert check[0] == "evennia-ai"
    told = played.run("-m", "evennia_ai.cli", *check[1:], cwd=played.folder)
    assert told.status == 1, told.err
    assert ElementTree.parse(played.folder / "kept.xml").getroot().attrib["failures"] == "1"
