"""Test the first minutes of a new user: `make play`, telnet, the web pages, and the stop."""

import json
import re
import shutil
import sqlite3
import subprocess
import sys
import urllib.request
from contextlib import closing
from dataclasses import replace

import pytest

from evennia_ai.cli.game import SETTINGS
from evennia_ai.engine.history.records import Record, RecordKind
from evennia_ai.engine.history.turn.manifest import TurnManifest
from evennia_ai.engine.history.turn.sending import Handle, sent_messages
from evennia_ai.engine.prompt.messages import messages_sha256
from server.evennia_process import is_running, recorded_ports
from server.newcomer import play, read_demo
from server.ports import HOST
from tests.acceptance.crawling import Crawler
from tests.acceptance.games import builder_beside_npc, logs_of, shown, untouched_game
from tests.cli.forked_games import ForkedGame
from tests.cli.processes import environment
from tests.docs.fences import REFUSED, blocks, typed_lines
from tests.docs.test_tutorial import FROM_NOTHING, steps
from tests.engine.history.builders import recorded

FIRST_STEPS = {
    ("demo.md", "A builder's tour"),
    ("knowledge.md", "The first base"),
}

pytestmark = [pytest.mark.server, pytest.mark.minutes(5)]


@pytest.fixture(scope="module")
def game(tmp_path_factory):
    evennia = untouched_game(tmp_path_factory.mktemp("game"))
    yield evennia
    if is_running(evennia.root):
        evennia.end()


@pytest.fixture(scope="module")
def first(game):
    """The first exchange, with its prompt."""
    return play(game)


def test_first_run_prints_the_reply_of_the_npc(first):
    assert first.reply.startswith('Oren says, "')


def test_first_run_prints_a_prompt_with_the_question(first):
    assert first.said.removeprefix("say ").split(", ", 1)[1] in first.prompt


def test_web_client_page_is_served_on_localhost(game, first):
    address = f"http://localhost:{game.ports.web}/webclient/"
    with urllib.request.urlopen(address, timeout=300) as response:
        assert response.status == 200


def test_second_play_reuses_the_running_game_and_prints_logins(game, first, capsys):
    play(game)

    printed = capsys.readouterr().out
    assert "The game is running already" in printed
    assert f"telnet localhost {game.ports.telnet}" in printed
    assert f"http://localhost:{game.ports.web}/webclient/" in printed
    assert f"http://localhost:{game.ports.web}/ai/" in printed
    demo = read_demo(game.root / "world" / "build_demo.py")
    assert f"anna / {demo.player[1]}" in printed
    assert f"builder / {demo.builder[1]}" in printed
    assert printed.index(demo.builder[1]) < printed.index(demo.superuser[1])


def test_first_steps_of_the_documentation_work_over_telnet(game, first):
    found = [one for one in blocks("typed") if (one.page, one.heading) in FIRST_STEPS]
    lines = typed_lines("".join(one.text for one in found), editing=lambda: _in_the_editor(told))
    told = []
    with builder_beside_npc(game) as builder:
        for line in lines:
            until = "Oren says" if line.startswith("say Oren") else r"\S"
            answer = shown(builder, line, until=until)
            assert answer.strip(), line
            assert not REFUSED.search(answer), f"{line}: {answer}"
            told.append(answer)

    assert {one.page for one in found} == {page for page, _ in FIRST_STEPS}
    assert "".join(told).count("Left the editor.") == 1
    assert 'Oren says, "' in "".join(told)


def test_every_web_page_answers_200_after_the_tutorial(game, first):
    with builder_beside_npc(game) as builder:
        corrected = ""
        for typed, _ in steps(FROM_NOTHING):
            line = re.sub(r"#\d+", f"#{corrected}", typed)
            told = shown(builder, line, until=_until(typed))
            assert not REFUSED.search(told), f"{line}: {told}"
            if typed == "ai/history mira":
                replies = re.findall(r"^#(\d+) .* assistant$", told, re.MULTILINE)
                corrected = replies[1]
    assert corrected

    site = f"http://{HOST}:{game.ports.web}"
    demo = read_demo(game.root / "world" / "build_demo.py")
    for account in (demo.builder, demo.superuser):
        visits = list(Crawler(site, *account).all_pages("/ai/", "/ai/last/"))
        wrong = {one.address: (one.status, one.text[-400:]) for one in visits if one.status != 200}
        assert not wrong, wrong
        addresses = {one.address for one in visits}
        assert any(re.match(r"/ai/npc/\d+~\d+/turn/\d+/", one) for one in addresses), addresses
        kinds = ("turn/", "diff/", "next/", "memory/", "settings/", "/entry/", "/revision/")
        wanted = (*kinds, "/lints/", "/turns/", "/export/", "/page/", "/vault/")
        assert [kind for kind in wanted if not any(kind in one for one in addresses)] == []
    logs = logs_of(game)
    assert "Traceback" not in logs
    assert "evennia_ai: the page" not in logs


def _until(typed):
    """Return a pattern for the end of the answer to a line of the tutorial."""
    if typed.startswith("say "):
        return "Mira says|Mira .*\\."
    return "In your branch of Mira:" if typed.startswith("ai/branch mira =") else r"\S"


@pytest.mark.req("S1-03", "S1-05")
def test_compose_command_reproduces_the_sent_bytes_from_a_request_file(game, first):
    with builder_beside_npc(game) as builder:
        told = " ".join(shown(builder, "ai/request oren").split())
    sha256 = re.search(r"the bytes that were sent, sha256 ([0-9a-f]{64})", told)
    path = re.search(r"compose --request (\S+)'", told)
    assert sha256 and path, told
    composed = _command_line("compose", "--request", str(game.root / path[1]))

    assert (composed.returncode, composed.stderr) == (0, "")
    assert composed.stdout.splitlines()[0] == f"sha256 {sha256[1]}"


@pytest.mark.req("S2-08", "S2-16", "S2-26")
def test_verify_and_replay_detect_a_turn_forged_in_the_database(game, first, tmp_path):
    """A message is removed from a prompt, and the hashes of the turn's row are recomputed."""
    copy = tmp_path / "game"
    shutil.copytree(game.root, copy, ignore=shutil.ignore_patterns("*.db3*", ".venv", "*.pid"))
    held = copy / "server" / "evennia.db3"
    with (
        closing(sqlite3.connect(game.root / "server" / "evennia.db3")) as running,
        closing(sqlite3.connect(held)) as own,
    ):
        running.backup(own)
    forked = ForkedGame(copy, environment=environment(DJANGO_SETTINGS_MODULE=SETTINGS))
    try:
        verify = ("history", "verify", "--game", str(copy))
        assert forked.call(*verify, cwd=copy).status == 0

        with closing(sqlite3.connect(held)) as own, own:
            npc_ref, number = _forge_a_turn(own)
        verified = forked.call(*verify, cwd=copy)
        words = ("--npc", f"#{npc_ref}", "--turn", str(number), "--game", str(copy))
        replayed = forked.call("replay", *words, cwd=copy)
    finally:
        forked.close()

    problem = "it was changed in the database"
    assert (verified.status, replayed.status) == (1, 1)
    assert f"BROKEN at turn {number}: {problem}" in verified.out
    assert f"cannot be replayed: {problem}" in " ".join(replayed.out.split())


def _forge_a_turn(own):
    """Remove a message from a turn's prompt, recompute its hashes, and return NPC and number."""
    for (name,) in own.execute(
        "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'evennia_ai_turn'"
    ).fetchall():
        own.execute(f"DROP TRIGGER {name}")
    turns = own.execute("SELECT npc_ref, number, manifest FROM evennia_ai_turn WHERE state='done'")
    npc_ref, number, row = turns.fetchone()
    manifest = TurnManifest.from_row(row)
    _, *kept = manifest.messages
    handles = [
        Handle(record=_record(own, one.record), block=one.block, injected=one.injected)
        for one in kept
    ]
    sha256 = messages_sha256(sent_messages(handles))
    forged = replace(manifest, messages=recorded(kept), sha256=sha256)
    own.execute(
        "UPDATE evennia_ai_turn SET manifest = ?, prompt_sha256 = ?"
        " WHERE npc_ref = ? AND number = ?",
        (forged.to_row(), sha256, npc_ref, number),
    )
    return npc_ref, number


def _record(own, number):
    names = ("segment", "seq", "role", "name", "body", "content_sha256", "sha256", "created_at")
    columns = ", ".join(names)
    row = own.execute(
        f"SELECT kind, meta, {columns} FROM evennia_ai_record WHERE id = ?", (number,)
    ).fetchone()
    values = dict(zip(names, row[2:], strict=True))
    kind, meta = RecordKind(row[0]), json.loads(row[1])
    return Record(id=number, conversation=1, kind=kind, meta=meta, **values)


def _command_line(*words):
    """Run `evennia-ai` with these arguments in a new process."""
    command = [sys.executable, "-m", "evennia_ai.cli", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def test_stop_ends_all_processes_and_restart_keeps_the_history(game, first):
    game.stop()
    assert not is_running(game.root)
    assert recorded_ports(game.root) is None

    again = play(game)

    assert "ferry" in again.prompt
    game.end()


def _in_the_editor(told):
    """True if the line editor is open after these answers."""
    text = "".join(told)
    return text.rfind("Line Editor [") > text.rfind("Left the editor.")
